"""Every parameter of every public class and function refuses what it cannot be, and says its name."""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest

import skpursuit
from skpursuit import L1Ball, Solver

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 6))
Y = X[:, 1] + 0.1 * RNG.standard_normal(30)
LABELS = np.where(Y > 0, 1.0, -1.0)

BAD = {
    "object": object(),
    "nan": float("nan"),
    "inf": float("inf"),
    "huge": 10**400,
    "negative": -3,
    "complex": 1j,
    "text": "zzz",
    "bytes": b"x",
    "list": [1, 2],
    "repeated": [1, 1],
    "dict": {"a": 1},
    "floats": np.ones(2),
    "class": L1Ball,
}
# What of it is a right value of a parameter after all.
RIGHT = {
    "path": {"text"},
    "checkpoint": {"text"},
    "codes": {"text"},
    "interval": {"inf", "huge"},
    "eps": {"inf", "huge"},
    **{name: {"list"} for name in ("always_include", "exclude")},
    "feature_groups": {"list", "repeated", "floats"},
    "n_jobs": {"negative"},
    "ridges": {"list", "repeated", "floats"},
    "random_state": {"huge"},
    "PursuitCoder n_nonzero_coefs": {"list", "repeated"},  # one for each signal
    "PursuitCoder tol": {"list", "repeated", "floats"},
    # Functions are called with whatever they want, and a class can be called.
    "callback": {"class"},
    "scoring": {"class"},
}
NEEDED = {
    "constraint": L1Ball(1.0),
    "path": "run.ckpt",
    "dictionary": np.eye(6),
    "X": X,
    "y": Y,
    "solver": skpursuit.OMP(2),
    "Gram": X.T @ X,
    "Xy": X.T @ Y,
}
# Results and questions are not made by callers, base classes by nobody; data are for other tests.
NOT_MADE = {"Result", "Status", "Query", "Selection", "Selector", "Solver", "Loss", "PathDisplay"}
NOT_MADE |= {"Audit", "Proof", "SparseCodes", "audit", "certify"}  # whose data have tables of their own
DATA = {"orthogonal_mp": {"X", "y"}, "orthogonal_mp_gram": {"Gram", "Xy"}}


def takes(name):
    """The parameters of a public name, and what its callers must give."""
    parameters = inspect.signature(getattr(skpursuit, name)).parameters.values()
    given = {p.name: NEEDED[p.name] for p in parameters if p.default is p.empty and p.kind != p.VAR_KEYWORD}
    return {p.name: p for p in parameters if p.kind != p.VAR_KEYWORD}, given


def use(name, **given):
    if name == "PursuitFeatureSelector" and "cv" in given:
        given["n_features_to_select"] = "cv"
    thing = getattr(skpursuit, name)(**given)
    if hasattr(thing, "fit"):
        thing.fit(X, LABELS if "Classifier" in name else Y)


def public():
    for name in sorted(set(skpursuit.__all__) - NOT_MADE):
        if callable(getattr(skpursuit, name)):
            yield name


CASES = [
    (name, parameter)
    for name in public()
    for parameter in takes(name)[0]
    if parameter not in DATA.get(name, ())
]


@pytest.mark.parametrize(("name", "parameter"), CASES, ids=lambda value: value)
def test_bad_values_of_a_parameter_are_refused_by_its_name(name, parameter):
    given = takes(name)[1]
    for kind, value in BAD.items():
        if kind in RIGHT.get(f"{name} {parameter}", RIGHT.get(parameter, ())):
            continue
        with pytest.raises((TypeError, ValueError), match=rf"\b{parameter}\b"):
            use(name, **given | {parameter: value})


