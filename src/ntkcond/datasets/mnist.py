"""MNIST: 60,000 handwritten digits of 28 × 28 pixels (LeCun et al., 1998)."""

from functools import partial

from ntkcond.datasets.idx_images import images_at, load_images
from ntkcond.datasets.source import Source
from ntkcond.datasets.torchvision_data import datasets

SOURCE = Source(
    title="MNIST",
    samples=60_000,
    features=784,
    shape=(1, 28, 28),
    test_samples=10_000,
    raw_files=(
        "MNIST/raw/train-images-idx3-ubyte.gz",
        "MNIST/raw/train-labels-idx1-ubyte.gz",
        "MNIST/raw/t10k-images-idx3-ubyte.gz",
        "MNIST/raw/t10k-labels-idx1-ubyte.gz",
    ),
    options={"scale", "mirrors"},
)

load = partial(load_images, datasets.MNIST)
downloads = partial(images_at, datasets.MNIST)
