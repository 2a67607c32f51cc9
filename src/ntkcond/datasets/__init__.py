"""Data sets: one module each, listed in `ntkcond.datasets.registry`."""
