"""The number of threads of BLAS, and one alone where more would do harm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_depth = 0
_before: list[int] = []


@cache
def libraries() -> list[Any]:
    """The BLAS libraries this process has loaded."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def thread_counts() -> list[int]:
    """Threads of each BLAS library as the caller wants them, also inside `one_thread`."""
    before = _before if _depth else [library.num_threads for library in libraries()]
    return [threads for threads in before if threads]


@contextmanager
def one_thread() -> Iterator[None]:
    """Run BLAS on one thread, in every thread of the process while any is inside.

    For bits that do not depend on the number of threads; and around kernels, which have threads of their own:
    those of BLAS stay awake for a while after a product, and take the processors from them.
    """
    global _depth, _before
    with _lock:
        if _depth == 0:
            _before = [library.num_threads for library in libraries()]
            for library, threads in zip(libraries(), _before):
                if threads != 1:
                    library.set_num_threads(1)
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for library, threads in zip(libraries(), _before):
                    if threads != 1:
                        library.set_num_threads(threads)
