"""A row of weight zero is not there: every fit with such rows equals the fit without them."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.sparse.linalg import aslinearoperator
from sklearn.base import clone
from sklearn.model_selection import KFold, LeaveOneGroupOut, PredefinedSplit

import skpursuit as sk
from skpursuit.problem.losses.logistic import Multinomial
from skpursuit.selectors import SELECTORS as SELECTORS
from tests.support.data import with_intercept

SOLVERS = (
    sk.OMP(3),
    sk.OMP(3, always_include=(1,)),
    sk.OMP(tol=1e-3),
    sk.MatchingPursuit(3, max_iter=6),
    sk.CoSaMP(2, max_iter=5),
    sk.GraSP(2, max_iter=5),
    sk.FrankWolfe(sk.L1Ball(2.0), 10),
    sk.FrankWolfe(sk.Simplex(2.0), 10, "open-loop"),
    sk.FrankWolfe(sk.L1Ball(2.0), 10, "backtracking", "away"),
    sk.FrankWolfe(sk.Simplex(2.0), 10, "exact", "pairwise", lazy=True),
    sk.FrankWolfe(sk.L1Ball(2.0), 10, "exact", "blended"),
    sk.StoIHT(3, max_iter=8),
    sk.StoGradMP(2, max_iter=4),
)
LOSSES = ("squared", "logistic", "huber", "poisson", Multinomial())
SOURCES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "operator": aslinearoperator,
    "intercept": lambda X: with_intercept(X),
}
ESTIMATORS = (
    sk.OrthogonalMatchingPursuit(n_nonzero_coefs=3),
    sk.OrthogonalMatchingPursuit(n_nonzero_coefs=3, fit_intercept=False, precompute=False),
    sk.OrthogonalMatchingPursuitCV(max_iter=3, cv=3),
    sk.PursuitRegressor(n_nonzero_coefs=3, scale="none"),
    sk.PursuitRegressor(solver="fw", loss="huber", max_iter=10),
    sk.PursuitRegressor(n_nonzero_coefs=3, solver="mp", loss="poisson", max_iter=6),
    sk.PursuitRegressor(n_nonzero_coefs=3, solver="grasp", loss="poisson", max_iter=4, ridge=0.1),
    sk.PursuitRegressor(n_nonzero_coefs=3, loss="poisson", scale="none", ridge=0.1),
    sk.PursuitRegressorCV(cv=3),
    sk.PursuitRegressorCV(cv=3, scoring="r2", scale="column"),
    sk.PursuitRegressorCV(
        max_nonzero_coefs=3, cv=KFold(3, shuffle=True, random_state=0), loss="poisson", ridges=0.1
    ),
    sk.PursuitRegressorCV(solver="omp", scoring="bic", loss="huber"),
    sk.PursuitClassifier(n_nonzero_coefs=3, class_weight="balanced"),
    sk.PursuitClassifier(n_nonzero_coefs=3, multi_class="multinomial", scale="none"),
    sk.PursuitClassifier(n_nonzero_coefs=3, solver="cosamp", loss="squared", max_iter=4),
    sk.PursuitClassifierCV(max_nonzero_coefs=3, cv=3, class_weight="balanced"),
    sk.PursuitClassifierCV(max_nonzero_coefs=3, cv=3, multi_class="multinomial", scoring="neg_log_loss"),
    sk.PursuitClassifierCV(solver="omp", scoring="ebic", max_nonzero_coefs=3),
)


def pick(rng, choices):
    return choices[rng.integers(len(choices))]


def data(rng, largest):
    """X, y, weights and the rows of weight zero, whose entries may be very large."""
    n, d = int(rng.integers(20, 40)), int(rng.integers(5, 12))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    weights = rng.uniform(0.5, 2.0, n)
    absent = rng.choice(n, rng.integers(1, 6), replace=False)
    weights[absent] = 0.0
    z = X[:, :2].sum(axis=1) + 0.5 * rng.standard_normal(n)
    X[absent] *= pick(rng, (1.0, 1e3, 1e20, largest))
    return X, z, weights, absent


def classes_of(rng, z, absent):
    """Three classes of about the same size; absent rows may have one of their own."""
    y = np.digitize(z, np.quantile(np.delete(z, absent), [1 / 3, 2 / 3]))
    y[absent] = pick(rng, (y[absent], 7))
    return y


def targets(rng, loss, z, absent):
    """Targets of this loss; those of absent rows are far off, where a loss would take them at all or not."""
    y = {"logistic": np.sign(z), "poisson": np.floor(np.exp(np.minimum(z, 3.0)))}.get(loss, z.copy())
    y = np.digitize(z, [-0.5, 0.5]).astype(float) if isinstance(loss, Multinomial) else y
    y[absent] = pick(rng, (y[absent], 1e90, -7.5))
    return y


def check_solver(seed):
    rng = np.random.default_rng(seed)
    solver, loss, source, selector = (pick(rng, x) for x in (SOLVERS, LOSSES, list(SOURCES), list(SELECTORS)))
    if source == "operator" and selector in ("lucb", "reject"):  # which are refused there
        selector = "exact"
    if type(solver) is sk.CoSaMP or selector == "gram":
        loss = "squared"
    if isinstance(loss, Multinomial) and isinstance(solver, sk.FrankWolfe):
        loss = "poisson"
    if loss == "squared" and source == "intercept":  # squared loss weights columns, and centres them instead
        source = "C"
    if loss != "squared" and solver.supports_ridge:  # without it separable classes have no best fit
        solver = replace(solver, ridge=0.1)
    X, z, weights, absent = data(rng, 1e30 if source == "float32" else 1e90)
    y = targets(rng, loss, z, absent)
    there = weights > 0

    def fit(rows):
        X_rows, given = SOURCES[source](X[rows]), {"sample_weight": weights[rows], "random_state": 0}
        return sk.minimize(X_rows, y[rows], solver, selector, loss, **given)

    ours, expected = fit(slice(None)), fit(there)
    case = (seed, solver, loss, source, selector)
    assert ours.support.tolist() == expected.support.tolist(), case
    assert ours.status is expected.status, case
    assert ours.objective == pytest.approx(expected.objective, rel=1e-9, abs=1e-12), case
    size = np.abs(expected.coef).max(initial=0.0)
    np.testing.assert_allclose(ours.coef, expected.coef, rtol=0, atol=1e-9 * size, err_msg=str(case))


def check_estimator(seed):
    rng = np.random.default_rng(seed)
    model = ESTIMATORS[seed % len(ESTIMATORS)]
    kind = pick(rng, ("C", "F", "csr", "csc"))
    X, z, weights, absent = data(rng, 1e90)
    if hasattr(model, "class_weight"):
        y = classes_of(rng, z, absent)
    else:
        y = targets(rng, getattr(model, "loss", "squared"), z, absent)
    there = weights > 0
    ours, expected = (
        clone(model).fit(SOURCES[kind](X[rows]), y[rows], sample_weight=weights[rows])
        for rows in (slice(None), there)
    )
    for name in ("coef_", "intercept_", "scores_", "classes_"):
        if hasattr(expected, name):
            value, other = getattr(ours, name), getattr(expected, name)
            close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(other).max()}
            np.testing.assert_allclose(value, other, **close, err_msg=f"{seed} {model} {name}")
    scores = [
        ours.score(SOURCES[kind](X[rows]), y[rows], sample_weight=weights[rows])
        for rows in (slice(None), there)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)


MANY = [0, 20, *(pytest.param(start, marks=pytest.mark.slow) for start in range(1000, 3000, 20))]


@pytest.mark.filterwarnings("ignore:the best number of coefficients")  # an advice, whatever rows are there
@pytest.mark.parametrize("start", MANY)
@pytest.mark.parametrize(("check", "count"), [(check_solver, 30), (check_estimator, len(ESTIMATORS))])
def test_nobody_sees_rows_of_weight_zero(check, count, start):
    for seed in range(start, start + count):
        check(seed)


class Stubborn(KFold):
    """Splits as many rows as it likes."""

    def split(self, X, y=None, groups=None):
        return super().split(np.zeros((30, 1)))


@pytest.mark.parametrize(
    "model",
    [
        sk.OrthogonalMatchingPursuitCV(max_iter=3),
        sk.PursuitRegressorCV(max_nonzero_coefs=3),
        sk.PursuitClassifierCV(max_nonzero_coefs=3),
    ],
)
def test_folds_given_by_rows_name_rows_of_X(model):
    rng = np.random.default_rng(1)
    X, weights = rng.standard_normal((30, 6)), np.ones(30)
    z = X[:, 0] + 0.1 * rng.standard_normal(30)
    y = np.where(z > 0, "a", "b") if isinstance(model, sk.PursuitClassifierCV) else z
    absent = [2, 11, 12, 29]
    weights[absent] = 0.0
    there = np.delete(np.arange(30), absent)
    fold = np.arange(30) % 3
    expected = clone(model).set_params(cv=PredefinedSplit(fold[there])).fit(X[there], y[there])
    lists = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    masks = [(fold != f, fold == f) for f in range(3)]
    for cv in (PredefinedSplit(fold), lists, masks):
        ours = clone(model).set_params(cv=cv).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(ours.coef_, expected.coef_, atol=1e-12)
        if hasattr(ours, "scores_"):
            np.testing.assert_allclose(ours.scores_, expected.scores_, rtol=1e-9)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).set_params(cv=LeaveOneGroupOut()).set_fit_request(sample_weight=True)
        routed.fit(X, y, sample_weight=weights, groups=fold)
        np.testing.assert_allclose(routed.coef_, expected.coef_, atol=1e-12)
    with pytest.raises(ValueError, match="cv names row 29 of 26 rows"):
        clone(model).set_params(cv=Stubborn(3)).fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="no sample with a weight above zero"):
        clone(model).set_params(cv=[(there, absent)]).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("source", ["F", "csr", "csc"])
def test_that_rows_are_left_out_costs_one_column(source):
    rng = np.random.default_rng(0)
    X, y, weights = SOURCES[source](rng.standard_normal((50, 40))), rng.standard_normal(50), np.arange(50.0)
    bare, less = (
        sk.minimize(X, y, sk.OMP(3), "exact"),
        sk.minimize(X, y, sk.OMP(3), "exact", sample_weight=weights),
    )
    assert less.prepared_bytes - bare.prepared_bytes <= 2 * 12 * len(y)
