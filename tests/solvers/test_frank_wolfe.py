"""Frank-Wolfe: its proven rate, its iterates, its gap, and the Lasso it must agree with."""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from skpursuit import (
    ErrorBound,
    FrankWolfe,
    Greedy,
    L1Ball,
    Simplex,
    Status,
    Uniform,
    as_design,
    datasets,
    minimize,
)
from skpursuit.numerics.tuning import GRAM_BATCH

from ..support.asking import Selection, Selector
from ..support.data import kept_gram_columns, product

STEPS = ["exact", "open-loop", "backtracking"]
VARIANTS = ["vanilla", "away", "pairwise", "blended", "corrective"]
FAST = VARIANTS[1:]


def problem(seed=0, n=60, d=100, k=5):
    X, y, w = datasets.make_sparse_signal(n, d, k, snr=10.0, random_state=seed)
    return X, y, float(np.abs(w).sum())


@cache
def known_problem(seed, constraint, loss="squared"):
    """X, y, a set of this kind that holds the true coefficients, or this set, and the minimum in it."""
    X, y, radius = problem(seed)
    y = np.sign(y) if loss == "logistic" else y
    domain = constraint(radius) if isinstance(constraint, type) else constraint
    return X, y, domain, minimum(X, y, domain, loss)


def minimum(X, y, constraint, loss="squared"):
    result = minimize(X, y, FrankWolfe(constraint, 20000, "exact", "pairwise", gap_tol=1e-11), "exact", loss)
    assert result.status.ok
    return result.objective


def feasible(w, constraint):
    if isinstance(constraint, Simplex):
        return (w >= 0).all() and abs(w.sum() - constraint.radius) <= 1e-10 * constraint.radius
    return np.abs(w).sum() <= constraint.radius * (1 + 1e-10)


class Noisy(Selector):
    """A gradient with errors up to the query's eps times delta: the worst a bound allows."""

    delta = 0.5

    def find(self, design, query):
        g = product(design, query.r)
        g = g + query.rng.uniform(-1, 1, g.shape) * self.delta * query.tolerated_error
        best = np.argmax(query.score.of(g))
        return Selection(np.array([best]), g[[best]], "heuristic")


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("constraint", [L1Ball, Simplex])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("selector", "delta"), [("exact", 0.0), (Noisy(), Noisy.delta)])
def test_gap_is_within_the_proven_rate(loss, constraint, step, selector, delta):
    X, y, domain, best = known_problem(0, constraint, loss)
    smoothness = 0.25 if loss == "logistic" else 1.0
    curvature = 4 * domain.radius**2 * np.max(np.sum(X**2, axis=0)) * smoothness
    result = minimize(X, y, FrankWolfe(domain, 200, step), selector, loss, random_state=0)
    for record in result.history:
        t = record.iteration + 1  # the objective is that of iterate t
        assert record.objective - best <= 2 * curvature * (1 + delta) / (t + 2) + 1e-9


@pytest.mark.parametrize("constraint", [L1Ball(3.0), Simplex(3.0)])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("step", STEPS)
def test_every_iterate_is_feasible_and_its_gap_is_a_bound(constraint, variant, step):
    step = "exact" if variant == "corrective" else step
    X, y, _, best = known_problem(1, constraint)
    for selector in ("exact", "gram"):
        for iterations in (1, 2, 3, 7, 20, 60):
            solver = FrankWolfe(constraint, iterations, step, variant)
            result = minimize(X, y, solver, selector)
            assert feasible(result.coef, constraint)
        objectives = [record.objective for record in result.history]
        gaps = [record.gap for record in result.history]
        for before, gap in zip(objectives, gaps[1:]):
            assert gap >= before - best - 1e-9


@pytest.mark.parametrize("variant", FAST)
@pytest.mark.parametrize("share", [0.3, 0.9, 3.0])
def test_the_fast_variants_agree_with_the_lasso(variant, share):
    X, y, _ = problem(2, n=100, d=60)
    lasso = Lasso(
        alpha=share * 0.1 * np.abs(X.T @ y).max() / len(y), fit_intercept=False, tol=1e-14, max_iter=10**6
    )
    w = lasso.fit(X, y).coef_
    expected = 0.5 * np.sum((X @ w - y) ** 2)
    for selector in ("exact", "gram"):
        solver = FrankWolfe(L1Ball(np.abs(w).sum()), 5000, variant=variant, gap_tol=1e-8)
        result = minimize(X, y, solver, selector)
        assert result.status in (Status.CONVERGED, Status.OPTIMAL)
        assert result.objective == pytest.approx(expected, rel=1e-6)


