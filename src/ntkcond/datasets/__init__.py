"""Data sets, one module each; a module describes itself in SOURCE (`ntkcond.datasets.registry`)."""