# The nearest values beside those that are allowed, and others that `BAD` does not have.
OUTSIDE = {
    "minimize": {"random_state": (True,)},
    "OMP": {"n_nonzero_coefs": (0, 2.5)},
    "OrthogonalMatchingPursuit": {"n_nonzero_coefs": (0,)},
    "MatchingPursuit": {"max_iter": (0,), "step_size": (0.0,)},
    "StoGradMP": {"batch_size": (0,)},
    "L1Ball": {"radius": (0.0,)},
    "Simplex": {"radius": (0.0,)},
    "Huber": {"delta": (0.0,)},
    "Quantile": {"level": (0.0, 1.0), "width": (0.0,)},
    "Tweedie": {"power": (3.0,)},
    "LUCB": {"budget": (0.0,), "delta": (1.0,), "batch_size": (0,)},
    "SuccessiveHalving": {"order": ("sorted",), "budget": (0.0,), "exact_fraction": (1.1,)},
    "Quantized": {"max_recomputed": (0,)},
    "Stability": {"rows": (0, True)},
    "ErrorBound": {"factor": (0,)},
    "Budget": {"fraction": (0, 1.5)},
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_values_just_outside_are_refused(name):
    for parameter, values in OUTSIDE[name].items():
        for value in values:
            with pytest.raises((TypeError, ValueError), match=rf"\b{parameter}\b"):
                use(name, **takes(name)[1] | {parameter: value})


@pytest.mark.parametrize("name", list(public()))
def test_what_is_needed_is_enough(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    use(name, **takes(name)[1])


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (skpursuit.PursuitRegressor(n_nonzero_coefs=0), "a whole number of at least 1 or None, got 0"),
        (skpursuit.PursuitRegressor(ridge=-1.0), "a number of at least 0 or None, got -1.0"),
        (skpursuit.PursuitRegressor(solver="lars"), "'omp' or 'mp' or .* or a Solver, got 'lars'"),
        (skpursuit.PursuitRegressorCV(solver="fw"), "solvers that take n_nonzero_coefs, .*, got 'fw'"),
        (skpursuit.PursuitRegressorCV(solver=[]), "solvers that take n_nonzero_coefs"),
        (skpursuit.PursuitRegressorCV(ridges=[0.1, -1.0]), "ridges must be a number of at least 0"),
        (skpursuit.PursuitRegressorCV(ridges=[]), "ridges must be .* or several"),
        (skpursuit.PursuitRegressorCV(max_nonzero_coefs=True), "max_nonzero_coefs.*got True"),
        (skpursuit.PursuitRegressorCV(n_jobs=0), "n_jobs"),
        (skpursuit.PursuitRegressorCV(scoring="gcv"), "scoring must be .*, got 'gcv'"),
        (skpursuit.PursuitClassifier(multi_class="all"), "'ovr' or 'ovr_shared' or 'multinomial'"),
        (skpursuit.PursuitClassifier(class_weight={-1: -2.0}), "class_weight must be .* or a dict"),
        (skpursuit.PursuitFeatureSelector(n_resamples=2, threshold=0.5), "above 0.5 and at most 1"),
        (skpursuit.PursuitFeatureSelector(loss="none"), "unknown loss"),
    ],
    ids=repr,
)
def test_messages_say_what_is_allowed(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, LABELS)


def test_flags_are_true_or_false():
    flags = [(name, p) for name, p in CASES if isinstance(takes(name)[0][p].default, bool) and p != "verbose"]
    assert len(flags) > 30
    for name, parameter in flags:
        for value in (None, 0, 1, "no", []):
            with pytest.raises((TypeError, ValueError), match=rf"\b{parameter}\b"):
                use(name, **takes(name)[1] | {parameter: value})
        if parameter not in ("lazy", "positive"):
            use(name, **takes(name)[1] | {parameter: np.bool_(False)})


def test_numbers_of_any_real_kind_are_taken():
    for number in (np.float32(0.5), np.float64(0.5), 1, np.int8(1)):
        skpursuit.OMP(tol=number, ridge=number)
        skpursuit.SuccessiveHalving(budget=number, exact_fraction=number)
        skpursuit.Stability(rows=number)
    for count in (3, np.int64(3), np.uint8(3)):
        assert skpursuit.minimize(X, Y, skpursuit.OMP(count, always_include=np.array([1, 2]))).n_iter == 1


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (skpursuit.PursuitRegressor(n_nonzero_coefs=9), "n_nonzero_coefs is 9"),
        (skpursuit.PursuitRegressorCV(max_nonzero_coefs=9), "max_nonzero_coefs is 9"),
        (skpursuit.OrthogonalMatchingPursuit(n_nonzero_coefs=9), "n_nonzero_coefs is 9"),
        (skpursuit.OrthogonalMatchingPursuitCV(max_iter=9), "max_iter is 9"),
    ],
)
def test_a_number_that_is_clipped_is_named_as_it_was_given(estimator, words):
    with pytest.warns(UserWarning, match=words):
        estimator.fit(X, Y)


@pytest.mark.parametrize("bad", [[-1.0], [np.nan], [np.inf], [1.0, 2.0], "x", [1j]])
@pytest.mark.parametrize("tol", [None, 0.1])
def test_squared_norms_are_numbers_of_at_least_zero(bad, tol):
    with pytest.raises((TypeError, ValueError), match="norms_squared"):
        skpursuit.orthogonal_mp_gram(X.T @ X, X.T @ Y, tol=tol, norms_squared=bad)


def test_splits_that_are_none_are_refused():
    for cv in ([], [(1, 2, 3)], [3]):
        with pytest.raises((TypeError, ValueError), match="cv"):
            skpursuit.PursuitRegressorCV(cv=cv).fit(X, Y)


@dataclass(frozen=True)
class OwnSolver(Solver):
    """A solver that says nothing of its parameters, of which only `tol` may be None."""

    tol: float | None = None
    max_iter: int = 5
    name: str = "own"

    def init(self, problem):
        raise NotImplementedError

    def step(self, problem, state, select, rng):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tol": -1.0}, "tol must be at least 0"),
        ({"tol": "small"}, "tol must be a number or None, got 'small'"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"max_iter": None}, "max_iter must be a whole number, got None"),
    ],
)
def test_shared_parameters_of_ones_own_solver_are_checked(given, message):
    assert OwnSolver(name=3).tol is None
    with pytest.raises((TypeError, ValueError), match=message):
        OwnSolver(**given)
