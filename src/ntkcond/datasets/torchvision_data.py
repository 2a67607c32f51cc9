"""torchvision's data set classes, importable beside any build of torch.

Wheels of torchvision hold compiled operators for one build of torch (CPU or CUDA). With another
build they do not load, and `import torchvision` fails when it registers two of them. Data sets
need none of them: with their signatures declared, the import succeeds.
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
except RuntimeError:  # operators for another build of torch
    for _name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[_name]
    _DECLARATIONS = torch.library.Library("torchvision", "DEF")  # valid while this object lives
    for _operator in ("nms", "qnms"):
        _DECLARATIONS.define(f"{_operator}(Tensor dets, Tensor scores, float iou) -> Tensor")
    from torchvision import datasets
from torchvision.datasets.utils import calculate_md5, download_url

__all__ = ["Download", "datasets", "fetch", "verified"]

TIMEOUT_S = 30


class Download(NamedTuple):
    """A raw file: addresses to try in turn, and its published md5."""

    urls: list[str]
    md5: str


def verified(data_dir: Path, downloads: dict[str, Download]) -> list[Path]:
    """Paths of the files named in `downloads` below data_dir, after a check of their md5.

    Raises UserError for the first that is missing or damaged.
    """
    paths = [data_dir / name for name in downloads]
    for path, download in zip(paths, downloads.values(), strict=True):
        if not path.is_file():
            raise UserError(
                f"{path}: no such file. Put the original file there, set data_dir to the folder"
                " that has it, or run snakemake, which downloads it"
            )
        _check_whole(path, download.md5)
    return paths


def _check_whole(path: Path, md5: str) -> None:
    if calculate_md5(path) != md5:
        raise UserError(
            f"{path}: damaged, its md5 is not the published {md5}. Delete it and run again:"
            " snakemake downloads it again"
        )


def fetch(path: Path, download: Download) -> None:
    """Downloads a file to `path`; a complete file at `path` stays untouched.

    Works in a temporary folder next to `path`: a broken download leaves nothing behind.
    Raises UserError with all answers if no address serves the file.
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
        " mirrors; or take the data set out of figures"
    )


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """torchvision's downloads have no time limit: a dead server would block them for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_S)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
