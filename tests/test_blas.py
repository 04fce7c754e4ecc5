"""One thread of BLAS, whoever asks for it, and all of them again afterwards."""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 (loads its BLAS)
from threadpoolctl import threadpool_limits

from skpursuit import OMP, CoSaMP, GraSP, MatchingPursuit, as_design, datasets, minimize
from skpursuit.numerics import blas, threads
from skpursuit.numerics.blas import libraries, single_threaded_blas, thread_counts


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield
        assert set(now()) == {2}


def now():
    return [library.num_threads for library in libraries()]


def in_thread(function):
    """What a function returns in another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join(60)
    return found[0]


def test_every_thread_can_limit_blas():
    def inside():
        with single_threaded_blas():
            return now(), thread_counts()

    with single_threaded_blas():
        pass
    assert in_thread(inside) == ([1] * len(now()), [2] * len(now()))
    with single_threaded_blas():
        assert in_thread(inside) == ([1] * len(now()), [2] * len(now()))
        assert set(now()) == {1}


def test_the_last_of_several_gives_the_threads_back():
    first, second, entered = threading.Event(), threading.Event(), threading.Barrier(3, timeout=60)

    def stay(until):
        with single_threaded_blas():
            entered.wait()
            until.wait(60)

    stays = [threading.Thread(target=stay, args=(until,)) for until in (first, second)]
    for thread in stays:
        thread.start()
    entered.wait()
    first.set()
    stays[0].join(60)
    assert set(now()) == {1}
    second.set()
    stays[1].join(60)


def test_limits_set_meanwhile_stay():
    with single_threaded_blas():
        for library in libraries():
            library.set_num_threads(3)
    assert set(now()) == {3}
    for library in libraries():
        library.set_num_threads(2)


def test_fits_in_several_threads_leave_each_other_and_the_number_of_threads_alone():
    X, y, _ = datasets.make_sparse_signal(1000, 2000, 30, random_state=0)
    design, fits = as_design(X), {}

    def fit(k):
        fits[k] = minimize(design, y, OMP(n_nonzero_coefs=k), "exact")

    workers = [threading.Thread(target=fit, args=(k,)) for k in (20, 30, 25, 10)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join(120)
    for k in (20, 30, 25, 10):
        alone = minimize(X, y, OMP(n_nonzero_coefs=k), "exact")
        assert fits[k].support.tolist() == alone.support.tolist()
        assert fits[k].entries_read == alone.entries_read
    assert threads.thread_count() == 2


def test_bits_do_not_depend_on_the_thread_that_fits():
    X, y, _ = datasets.make_sparse_signal(20000, 100, 40, random_state=0)

    def fit():
        return minimize(X, y, OMP(n_nonzero_coefs=60), "certified").coef

    np.testing.assert_array_equal(fit(), in_thread(fit))


def test_an_interrupt_leaves_no_limit_behind():
    hits = 0
    for delay in np.linspace(1e-6, 6e-5, 400).tolist():
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            while True:
                with single_threaded_blas():
                    pass
        except KeyboardInterrupt:
            hits += 1
        assert set(now()) == {2}
    assert hits == 400


@pytest.fixture(autouse=True)
def alarms_are_interrupts():
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_is_not_inside():
    inside, out = threading.Event(), threading.Event()

    def stay():
        with single_threaded_blas():
            inside.set()
            out.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait(60)
    pid = os.fork()
    if pid == 0:
        with threadpool_limits(1):
            os._exit(10 * threads.thread_count() + (set(thread_counts()) == {1}))
    out.set()
    thread.join(60)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 11


@pytest.mark.parametrize("solver", [OMP(6), MatchingPursuit(max_iter=6), CoSaMP(3), GraSP(3)], ids=repr)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_run_limits_blas_once_however_many_steps_it_makes(solver, loss, monkeypatch):
    if loss == "logistic" and type(solver) is CoSaMP:
        pytest.skip("CoSaMP is least squares")
    entered, enter = [], blas._enter
    monkeypatch.setattr(blas, "_enter", lambda token: (entered.append(token), enter(token)))
    X, y, _ = datasets.make_sparse_signal(60, 80, 4, random_state=0)
    result = minimize(X, y if loss == "squared" else np.sign(y), solver, "exact", loss)
    assert result.n_iter > 1
    assert len(entered) == 2  # while the run is made, and while it goes
