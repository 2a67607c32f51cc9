"""Progress of a long job: one bar, on a terminal or in a notebook, and lines in the log."""

import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
SECONDS_BETWEEN_LINES = 30
DELAY = 2.0  # seconds without a bar

log = logging.getLogger("ntkcond")


class _Bar:
    """The bar of one call: work done of the work planned, in any unit. planned: None if nobody
    knows it; then the bar counts."""

    def __init__(self, label: str, planned: float | None) -> None:
        from tqdm.auto import tqdm  # in a notebook a widget; it loads asyncio

        self.done, self.planned = 0.0, planned
        of_known = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
        self.shown = tqdm(
            desc=label, total=None if planned is None else 100, leave=False, delay=DELAY,
            bar_format=None if planned is None else of_known, miniters=0, unit=" gradients",
            # None: where standard error is a terminal. Given a value, tqdm overlooks its variable
            disable=bool(os.environ.get("TQDM_DISABLE")) or None,
        )  # fmt: skip

    def advance(self, by: float) -> None:
        self.done += by
        if self.planned is None:
            self.shown.update(by)
        else:  # a notebook's bar keeps the total that it began with: percent
            share = self.done / self.planned if self.planned else 0.0
            self.shown.update(100 * share - self.shown.n)


_SHOWN: ContextVar[_Bar | None] = ContextVar("shown", default=None)


@contextmanager
def bar(label: str, planned: float | None = 0.0) -> Iterator[None]:
    """One bar for all within, if it takes more than `DELAY` seconds: within another one, none.

    planned: the work, to which `expect` adds; None if nobody knows it.
    """
    if _SHOWN.get() is not None:
        yield
        return
    one = _Bar(label, planned)
    before = _SHOWN.set(one)
    try:
        yield
        if one.planned is not None:
            one.advance(one.planned - one.done)
    finally:
        _SHOWN.reset(before)
        one.shown.close()


def expect(more: float) -> None:
    """Adds to the work that the bar is of, if there is one."""
    one = _SHOWN.get()
    if one is not None and one.planned is not None:
        one.planned += more


def advance(by: float) -> None:
    """Moves the bar, if there is one. 0: shows it, if it is time."""
    one = _SHOWN.get()
    if one is not None:
        one.advance(by)


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """The items; shows the progress as they are taken, and logs it every 30 s."""
    started = last = time.monotonic()
    hidden = not sys.stderr.isatty() or _SHOWN.get() is not None
    # miniters=1: a tile may take seconds
    each = tqdm(items, label, total, leave=False, disable=hidden, miniters=1, delay=DELAY)
    for done, item in enumerate(each, start=1):
        yield item
        advance(0)
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
