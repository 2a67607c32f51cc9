"""Networks: activations, weights, the factors of the gradient, counts."""
