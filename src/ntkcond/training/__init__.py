"""Gradient descent: SGD on labels, full-batch descent on the square loss, the choice of rates."""
