"""The number of threads of BLAS, and one alone where more would do harm."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_holders: set[object] = set()  # who is in `single_threaded_blas`
_before: list[int] = []  # threads of each library before the first of them came


@cache
def libraries() -> list[Any]:
    """The BLAS libraries this process has loaded."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def thread_counts() -> list[int]:
    """Threads of each BLAS library as the caller wants them, also inside `single_threaded_blas`."""
    # While a thread is inside, limits that others set are not seen.
    with _lock:
        return [threads for threads in _before or _counts() if threads]


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Run BLAS on one thread, in every thread of the process while any is inside."""
    # For bits that do not depend on the number of threads; and around kernels, which have threads of their
    # own: those of BLAS stay awake for a while after a product, and take the processors from them.
    token = object()
    try:
        with _lock:
            _enter(token)
        yield
    finally:
        interrupted = False
        while True:
            try:
                with _lock:
                    _leave(token)
                break
            except KeyboardInterrupt:  # not before BLAS has its threads again
                interrupted = True
        if interrupted:
            raise KeyboardInterrupt


def _enter(token: object) -> None:
    global _before
    _holders.add(token)
    if not _before:
        _before = _counts()
        _set(_before, [1] * len(_before))


def _leave(token: object) -> None:
    global _before
    if _holders == {token}:
        now = _counts()
        # Where it is no longer 1, somebody has set a limit meanwhile.
        _set(now, [was if count == 1 else count for was, count in zip(_before, now)])
        _before = []
    _holders.discard(token)


def _counts() -> list[int]:
    return [library.num_threads for library in libraries()]


def _set(now: list[int], wanted: list[int]) -> None:
    for library, count, threads in zip(libraries(), now, wanted):
        if count != threads and count and threads:
            clear = getattr(library, "clear_controlling_thread", lambda force: None)
            clear(force=True)  # from version 3.8 on only one thread may set the number, until this is called
            library.set_num_threads(threads)
            clear(force=True)


def _forget() -> None:
    """After a fork nobody else is inside: the child has one thread of Python."""
    global _lock, _before
    _lock, before, _before = Lock(), _before, []
    _holders.clear()
    _set(_counts(), before)


def after_fork(forget: Callable[[], None]) -> None:
    """Have a process that was forked call this, where the system has forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


after_fork(_forget)
