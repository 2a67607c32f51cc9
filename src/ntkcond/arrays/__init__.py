"""One code for NumPy arrays, on a CPU, and torch tensors, on a GPU."""
