import os
import threading
import time

import pytest
from threadpoolctl import threadpool_limits

from skpursuit.numerics import threads
from skpursuit.numerics.blas import libraries, single_threaded_blas


@pytest.mark.parametrize("total", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("parts", [1, 2, 3, 50])
def test_cut_covers_everything_once_at_aligned_places(total, parts):
    ranges = threads.split_range(total, 64, parts)
    assert [i for lo, hi in ranges for i in range(lo, hi)] == list(range(total))
    assert len(ranges) <= parts
    assert all(lo % 64 == 0 for lo, _ in ranges)


def test_count_follows_threadpool_limits():
    with threadpool_limits(1, user_api="blas"):
        assert threads.thread_count() == 1
    with threadpool_limits(2, user_api="blas"):
        assert threads.thread_count() == 2


def test_kernels_keep_their_threads_while_blas_has_one():
    with threadpool_limits(2, user_api="blas"), single_threaded_blas():
        assert {library.num_threads for library in libraries()} == {1}
        assert threads.thread_count() == 2
        with threads.no_nested_threads():
            assert threads.thread_count() == 1
        assert threads.thread_count() == 2


@pytest.mark.parametrize("workers", [1, 2, None])
@pytest.mark.parametrize("work", [1, 10 * threads.MIN_PARALLEL_WORK])
def test_pieces_that_are_shared_are_each_done_once_and_use_no_other_threads(workers, work):
    with threadpool_limits(2, user_api="blas"):
        seen = []
        pieces = [(i, 2 * i) for i in range(5)]
        threads.run_tasks(lambda a, b: seen.append((a, b, threads.thread_count())), pieces, work, workers)
        assert sorted(seen) == [(i, 2 * i, 1) for i in range(5)]
        assert threads.thread_count() == 2


def test_little_work_and_one_job_stay_on_the_callers_thread():
    def users(work):
        seen = set()
        threads.run_tasks(lambda: (seen.add(threading.current_thread()), time.sleep(0.01)), [()] * 8, work)
        return seen

    with threadpool_limits(2, user_api="blas"):
        assert users(threads.MIN_PARALLEL_WORK - 1) == {threading.current_thread()}
        assert len(users(10 * threads.MIN_PARALLEL_WORK)) == 2
        with threads.respect_n_jobs(1):
            assert users(10 * threads.MIN_PARALLEL_WORK) == {threading.current_thread()}
        with threads.respect_n_jobs(None):
            assert len(users(10 * threads.MIN_PARALLEL_WORK)) == 2


def test_negative_numbers_of_threads_count_from_the_processors(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 4)
    assert [threads.extra_threads(10**9, n) for n in (-1, -3, -4, -9, 2)] == [3, 1, 0, 0, 1]


def test_without_blas_the_environment_decides(monkeypatch):
    monkeypatch.setattr(threads, "thread_counts", list)
    monkeypatch.setenv("OMP_NUM_THREADS", "3,1")
    assert threads.thread_count() == 3
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert 1 <= threads.thread_count() <= (os.cpu_count() or 1)


def test_all_threads_work_at_once_and_none_nests(monkeypatch):
    monkeypatch.setattr(
        threads,
        "thread_count",
        lambda real=threads.thread_count: 3 if threading.current_thread() is main else 1,
    )
    main, meet, names = threading.current_thread(), threading.Barrier(3, timeout=30), []

    def kernel(lo, hi):
        meet.wait()
        names.append(threading.current_thread().name)

    threads.parallel_for(kernel, 3, 1, 10 * threads.MIN_PARALLEL_WORK, ())
    assert len(set(names)) == 3


def test_long_work_is_cut_so_that_it_can_be_interrupted(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    calls = []

    def kernel(lo, hi):
        calls.append((lo, hi))
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.parallel_for(kernel, 100, 1, 10 * threads.MAX_KERNEL_WORK, ())
    assert calls == [(0, 10), (10, 20)]


def test_an_error_in_a_thread_is_raised_after_all_have_stopped(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    busy = set()

    def kernel(lo, hi):
        busy.add(lo)
        if lo == 50:
            busy.discard(lo)
            raise ValueError("from the kernel")
        busy.discard(lo)

    with pytest.raises(ValueError, match="from the kernel"):
        threads.parallel_for(kernel, 100, 1, 2 * threads.MIN_PARALLEL_WORK, ())
    assert not busy


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_its_own_pool(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    threads.parallel_for(lambda lo, hi: None, 2, 1, 10 * threads.MIN_PARALLEL_WORK, ())
    assert threads._pool is not None
    threads._forget()  # what a fork runs in the child; forking a threaded test process is not safe
    assert threads._pool is None
    seen = []
    threads.parallel_for(lambda lo, hi: seen.append(lo), 2, 1, 10 * threads.MIN_PARALLEL_WORK, ())
    assert sorted(seen) == [0, 1]


def test_a_busy_pool_keeps_nobody_waiting(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    monkeypatch.setattr(threads, "_pool", None)
    release, done = threading.Event(), []
    busy = threads._executor(1).submit(release.wait, 30)
    threads.parallel_for(lambda lo, hi: done.extend(range(lo, hi)), 40, 1, 10 * threads.MIN_PARALLEL_WORK, ())
    assert done == list(range(40))
    release.set()
    assert busy.result()
