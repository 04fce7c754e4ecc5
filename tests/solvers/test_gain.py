"""OMP by what a column lowers the loss by, and with several columns a step, against plain loops."""

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import OMP, CoSaMP, GraSP, PursuitRegressorCV, Status, datasets, metrics, minimize


def least_squares_path(X, y, k, per_step=1, gain=True):
    """Orthogonal least squares: at each step what the support leaves of all columns is made again."""
    support, Q, r = [], np.zeros((len(y), 0)), y
    while len(support) < k:
        left = X - Q @ (Q.T @ X)
        sizes = np.linalg.norm(left, axis=0)
        scores = np.abs(left.T @ r) / (np.where(sizes > 1e-9, sizes, np.inf) if gain else 1.0)
        scores[support] = -1
        support += np.argsort(-scores, kind="stable")[: min(per_step, k - len(support))].tolist()
        Q = np.linalg.qr(X[:, support])[0]
        r = y - Q @ (Q.T @ y)
    return support


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 120)), int(rng.integers(10, 200))
    X = rng.standard_normal((n, d))
    if seed % 2:  # columns like each other
        X @= np.eye(d) + rng.standard_normal((d, d)) / np.sqrt(d)
    return X, X[:, :4].sum(axis=1) + rng.standard_normal(n), min(n, d) // 3


def test_gain_is_orthogonal_least_squares_on_200_problems():
    differs = 0
    for seed in range(200):
        X, y, k = random_problem(seed)
        expected = least_squares_path(X, y, k)
        w = np.linalg.lstsq(X[:, expected], y, rcond=None)[0]
        for selector in ("exact", "gram", "auto" if seed % 2 else "certified"):
            found = minimize(X, y, OMP(k, score="gain"), selector)
            assert found.support.tolist() == expected
            np.testing.assert_allclose(found.coef[expected], w, atol=1e-8)
        differs += expected != minimize(X, y, OMP(k), "exact").support.tolist()
    assert differs > 50


@pytest.mark.parametrize("score", ["correlation", "gain"])
def test_several_atoms_a_step_are_those_of_a_plain_loop(score):
    for seed in range(50):
        X, y, k = random_problem(seed)
        per_step = 1 + seed % 5
        found = minimize(X, y, OMP(k, score=score, atoms_per_step=per_step), "exact")
        assert found.support.tolist() == least_squares_path(X, y, k, per_step, score == "gain")
        assert found.n_iter == -(-k // per_step)


def test_a_path_of_sizes_with_several_atoms_a_step_has_a_run_for_each_size():
    X, y, _ = random_problem(4)
    solver = OMP(score="gain", atoms_per_step=2)
    model = PursuitRegressorCV(solver=solver, max_nonzero_coefs=6, cv=3, null_test=False).fit(X, y)
    assert [np.count_nonzero(w) for w in model.coef_path_] == list(range(1, len(model.coef_path_) + 1))


def test_equal_zero_and_dependent_columns_are_told_alike_by_all_selectors(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 60))
    X[:, 30], X[:, 31], X[:, 40], X[:, 42] = X[:, 3], X[:, 3] + X[:, 4], 0.0, 1e6 * X[:, 6]
    y = X[:, :8].sum(axis=1) + 0.1 * rng.standard_normal(80)
    for data in (X, X.astype(np.float32), sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))):
        for targets in (y, np.column_stack([y, rng.standard_normal(80)])):
            runs = [
                minimize(data, targets, OMP(60, score="gain"), one) for one in ("exact", "gram", "certified")
            ]
            assert len({tuple(run.support) for run in runs}) == 1
            assert {run.status for run in runs} == {Status.OPTIMAL}
            dense = data.toarray() if sp.issparse(data) else data.astype(float)
            dense /= np.maximum(np.linalg.norm(dense, axis=0), 1e-9)
            assert len(runs[0].support) == np.linalg.matrix_rank(dense, tol=1e-11)
    solver, path = OMP(20, score="gain", atoms_per_step=3, always_include=(7, 9)), tmp_path / "run"
    whole = minimize(X, y, solver, "gram")
    minimize(X, y, solver, "gram", checkpoint=path, callback=lambda record: record.iteration == 2)
    again = minimize(X, y, solver, "gram", checkpoint=path)
    assert again.coef.tobytes() == whole.coef.tobytes()
    assert whole.support[:2].tolist() == [7, 9]


def test_gain_finds_more_among_columns_that_are_alike():
    found = {"correlation": [], "gain": []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 300))
        for j in range(1, 300):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
        w = np.zeros(300)
        w[rng.choice(300, 15, replace=False)] = rng.choice([-1, 1], 15)
        y = X @ w + 0.1 * rng.standard_normal(150)
        for score, values in found.items():
            values.append(metrics.f_measure(w, minimize(X, y, OMP(15, score=score)).coef))
    assert np.mean(found["gain"]) > np.mean(found["correlation"]) + 0.05


def test_pruning_by_gain_serves_every_loss_and_columns_that_depend():
    X, y, w = datasets.make_logistic_signal(2000, 50, 3, random_state=0)
    for loss in ("logistic", "huber", "poisson"):
        targets = np.maximum(y, 0) if loss == "poisson" else y
        assert metrics.f_measure(w, minimize(X, targets, GraSP(3, prune="gain"), loss=loss).coef) == 1.0
    twice = np.hstack([X, X])
    found = minimize(twice, X @ w, CoSaMP(3, prune="gain"))
    assert found.status.ok
    np.testing.assert_allclose(twice @ found.coef, X @ w, atol=1e-8)


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        (OMP(3, score="gain"), {"selector": "lucb"}, "score='gain' needs a selector that compares more than"),
        (OMP(3, score="gain"), {"loss": "logistic"}, "score='gain' needs squared loss"),
        (OMP(3, score="gain", ridge=0.1), {}, "without a ridge"),
        (OMP(3, score="gain", positive=True), {}, "without positive"),
        (OMP(3, score="gain"), {"audit": True}, "audit weighs solvers that take one column"),
    ],
)
def test_what_gain_does_not_serve_is_refused(solver, options, message):
    X, y, _ = datasets.make_logistic_signal(50, 10, 3, random_state=0)
    with pytest.raises(ValueError, match=message):
        minimize(X, y, solver, **options)
