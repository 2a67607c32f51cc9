"""What a network is: its activations, weights, the factors of its gradient, its counts."""
