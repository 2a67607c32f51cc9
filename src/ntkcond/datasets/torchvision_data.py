"""torchvision's data set classes, importable beside any build of torch.

Wheels of torchvision hold compiled operators for one build of torch (CPU or CUDA). Beside another
build they do not load, and `import torchvision` then fails as it registers two of them, though
data sets need none. Declaring their signatures makes the import go through.
"""

import contextlib
import socket
import sys
import tempfile
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError

import torch

from ntkcond.run.errors import UserError
from ntkcond.run.files import explained

try:
    from torchvision import datasets
except RuntimeError:  # its operators are built for another torch
    for _name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[_name]
    _DECLARATIONS = torch.library.Library("torchvision", "DEF")  # they live as long as this object
    for _operator in ("nms", "qnms"):
        _DECLARATIONS.define(f"{_operator}(Tensor dets, Tensor scores, float iou) -> Tensor")
    from torchvision import datasets
from torchvision.datasets.utils import calculate_md5, download_url

__all__ = ["Download", "datasets", "fetch", "verified"]

TIMEOUT_S = 30


class Download(NamedTuple):
    """A raw file that can be had: addresses to try in turn, and its published md5."""

    urls: list[str]
    md5: str


def verified(data_dir: Path, downloads: dict[str, Download]) -> list[Path]:
    """The files named in `downloads` below data_dir, once each is known to be there and whole.

    Raises UserError naming the first that is not.
    """
    paths = [data_dir / name for name in downloads]
    for path, download in zip(paths, downloads.values(), strict=True):
        if not path.is_file():
            raise UserError(
                f"{path}: not there. Put the original file there, or set data_dir to the folder"
                " that has it; snakemake downloads it otherwise"
            )
        _check_whole(path, download.md5)
    return paths


def _check_whole(path: Path, md5: str) -> None:
    if calculate_md5(path) != md5:
        raise UserError(
            f"{path}: damaged, its md5 is not the published {md5}. Delete it and run again: it"
            " will be downloaded anew"
        )


def fetch(path: Path, download: Download) -> None:
    """Downloads a file to `path`; one that is there and whole stays untouched.

    Works in a temporary folder beside its place: a broken download leaves nothing behind.
    Raises UserError when no address serves it, with what each of them answered.
    """
    if path.is_file():
        _check_whole(path, download.md5)
        return
    answers = []
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".download-", dir=path.parent) as folder:
            for url in download.urls:
                try:
                    with _patience():
                        download_url(url, folder, path.name, download.md5)
                except (RuntimeError, HTTPException, URLError, TimeoutError, ConnectionError) as e:
                    answers.append(f"{url}: {' '.join(str(e).split())}")
                else:
                    Path(folder, path.name).replace(path)
                    return
    raise UserError(
        f"{path}: the download failed ({'; '.join(answers)}). Without a network, put the original"
        " file there, set data_dir to a folder that has it, or name a mirror in the data set's"
        " mirrors"
    )


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """torchvision's downloads have no time limit of their own: a dead server would hang them."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
