"""Threads for kernels that release the GIL: as many as BLAS would use, none for small work.

A kernel is given a range of independent results (columns), so how the range is cut changes nothing in the
bits of any of them. Sums that do cross blocks must be added in block order by the caller.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import pairwise
from typing import TypeVar

from skpursuit.numerics.blas import after_fork, single_threaded_blas, thread_counts
from skpursuit.numerics.tuning import CHUNKS_PER_THREAD, MAX_KERNEL_WORK, MIN_PARALLEL_WORK

T = TypeVar("T")
Tasks = Sequence[tuple[object, ...]]  # the arguments of each
_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_thread_state = threading.local()


def wait_interruptibly(future: Future[T]) -> T:
    """What a future gives; Ctrl-C is answered while it is waited for, also where another thread heard it."""
    while not wait([future], timeout=0.2).done:
        pass
    return future.result()


def thread_count() -> int:
    """The number of threads that BLAS may use, as ``threadpoolctl.threadpool_limits`` sets it, at least 1."""
    # It is 1 inside `no_nested_threads`, as in a task of `parallel_for`, so that nothing nests.
    if getattr(_thread_state, "task", False):
        return 1
    if counts := thread_counts():
        return max(1, min(counts))
    from joblib import cpu_count

    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]  # there is no BLAS that can be asked
    return int(asked) if asked.isdigit() and int(asked) > 0 else cpu_count()


@contextmanager
def no_nested_threads() -> Iterator[None]:
    """Kernels called inside, by this thread, use no other."""
    before = getattr(_thread_state, "task", False)
    _thread_state.task = True
    try:
        yield
    finally:
        _thread_state.task = before


def respect_n_jobs(n_jobs: int | None) -> AbstractContextManager[None]:
    """One thread in all where a caller asks for one job; else as many as BLAS would use."""
    return no_nested_threads() if n_jobs == 1 else nullcontext()


def split_range(total: int, align: int, parts: int) -> list[tuple[int, int]]:
    """Ranges that cover 0 to total in at most `parts` nearly equal pieces, cut at multiples of `align`."""
    units = -(-total // align)
    parts = max(1, min(parts, units))
    edges = [min(total, units * p // parts * align) for p in range(parts + 1)]
    return list(pairwise(edges))


def parallel_for(
    kernel: Callable[..., object], total: int, align: int, work: int, args: tuple[object, ...]
) -> None:
    """Call ``kernel(lo, hi, *args)`` on ranges that cover 0 to total, on several threads if that pays.

    The kernel releases the GIL and computes results lo to hi, each independent of the others. Ranges start at
    multiples of `align`. `work` is the multiply-adds of the whole call: below `MIN_PARALLEL_WORK` there is
    one range; on several threads, and beyond `MAX_KERNEL_WORK`, there are several.
    """
    if work < MIN_PARALLEL_WORK:  # many such calls a selection: no queue for them
        kernel(0, total, *args)
        return
    others = extra_threads(work)
    pieces = CHUNKS_PER_THREAD * min(others + 1, work // MIN_PARALLEL_WORK) if others else 1
    ranges = split_range(total, align, max(pieces, work // MAX_KERNEL_WORK))
    _share(lambda lo, hi: kernel(lo, hi, *args), ranges, min(others, len(ranges) - 1))


def run_tasks(task: Callable[..., object], tasks: Tasks, work: int, n_threads: int | None = None) -> None:
    """Call ``task(*piece)`` for every piece, on several threads if that pays.

    The caller fixes the pieces from the data alone, so that the number of threads changes no bit even where
    a result depends on how the work is cut, as the sums of a BLAS product do. A task must release the GIL to
    gain anything; BLAS uses one thread in it. Unlike the threads of BLAS, which wait for each other and spin
    while they wait, a thread that is late here leaves its pieces to the others.

    `work` is the multiply-adds of all calls: below `MIN_PARALLEL_WORK` the caller's own thread makes them. At
    most `n_threads` are used, by default as many as BLAS would; -1 is one per processor, as in joblib.
    """
    others = min(extra_threads(work, n_threads), len(tasks) - 1)
    with single_threaded_blas():
        _share(task, tasks, others)


def _share(task: Callable[..., object], tasks: Tasks, others: int) -> None:
    """Do the pieces with so many other threads."""
    todo, begun = deque(tasks), list[Future[None]]()
    with suppress(RuntimeError):  # the interpreter is about to exit, and starts no threads
        for _ in range(others):
            begun.append(_executor(others).submit(_drain, task, todo))
    try:
        _drain(task, todo)
    finally:  # the caller must not go on while a thread still writes
        started = [other for other in begun if not other.cancel()]
        wait(started)
    for other in started:
        other.result()


def extra_threads(work: int, n_threads: int | None = None) -> int:
    """Other threads that so many multiply-adds are shared with."""
    if work < MIN_PARALLEL_WORK:
        return 0
    asked = n_threads or thread_count()
    if asked < 0:
        from joblib import cpu_count

        asked = max(1, cpu_count() + 1 + asked)
    return min(asked, work // (MIN_PARALLEL_WORK // 2)) - 1


def _drain(task: Callable[..., object], todo: deque[tuple[object, ...]]) -> None:
    """Take pieces until none is left; whoever fails or is interrupted leaves none to the others."""
    try:
        with no_nested_threads():
            while True:
                try:
                    piece = todo.popleft()
                except IndexError:
                    return
                task(*piece)
    finally:
        todo.clear()


def _executor(size: int) -> ThreadPoolExecutor:
    """Return the pool of the process, grown to `size` when needed. Idle threads cost nothing."""
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < size:
            _pool, _pool_size = ThreadPoolExecutor(size, thread_name_prefix="skpursuit"), size
        return _pool


def _forget() -> None:
    """After a fork the child has no threads: it starts its own pool."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
    _thread_state.task = False


after_fork(_forget)
