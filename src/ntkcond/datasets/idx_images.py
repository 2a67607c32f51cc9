"""MNIST and its drop-in replacements: four .gz files in the idx format, read by torchvision."""

import tempfile
from pathlib import Path

from ntkcond.datasets.samples import Raw
from ntkcond.datasets.torchvision_data import Download, datasets, verified
from ntkcond.run.digests import sha256_of


def images_at(kind: type[datasets.MNIST], mirrors: list[str] | None = None) -> dict[str, Download]:
    """Addresses of each raw file, by its path below data_dir. mirrors: instead of torchvision's."""
    return {
        f"{kind.__name__}/raw/{name}": Download(
            [f"{mirror.rstrip('/')}/{name}" for mirror in mirrors or kind.mirrors], md5
        )
        for name, md5 in kind.resources
    }


def load_images(kind: type[datasets.MNIST], data_dir: Path, options: dict) -> Raw:
    """Training and test images as rows of grey levels 0..255, with their labels.

    torchvision unpacks the .gz files in their folder, but data_dir may be read-only or shared:
    torchvision gets a temporary folder of links instead.
    """
    paths = verified(data_dir, images_at(kind))
    with tempfile.TemporaryDirectory(prefix="ntkcond-") as root:
        folder = Path(root, kind.__name__, "raw")
        folder.mkdir(parents=True)
        for path in paths:
            (folder / path.name).symlink_to(path.resolve())
        # download=True unpacks files that are complete (checked above) and downloads nothing
        train, test = (kind(root, train=part, download=True) for part in (True, False))
    return Raw(
        train.data.flatten(1).numpy(),
        train.targets.numpy(),
        (0.0, 255.0),
        f"{kind.__name__}, original idx files",
        test.data.flatten(1).numpy(),
        test.targets.numpy(),
        {path.name: sha256_of(path) for path in paths},
    )
