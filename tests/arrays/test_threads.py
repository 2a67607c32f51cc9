"""Tasks shared by threads."""

import threading

import numpy as np
import pytest

from ntkcond.arrays.threads import share, threads_for


def test_each_task_is_done_once_by_threads_that_run_at_the_same_time():
    both, done = threading.Barrier(2, timeout=30), []

    def work(tasks):
        both.wait()
        done.extend(tasks)

    share(work, range(1000), threads=2)
    assert sorted(done) == list(range(1000))


def test_an_error_in_one_thread_ends_all_and_is_raised():
    first = threading.Barrier(2, timeout=30)
    done = []

    def work(tasks):
        first.wait()
        for task in tasks:
            if threading.current_thread() is not threading.main_thread():
                raise ZeroDivisionError
            done.append(task)
            if len(done) == 2:
                threading.Event().wait(0.2)  # the other has failed by then

    with pytest.raises(ZeroDivisionError):
        share(work, range(10**9), threads=2)
    assert len(done) < 10**9


def test_threads_have_one_thread_of_blas_and_the_error_state_of_the_caller():
    seen, both = [], threading.Barrier(2, timeout=30)

    def work(tasks):
        both.wait()
        seen.append((threads_for(np.empty(0)), np.geterr()["over"]))

    before = threads_for(np.empty(0))
    with np.errstate(over="raise"):
        share(work, range(2), threads=2)
    assert seen == [(1, "raise")] * 2
    assert threads_for(np.empty(0)) == before
