"""What a run tells is what its coefficients give: every solver, step rule, variant and loss."""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import aslinearoperator

from skpursuit import (
    OMP,
    CoSaMP,
    FrankWolfe,
    GraSP,
    L1Ball,
    MatchingPursuit,
    Multinomial,
    PursuitRegressor,
    Simplex,
    Status,
    StoGradMP,
    StoIHT,
    as_design,
    minimize,
)
from skpursuit.loop.run import CONSISTENCY_TOL, make_run
from skpursuit.problem.losses import as_loss

LOSSES = ("squared", "logistic", "huber", "poisson")
STEPS = ("exact", "open-loop", "backtracking")
VARIANTS = ("vanilla", "away", "pairwise", "blended")
MANY = [*range(50), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(50, 600))]


def pursuits(k):
    return [
        OMP(k, ridge=1e-3),
        MatchingPursuit(k, max_iter=40),
        GraSP(k, max_iter=6, ridge=1e-3),
        GraSP(k, max_iter=6, ridge=1e-3, refit=True),
        StoIHT(k, max_iter=12, step_size=0.01),
        StoGradMP(k, max_iter=6, ridge=1e-3),
    ]


def frank_wolfes(radius, steps, lazy):
    sets = (L1Ball(radius), Simplex(radius))
    return [
        FrankWolfe(constraint, steps, step, variant, lazy=lazy)
        for constraint, step, variant in itertools.product(sets, STEPS, VARIANTS)
    ]


def cases(rng, d):
    """Every solver with every loss it takes, parameters drawn."""
    k, steps = int(rng.integers(1, d + 1)), int(rng.integers(1, 40))
    solvers = pursuits(k) + frank_wolfes(10 ** rng.uniform(-1.0, 0.5), steps, bool(rng.integers(2)))
    alone = [(OMP(k, positive=True), "squared"), (CoSaMP(k), "squared"), (CoSaMP(k, refit=True), "squared")]
    pairs = [(solver, loss) for solver in solvers for loss in LOSSES]
    return [*pairs, *alone, (OMP(k, ridge=1e-3), Multinomial())]


def targets(rng, n, loss):
    if loss == "logistic":
        return np.where(rng.random(n) < 0.5, -1.0, 1.0)
    if loss == "poisson":
        return rng.poisson(2.0, n).astype(float)
    if isinstance(loss, Multinomial):
        return np.append(rng.integers(3, size=n - 1), 2)
    return rng.standard_normal(n)


def columns(rng, n, d):
    """Columns in general position, or some of them copies, negatives and nearly copies of others."""
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1.0, 0.5)
    if rng.random() < 0.5:
        X[:, rng.integers(d, size=2)] = X[:, rng.integers(d, size=2)] * rng.choice([1.0, -1.0, 1 + 1e-6], 2)
    return X


def objective(loss, y, z, weights):
    losses = as_loss(loss).value(y, z)
    return float(np.sum(losses if weights is None else weights * losses))


@pytest.mark.parametrize("seed", MANY)
def test_objective_and_predictions_are_those_of_the_coefficients(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 12))
    X = columns(rng, n, d)
    source = [np.asarray, csc_array, aslinearoperator][seed % 3](X)
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else None
    for solver, loss in cases(rng, d)[seed % 10 :: 10]:
        y = targets(rng, n, loss)
        run = make_run(as_design(source), y, solver, "exact", loss, weights, seed)
        run.execute()
        result, state = run.result(), run.state
        w = np.zeros(result.coef.shape)
        w[state.support] = state.coef
        z = X @ w
        root = 1.0 if weights is None or loss != "squared" else np.sqrt(weights)
        told, y_told = state.z, y * root
        size = np.linalg.norm(z * root if z.ndim == 1 else z) + np.linalg.norm(y_told)
        case = f"{solver!r} {loss}: {result.status}"
        if result.status is Status.DIVERGED and not np.array_equal(w, result.coef):
            assert result.objective <= run.begun.objective, case  # an earlier iterate is returned
            continue
        assert np.array_equal(w, result.coef), case
        assert np.linalg.norm(told - (z * root if z.ndim == 1 else z)) <= 2 * CONSISTENCY_TOL * size, case
        there, at_zero = (objective(loss, y, point, weights) for point in (z, np.zeros_like(z)))
        assert abs(result.objective - there) <= 2 * CONSISTENCY_TOL * (there + at_zero), case
        assert result.status is not Status.INCONSISTENT, case


