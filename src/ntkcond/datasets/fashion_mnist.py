"""Fashion-MNIST: 60,000 pictures of clothes of 28 × 28 pixels (Xiao et al., 2017)."""

from functools import partial

from ntkcond.datasets.idx_images import images_at, load_images
from ntkcond.datasets.source import Source
from ntkcond.datasets.torchvision_data import datasets

SOURCE = Source(
    title="Fashion-MNIST",
    samples=60_000,
    features=784,
    shape=(1, 28, 28),
    test_samples=10_000,
    raw_files=(
        "FashionMNIST/raw/train-images-idx3-ubyte.gz",
        "FashionMNIST/raw/train-labels-idx1-ubyte.gz",
        "FashionMNIST/raw/t10k-images-idx3-ubyte.gz",
        "FashionMNIST/raw/t10k-labels-idx1-ubyte.gz",
    ),
    options={"scale", "mirrors"},
)

load = partial(load_images, datasets.FashionMNIST)
downloads = partial(images_at, datasets.FashionMNIST)