def test_a_ball_that_holds_the_least_squares_solution():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 8)), rng.standard_normal(50)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    for variant in FAST:
        result = minimize(
            X, y, FrankWolfe(L1Ball(3 * np.abs(w).sum()), 5000, variant=variant, gap_tol=1e-12), "exact"
        )
        np.testing.assert_allclose(result.coef, w, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson"])
@pytest.mark.parametrize("step", ["exact", "backtracking"])
def test_all_variants_reach_the_same_minimum(loss, step):
    X, y, radius = problem(3)
    y = {"logistic": np.sign(y), "poisson": np.floor(np.exp(np.clip(y, None, 2)))}.get(loss, y)
    objectives = [
        minimize(X, y, FrankWolfe(L1Ball(radius), 4000, step, variant, gap_tol=1e-7), "exact", loss).objective
        for variant in (FAST if (loss, step) == ("squared", "exact") else FAST[:3])
    ]
    np.testing.assert_allclose(objectives, objectives[0], atol=2e-7)


def plain_frank_wolfe(X, y, radius, iterations):
    w, z = np.zeros(X.shape[1]), np.zeros(len(y))
    for _ in range(iterations):
        g = X.T @ (z - y)
        j = np.argmax(np.abs(g))
        vertex = -radius * np.sign(g[j])
        dz = vertex * X[:, j] - z
        gamma = np.clip((y - z) @ dz / (dz @ dz), 0, 1)
        w *= 1 - gamma
        w[j] += gamma * vertex
        z += gamma * dz
    return w


@pytest.mark.parametrize("selector", ["exact", "gram"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_iterates_equal_plain_numpy(selector, dtype):
    X, y, w = datasets.make_sparse_signal(200, 400, 10, dtype=dtype, random_state=4)
    radius = float(np.abs(w).sum())
    for iterations in (1, 10, 1000):
        result = minimize(X, y, FrankWolfe(L1Ball(radius), iterations), selector)
        expected = plain_frank_wolfe(X.astype(float), y.astype(float), radius, iterations)
        np.testing.assert_allclose(result.coef, expected, atol=1e-8 if dtype == np.float64 else 1e-3)


def test_a_visited_atom_is_not_read_again():
    X, y, w = datasets.make_sparse_signal(200, 400, 10, random_state=4)
    design = as_design(X)
    result = minimize(design, y, FrankWolfe(L1Ball(float(np.abs(w).sum())), 1000), "gram")
    blocks = len(kept_gram_columns(design).arrays) / GRAM_BATCH
    recomputed = sum(r.entries_read < X.size and r.entries_read > 0 for r in result.history)
    assert result.entries_read <= (1 + np.ceil(blocks)) * X.size + recomputed * 100 * len(y)
    assert sum(record.entries_read == 0 for record in result.history) > 900


@pytest.mark.parametrize("variant", VARIANTS[:4])
def test_lazy_asks_less_and_ends_at_the_same_place(variant):
    X, y, radius = problem(5)
    tol = 0.03 if variant == "vanilla" else 1e-3
    runs = [
        minimize(X, y, FrankWolfe(L1Ball(radius), 3000, variant=variant, gap_tol=tol, lazy=lazy), "exact")
        for lazy in (False, True)
    ]
    assert all(run.status is Status.CONVERGED for run in runs)
    assert runs[1].entries_read < 0.7 * runs[0].entries_read
    assert runs[1].objective == pytest.approx(runs[0].objective, abs=tol)
    assert any(record.gap is None for record in runs[1].history)


class Misleading(Selector):
    """Names the worst column: its gap would stop any run at once."""

    def find(self, design, query):
        g = query.score.of(product(design, query.r))
        return Selection(np.array([np.argmin(g)]), g[[0]], "heuristic")


def test_a_heuristic_gap_does_not_stop_a_run_before_an_exact_one_agrees():
    X, y, radius = problem(6)
    result = minimize(X, y, FrankWolfe(L1Ball(radius), 4000, variant="pairwise", gap_tol=1e-5), Misleading())
    assert result.status is Status.CONVERGED
    assert result.objective - minimum(X, y, L1Ball(radius)) <= 1e-5


def test_the_minimum_at_a_vertex_is_found_and_recognised():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 10))
    y = 100 * X[:, 4]
    for variant in VARIANTS:
        result = minimize(X, y, FrankWolfe(L1Ball(1.0), 500, variant=variant, gap_tol=1e-9), "exact")
        assert result.status.ok
        np.testing.assert_allclose(result.coef, np.eye(10)[4], atol=1e-9)
        if variant != "vanilla":
            assert len(result.support) == 1


def test_the_automatic_error_bound_spares_rows_and_keeps_its_rate():
    delta, steps = 5.0, 60
    X, y, radius = problem(8, n=1000, d=80)
    best = minimum(X, y, L1Ball(radius))
    curvature = 4 * radius**2 * np.max(np.sum(X**2, axis=0))
    selector = Greedy(stop=ErrorBound("auto", delta))
    result = minimize(X, y, FrankWolfe(L1Ball(radius), steps, "open-loop"), selector)
    assert result.entries_read < steps * X.size
    for record in result.history:
        assert record.objective - best <= 2 * curvature * (1 + delta) / (record.iteration + 3)
    with pytest.raises(ValueError, match="bounded curvature"):
        minimize(X, np.floor(np.abs(y)), FrankWolfe(L1Ball(radius)), selector, "poisson")


@pytest.mark.parametrize("seed", range(30))
def test_corrective_steps_end_early_on_columns_that_depend_on_each_other(seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 40), rng.integers(1, 60)
    X, y = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-2, 2, d), rng.standard_normal(n)
    copies = rng.integers(d, size=d // 2)
    X[:, copies] = X[:, rng.integers(d, size=len(copies))] * rng.choice([1, -1, 1 + 1e-6, 2, 0], len(copies))
    radius = 10.0 ** rng.uniform(-3, 2) / np.linalg.norm(X, axis=0).max()
    constraint = (L1Ball, Simplex)[seed % 2](radius)
    result = minimize(X, y, FrankWolfe(constraint, variant="corrective"), ("exact", "gram")[seed // 2 % 2])
    w, g = result.coef, X.T @ (X @ result.coef - y)
    lowest = -np.abs(g).max() if seed % 2 == 0 else g.min()
    assert g @ w - radius * lowest <= 1e-8 * (y @ y)
    assert result.n_iter <= 25
    assert result.status in (Status.OPTIMAL, Status.STALLED, Status.ZERO_RESIDUAL)
    assert (np.abs(w).sum() if seed % 2 == 0 else abs(w.sum() - radius) + radius) <= radius * (1 + 1e-12)
    assert seed % 2 == 0 or (w >= 0).all()


def test_several_targets_and_what_corrective_steps_cannot_do_are_refused():
    X, y, _ = problem()
    with pytest.raises(ValueError, match='use "blended"'):
        minimize(X, np.sign(y), FrankWolfe(L1Ball(1.0), variant="corrective"), loss="logistic")
    with pytest.raises(ValueError, match="line_search"):
        FrankWolfe(L1Ball(1.0), line_search="open-loop", variant="corrective")
    with pytest.raises(ValueError, match="one target"):
        minimize(X, np.column_stack([y, y]), FrankWolfe(L1Ball(1.0)))


def test_without_confirmation_a_step_without_a_gain_is_left_out_and_nothing_else_is_read():
    X, y, w = datasets.make_sparse_signal(60, 120, 4, snr=20.0, random_state=0)
    ball = L1Ball(float(np.abs(w).sum()))
    runs = {
        confirm: minimize(X, y, FrankWolfe(ball, max_iter=200, confirm=confirm), Uniform(), random_state=0)
        for confirm in (True, False)
    }
    assert max(record.entries_read for record in runs[True].history) > X.size  # a second look
    assert runs[False].n_iter == 200
    assert max(record.entries_read for record in runs[False].history) <= X.size
    assert runs[False].entries_read < runs[True].entries_read
    same = [a.objective == b.objective for a, b in zip(runs[False].history, runs[False].history[1:])]
    assert any(same)
    assert runs[False].objective >= runs[True].objective


def test_without_confirmation_an_exact_selector_still_ends_a_run():
    X, y, _ = datasets.make_sparse_signal(60, 120, 4, snr=20.0, random_state=0)
    solver = FrankWolfe(L1Ball(0.5), max_iter=500, variant="away", gap_tol=1e-6, confirm=False)
    assert minimize(X, y, solver, "exact").status in (Status.CONVERGED, Status.OPTIMAL)


@pytest.mark.parametrize("constraint", [L1Ball(20.0), Simplex(20.0)])
@pytest.mark.parametrize("step", ["exact", "open-loop"])
def test_steps_made_many_at_a_time_are_those_of_one_at_a_time(constraint, step, tmp_path):
    X, y, _ = problem(3, 600, 1800, 20)
    X[:, 1] = X[:, 0]  # a tie, which no estimate decides
    solver, path = FrankWolfe(constraint, 150, step), tmp_path / "run"
    fast, plain = (minimize(X, y, solver, selector) for selector in ("gram", "exact"))
    for ours, theirs in zip(fast.history, plain.history, strict=True):
        assert ours.selected == theirs.selected
        assert [ours.objective, ours.gap] == pytest.approx([theirs.objective, theirs.gap], rel=1e-9)
    stopped = minimize(X, y, solver, "gram", callback=lambda record: record.iteration == 70, checkpoint=path)
    assert stopped.status is Status.CALLBACK
    assert len(stopped.history) == 71
    resumed = minimize(X, y, solver, "gram", checkpoint=path)  # whose batches of steps begin elsewhere
    assert (resumed.coef.tobytes(), resumed.objective) == (fast.coef.tobytes(), fast.objective)
    for run in (stopped, resumed):
        for ours, theirs in zip(run.history, fast.history):
            assert (ours.gap, ours.objective) == (theirs.gap, theirs.objective)


def test_a_simplex_whose_first_vertex_overflows_is_diverged():
    X = np.array([[800.0, 1.0], [900.0, 2.0]])
    for selector in ("exact", "certified", "halving", "greedy", "uniform", "quantized", "auto"):
        result = minimize(X, np.ones(2), FrankWolfe(Simplex(1.0), 10), selector, "poisson")
        assert (result.status, result.n_iter) == (Status.DIVERGED, 0)
