"""`verbose` and `time_limit` of every estimator: one mechanism, `progress.py`."""

import io
import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import skpursuit as sp
from skpursuit import progress
from skpursuit.coding.dictionary_update import SufficientStatistics
from skpursuit.problem.state import Status

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 20))
Y = X[:, 3] - 2 * X[:, 7] + 0.1 * RNG.standard_normal(60)
LABELS = np.where(Y > 0, "yes", "no")
FITS = {
    "OMP": lambda **o: sp.OrthogonalMatchingPursuit(n_nonzero_coefs=5, **o).fit(X, Y),
    "OMPCV": lambda **o: sp.OrthogonalMatchingPursuitCV(**o).fit(X, Y),
    "regressor": lambda **o: sp.PursuitRegressor(**o).fit(X, Y),
    "classifier": lambda **o: sp.PursuitClassifier(**o).fit(X, LABELS),
    "regressor cv": lambda **o: sp.PursuitRegressorCV(**o).fit(X, Y),
    "regressor cv, named": lambda **o: sp.PursuitRegressorCV(solver=["omp", "cosamp"], **o).fit(X, Y),
    "classifier cv": lambda **o: sp.PursuitClassifierCV(**o).fit(X, LABELS),
    "selector": lambda **o: sp.PursuitFeatureSelector(n_resamples=4, random_state=0, **o).fit(X, Y),
    "selector cv": lambda **o: sp.PursuitFeatureSelector(n_features_to_select="cv", **o).fit(X, Y),
    "learner": lambda **o: sp.DictionaryLearner(8, 2, random_state=0, **o).fit(X),
    "learner, further": lambda **o: sp.DictionaryLearner(8, 2, random_state=0, **o).partial_fit(X),
    "coder": lambda **o: sp.PursuitCoder(np.eye(20), 2, **o).transform(X),
}


@pytest.mark.parametrize("name", FITS)
def test_no_time_gives_a_model_and_a_warning(name):
    with pytest.warns(ConvergenceWarning, match=r"stopped by time_limit=0; raise it"):
        FITS[name](time_limit=0)


@pytest.mark.parametrize("name", FITS)
def test_enough_time_changes_nothing(name):
    first, second = (vars(FITS[name](**options)) for options in ({}, {"time_limit": 1e4}))
    for key in ("coef_", "scores_", "components_", "data"):
        np.testing.assert_array_equal(first.get(key, 0), second.get(key, 0))


def test_codes_for_which_there_was_no_time_are_zeros():
    with pytest.warns(ConvergenceWarning):
        codes = FITS["coder"](time_limit=0)
    assert codes.shape == (60, 20)
    assert codes.nnz == 0


def test_the_chosen_model_is_fitted_though_the_time_is_over():
    with pytest.warns(ConvergenceWarning):
        model = sp.PursuitRegressorCV(time_limit=0, null_test=False).fit(X, Y)
    assert model.coef_.any()
    with pytest.warns(ConvergenceWarning):
        assert FITS["regressor"](time_limit=0).status_ is Status.TIME_LIMIT


def spoken(monkeypatch, name, tty=False, **options):
    """What a fit writes if every call takes longer than the patience."""
    stream, threads = io.StringIO(), []
    stream.isatty = lambda: tty
    monkeypatch.setattr(progress, "QUIET_SECONDS", 1e-4)
    monkeypatch.setattr("sys.stderr", stream)
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: (threads.append(self), start(self)))
    FITS[name](**options)
    for thread in threads:
        if thread.daemon:
            thread.join(5)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["regressor cv", "regressor cv, named", "classifier cv", "learner"])
def test_verbose_says_what_is_done(monkeypatch, name):
    text = spoken(monkeypatch, name, verbose=True)
    assert text.startswith(type(FITS[name]()).__name__ + ": ")
    assert text.endswith((" s)\n", " s left)\n"))


def test_auto_speaks_in_a_terminal(monkeypatch):
    assert spoken(monkeypatch, "regressor cv", tty=True, verbose="auto").startswith("PursuitRegressorCV: ")


def test_auto_is_silent_where_nobody_looks(monkeypatch):
    assert spoken(monkeypatch, "regressor cv", verbose="auto") == ""
    assert spoken(monkeypatch, "OMPCV", tty=True) == "", "the drop-in is silent, as scikit-learn's"


def test_a_share_of_the_time():
    with progress.monitoring("test", time_limit=1e4) as watch:
        with watch.time_share(0.0):
            assert progress.current_monitor().out_of_time()
        assert not watch.out_of_time()
        with watch.time_share(None):
            assert progress.current_monitor().end is None
        watch.stopped = False


@pytest.mark.parametrize(("limits", "who"), [((0, 1e4), "outer"), ((1e4, 0), "inner")])
def test_a_watch_inside_another_ends_with_it_and_is_heard_through_it(limits, who):
    def nested():
        with progress.monitoring("outer", time_limit=limits[0]) as outer:
            with progress.monitoring("inner", time_limit=limits[1]) as inner:
                inner.set_message("half of {}", "it")
                assert inner.out_of_time()
            assert str(outer) == "outer: half of it (0 s)"

    with pytest.warns(ConvergenceWarning, match=f"{who}: stopped by time_limit=0;") as caught:
        nested()
    assert len(caught) == 1


@pytest.mark.parametrize("name", ["learner", "learner, further"])
def test_a_learner_without_time_has_learned_nothing_and_says_so(name):
    with pytest.warns(ConvergenceWarning):
        model = FITS[name](time_limit=0)
    assert (model.n_iter_, model.errors_, model.n_replaced_) == (0, [], 0)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_time_ends_learning_between_batches(monkeypatch, method):
    """A clock that goes on by a second whenever a batch is taken: the time is over inside of the second."""
    now, sums, step = [0.0], [], SufficientStatistics.step

    def slow(*args):
        now[0] += 1.0
        sums.append(step(*args))
        return sums[-1]

    options = {"n_components": 8, "n_nonzero_coefs": 2, "random_state": 0, "batch_size": 20, "max_iter": 2}
    monkeypatch.setattr(SufficientStatistics, "step", slow)
    getattr(sp.DictionaryLearner(**options), method)(X)
    residual, energy = sum(sums[:2])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    now[0] = 0.0
    with pytest.warns(ConvergenceWarning):
        model = getattr(sp.DictionaryLearner(time_limit=1.5, **options), method)(X)
    assert now == [2.0]
    assert (model.n_iter_, model.errors_) == (1, [residual / energy])


COUNTING = ("OMPCV", "regressor cv", "regressor cv, named", "classifier cv", "selector")


@pytest.mark.parametrize("name", COUNTING)
def test_a_call_around_others_hears_how_far_they_are(name, monkeypatch):
    heard, count = [], progress.ProgressMonitor.advance_by

    def listening(self, parts=1.0):
        count(self, parts)
        heard.append(watch.fraction_done)

    monkeypatch.setattr(progress.ProgressMonitor, "advance_by", listening)
    with progress.monitoring("all of it") as watch:
        FITS[name]()
    assert len(heard) >= 4
    assert heard == sorted(heard)
    assert 0.5 < heard[-1] <= 0.99
    assert watch.fraction_done is None


def test_what_a_call_counts_itself_is_not_changed_by_those_inside():
    with progress.monitoring("all of it") as watch:
        watch.set_total(4)
        watch.advance_by()
        FITS["regressor cv"]()
        assert watch.fraction_done == 0.25
        assert "about" in str(watch)
