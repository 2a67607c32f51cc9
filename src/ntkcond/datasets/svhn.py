"""SVHN: 73,257 cropped street-view house numbers of 32 × 32 pixels in colour (Netzer et al., 2011).

Its authors allow non-commercial use only. The real files were not available to this project so far:
this reader is tested on files of the same format only.
"""

from pathlib import Path

from ntkcond.datasets.samples import Raw
from ntkcond.datasets.source import Source
from ntkcond.datasets.torchvision_data import Download, datasets, verified
from ntkcond.run.digests import sha256_of

SOURCE = Source(
    title="SVHN",
    samples=73_257,
    features=3072,
    shape=(3, 32, 32),
    test_samples=26_032,
    raw_files=("SVHN/train_32x32.mat", "SVHN/test_32x32.mat"),
    options={"scale", "mirrors"},
)


def load(data_dir: Path, options: dict) -> Raw:
    """Training and test images as rows of 3 × 32 × 32 values 0..255; label 0 is the digit 0."""
    paths = verified(data_dir, downloads())
    train, test = (datasets.SVHN(data_dir / "SVHN", split) for split in ("train", "test"))
    return Raw(
        train.data.reshape(len(train.data), -1),
        train.labels,
        (0.0, 255.0),
        "SVHN, original .mat files (format 2, cropped digits)",
        test.data.reshape(len(test.data), -1),
        test.labels,
        {path.name: sha256_of(path) for path in paths},
    )


def downloads(mirrors: list[str] | None = None) -> dict[str, Download]:
    """Addresses of each raw file, by its path below data_dir. mirrors: in place of the authors'."""
    files = {}
    for split in ("train", "test"):
        url, name, md5 = datasets.SVHN.split_list[split]
        urls = [f"{mirror.rstrip('/')}/{name}" for mirror in mirrors or [url.rpartition("/")[0]]]
        files[f"SVHN/{name}"] = Download(urls, md5)
    return files
