"""What steps share in counting memory, and what a cluster is asked for beside it.

Estimates are from n, m, d and L alone, and in no code digest: a better one triggers no rebuild.
"""

FLOAT64, FLOAT32 = 8, 4
INTERPRETER = 150_000_000  # Python with NumPy and SciPy loaded
TORCH = 250_000_000  # more, with torch
CUDA = 3_000_000_000  # more of the host's, with torch's CUDA build at work; not measured
BY_HALF_FROM = 2001  # samples in a kernel: `ntkcond.ntk.eigenvalues.FULL_SPECTRUM_UP_TO` and one
PANEL = 576  # of `ntkcond.arrays.half`
TOGETHER = 512  # samples that pass through a network together in `ntkcond.ntk.rounding`
FILTER = 9  # weights of a convolution's filter for each pair of channels

# Measured peaks were 0.6 to 1.05 of the needs (MNIST and digits, L = 10).
MARGIN = 1.25
# In a job, Snakemake runs twice, one in the other: 126 MB each, measured with 9.27. The rest is
# for srun and cached files.
SNAKEMAKE = 300_000_000
# For a user's own data set, whose size is unknown until its file exists.
UNKNOWN_MEGABYTES = 4000


def factors_bytes(n: int, features: int, depth: int, width: int) -> int:
    """Inputs, activations and back-propagated vectors of every layer, one more, and weights."""
    weights = width * features + depth * width**2
    return FLOAT64 * (n * features + weights + (2 * depth + 2) * n * width)


def errors_bytes(features: int, depth: int, width: int) -> int:
    """Errors of some samples in all layers: preactivations, slopes and what arrives, their noise
    and weights in float32; basis vectors of a linear network's inputs, and the stacked layers."""
    weights = width * features + depth * width**2
    stack = 3 * FLOAT64 * features * (features + depth * width)
    return (3 * FLOAT64 + 3 * FLOAT32) * TOGETHER * width * depth + FLOAT32 * weights + stack
