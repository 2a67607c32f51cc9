"""Progress of a long job: a bar on a terminal, and lines in the log."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
SECONDS_BETWEEN_LINES = 30

log = logging.getLogger("ntkcond")


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """The items; shows the progress as they are taken, and logs it every 30 s."""
    started = last = time.monotonic()
    # miniters=1: a tile may take seconds
    bar = tqdm(items, label, total, leave=False, disable=not sys.stderr.isatty(), miniters=1)
    for done, item in enumerate(bar, start=1):
        yield item
        now = time.monotonic()
        if now - last > SECONDS_BETWEEN_LINES:
            left = (now - started) / done * (total - done)
            log.info("%s: %d of %d, about %.0f s left", label, done, total, left)
            last = now
    log.info("%s: done in %.1f s", label, time.monotonic() - started)


@contextmanager
def timed(label: str) -> Iterator[None]:
    """Logs how long a part of a job took."""
    started = time.monotonic()
    yield
    log.info("%s: done in %.1f s", label, time.monotonic() - started)