def test_a_pairwise_step_between_opposite_vertices_keeps_what_it_moves():
    solver = FrankWolfe(L1Ball(1.0), max_iter=6, line_search="open-loop", variant="pairwise")
    result = minimize([[1.0]], [0.5], solver, "exact")
    assert result.objective == pytest.approx(0.5 * (result.coef[0] - 0.5) ** 2, rel=1e-12)


@dataclass(frozen=True)
class Forgetful(OMP):
    """A solver with a mistake: the coefficients, the predictions or the objective do not follow."""

    forgets: str = "coef"
    by: float = 1e-6

    def step(self, problem, state, select, rng):
        after = super().step(problem, state, select, rng)
        return replace(after, **{self.forgets: getattr(after, self.forgets) * (1 + self.by)})


@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
@pytest.mark.parametrize("forgets", ["coef", "z", "objective"])
def test_a_solver_that_forgets_to_move_something_is_found_out(forgets, scale):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 30)), rng.standard_normal(20) * scale
    right = minimize(X, y, Forgetful(3, forgets=forgets, by=0.0))
    wrong = minimize(X, y, Forgetful(3, forgets=forgets))
    assert right.status is Status.COMPLETE
    assert wrong.status is Status.INCONSISTENT
    assert not wrong.status.ok
    z = X @ wrong.coef
    assert wrong.objective == pytest.approx(0.5 * np.sum((z - y) ** 2), rel=1e-12)


def test_coefficients_that_lose_their_digits_are_not_called_a_fit():
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((2, 50))
    X = np.stack([x, x + 1e-11 * other], axis=1)
    result = minimize(X, other, OMP(2), "exact")
    assert result.status is Status.INCONSISTENT
    assert result.objective != result.history[-1].objective


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson", Multinomial()], ids=repr)
@pytest.mark.parametrize("solver", [GraSP(3), GraSP(3, refit=True), StoGradMP(3, max_iter=5)], ids=repr)
def test_columns_of_zeros_give_the_zero_model(solver, loss):
    y = targets(np.random.default_rng(0), 20, loss)
    result = minimize(np.zeros((20, 30)), y, solver, loss=loss, random_state=0)
    assert len(result.support) == 0
    assert not result.coef.any()
    assert result.objective == pytest.approx(objective(loss, y, np.zeros((20, *result.coef.shape[1:])), None))


@pytest.mark.parametrize("seed", range(30))
def test_coefficients_of_float32_columns_of_low_rank_give_what_is_told(seed):
    """Nearly dependent columns have huge coefficients, whose roundings float32 cannot hold."""
    rng = np.random.default_rng(seed)
    n, d, rank = rng.integers([20, 15, 2], [60, 40, 5])
    X = (rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))).astype(np.float32)
    y = rng.standard_normal(n)
    result = minimize(X, y, OMP(n_nonzero_coefs=10))
    assert result.coef.dtype == np.float64
    there = 0.5 * np.sum((X.astype(float) @ result.coef - y) ** 2)
    assert abs(there - result.objective) <= 1e-6 * (there + 0.5 * y @ y)
    single, double = (PursuitRegressor(n_nonzero_coefs=10).fit(A, y) for A in (X, X.astype(np.float64)))
    np.testing.assert_allclose(single.score(X, y), double.score(X.astype(np.float64), y), atol=1e-4)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "logistic", "huber", "squared"])
def test_no_run_is_done_above_its_own_start(loss, refit, seed):
    rng = np.random.default_rng(seed)
    X, k = rng.standard_normal((50, 20)) + 1e4, 1 + seed % 3
    y = rng.poisson(2.0, 50) + (loss in ("gamma", "tweedie")) * 0.5
    y = np.sign(y - 1.5) if loss == "logistic" else y.astype(float)
    for solver in (OMP(k), GraSP(k, refit=refit), MatchingPursuit(k, max_iter=20), StoGradMP(k, max_iter=5)):
        result = minimize(X, y, solver, loss=loss, random_state=seed)
        start = objective(loss, y, np.zeros(50), None)
        assert not result.status.ok or result.objective <= start * (1 + 1e-7) + 1e-9, (solver, result.status)
        if type(solver) is GraSP and refit and k == 1:  # its one column is fitted by itself
            assert result.status.ok
            assert result.objective < start
