"""ntkcond: how ReLU conditions the neural tangent kernel (arXiv 2305.08813), as a workflow."""
