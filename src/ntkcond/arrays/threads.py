"""Tasks for a pool of threads, each with one thread of BLAS.

The threads of BLAS share each product and wait for each other at its end. Beside a busy process all
wait for the one that has no processor. The threads here take the next task as they come free.
"""

import contextvars
import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ntkcond.arrays.backend import Array, is_numpy

T = TypeVar("T")


@functools.cache
def _blas() -> Any:
    """The BLAS libraries of this process."""
    import threadpoolctl

    return threadpoolctl.ThreadpoolController().select(user_api="blas")


def threads_for(array: Array) -> int:
    """Threads that may compute with arrays of this kind: as many as NumPy's BLAS has; one for
    torch, which has threads of its own."""
    if not is_numpy(array):
        return 1
    return min((library["num_threads"] for library in _blas().info()), default=1)


class _Shared(Iterator[T]):
    """An iterator that several threads may ask."""

    def __init__(self, tasks: Iterable[T]) -> None:
        self.tasks, self.lock = iter(tasks), threading.Lock()

    def __next__(self) -> T:
        with self.lock:
            return next(self.tasks)

    def end(self) -> None:
        with self.lock:
            self.tasks = iter(())


def share(work: Callable[[Iterator[T]], None], tasks: Iterable[T], threads: int) -> None:
    """Calls `work` in each of some threads, all with the same iterator: each takes the next task.

    What a thread needs for itself, such as buffers, `work` makes before its first task. An error in
    one ends all, and is raised here.
    """
    shared = _Shared(tasks)
    if threads == 1:
        work(shared)
        return

    def until_error() -> None:
        try:
            work(shared)
        except BaseException:
            shared.end()
            raise

    with _blas().limit(limits=1), ThreadPoolExecutor(threads - 1) as pool:
        # NumPy's error state is part of the context
        others = [
            pool.submit(contextvars.copy_context().run, until_error) for _ in range(1, threads)
        ]
        until_error()
    for other in others:
        other.result()
