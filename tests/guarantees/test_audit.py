"""Audits against a plain loop over the steps of a path."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.linear_model import OrthogonalMatchingPursuit

from skpursuit import (
    OMP,
    FrankWolfe,
    L1Ball,
    MatchingPursuit,
    PathDisplay,
    PursuitClassifier,
    PursuitRegressor,
    PursuitRegressorCV,
    Simplex,
    audit,
    certify,
    minimize,
)
from tests.support.data import tiled
from tests.support.failing import fails


def plain(X, y, path):
    """rho, rank and best of every step, by least squares from the start each time."""
    rho, rank, best = [], [], []
    for t, j in enumerate(path):
        before = X[:, path[:t]]
        r = y - before @ np.linalg.lstsq(before, y, rcond=None)[0] if t else y
        scores = np.abs(X.T @ r)
        scores[path[:t]] = -1.0
        best.append(int(np.argmax(scores)))
        rho.append(scores[j] / scores.max())
        rank.append(int((scores > scores[j]).sum()))
    return np.array(rho), np.array(rank), np.array(best)


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 60)), int(rng.integers(5, 80))
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] += rng.choice([0.0, 0.9]) * X[:, j - 1]
    y = X @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) + rng.standard_normal(n)
    return X, y, rng.permutation(d)[: int(rng.integers(1, min(n - 2, d) + 1))]


def sources(X, folder):
    np.save(folder / "X.npy", X)
    n, d = X.shape
    return {
        "C": X,
        "F": np.asfortranarray(X),
        "csr": sp.csr_array(X),
        "csc": sp.csc_array(X),
        "stacked": [X[: n // 2], X[n // 2 :]],
        "tiles": tiled(X, (n // 2,), (d // 2,)),
        "operator": aslinearoperator(X),
        "file": str(folder / "X.npy"),
    }


def test_ratios_are_those_of_a_plain_loop(tmp_path):
    for seed in range(300):
        X, y, path = random_problem(seed)
        rho, rank, best = plain(X, y, path)
        every = sources(X, tmp_path)
        names = list(every) if seed < 20 else [list(every)[seed % len(every)]]
        for name in names:
            found = audit(every[name], y, path.tolist())
            np.testing.assert_allclose(found.rho, rho, rtol=0, atol=1e-12, err_msg=f"{seed} {name}")
            assert np.array_equal(found.best, best), (seed, name)
            assert np.array_equal(found.rank, rank), (seed, name)
            assert np.array_equal(found.columns, path)
            assert found.rho_min == found.rho.min()


def test_float32_is_weighed_as_it_is():
    for seed in range(20):
        X, y, path = random_problem(seed)
        X = X.astype(np.float32)
        rho, _, best = plain(X.astype(float), y, path)
        found = audit(X, y, path)
        np.testing.assert_allclose(found.rho, rho, rtol=2e-4, atol=1e-6)
        assert np.array_equal(found.best, best)


def near(n=200, d=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1::2] = X[:, ::2] + 1e-3 * X[:, 1::2]
    return X, X[:, :20:2].sum(axis=1) + rng.standard_normal(n)


@pytest.mark.parametrize("count", [3, pytest.param(170, marks=pytest.mark.slow)])
@pytest.mark.parametrize("selector", ["exact", "certified", "gram", "auto"])
def test_exact_paths_take_the_best_column_at_every_step(selector, count):
    for seed in range(count):
        X, y = near(seed=seed)
        X[:, 7] = X[:, 6]  # a tie goes to the lower index
        result = minimize(X, y, OMP(n_nonzero_coefs=150), selector, audit=True)
        assert (result.audit.rho == 1.0).all()
        assert np.array_equal(result.audit.best, result.audit.columns)
        assert result.audit.exact_until == result.audit.same_atoms == 150
        assert "each of 150 steps took a best column" in repr(result)


@pytest.mark.parametrize("solver", [OMP(n_nonzero_coefs=9), OMP(n_nonzero_coefs=9, swaps=True)])
def test_a_run_and_its_result_are_weighed_alike(solver):
    X, y = near()
    for Y in (y, np.column_stack([y, X[:, 50] - y])):
        result = minimize(X, Y, solver, "uniform", audit=True, random_state=0)
        after = audit(X, Y, result)
        assert np.array_equal(after.rho, result.audit.rho)
        assert np.array_equal(after.rank, result.audit.rank)
        assert after.rho_min < 1.0
        plainly = minimize(X, Y, solver, "uniform", random_state=0)
        assert plainly.audit is None
        assert (plainly.bytes_read, plainly.prepared_bytes) == (result.bytes_read, result.prepared_bytes)


def test_other_losses_and_solvers_weigh_themselves():
    X, y = near()
    result = minimize(X, np.sign(y), OMP(n_nonzero_coefs=4, ridge=0.1), "halving", "logistic", audit=True)
    again = audit(X, np.sign(y), result, loss="logistic", ridge=0.1)
    np.testing.assert_allclose(again.rho, result.audit.rho, rtol=1e-6)
    moved = minimize(X, y, MatchingPursuit(max_iter=30), "uniform", audit=True, random_state=0)
    assert len(moved.audit.rho) == 30 > moved.audit.same_atoms
    signed = minimize(X, y, OMP(n_nonzero_coefs=5, positive=True), "exact", audit=True)
    assert (signed.audit.rho == 1.0).all()


@pytest.mark.parametrize("ball", [L1Ball(5.0), Simplex(5.0)])
def test_frank_wolfe_has_its_true_gap(ball):
    X, y = near()
    result = minimize(X, y, FrankWolfe(ball, max_iter=12), "uniform", audit=True, random_state=0)
    believed = np.array([record.gap for record in result.history])
    assert np.array_equal(result.audit.believed_gap, believed)
    assert (result.audit.gap >= believed - 1e-9 * abs(believed)).all()
    exact = minimize(X, y, FrankWolfe(ball, max_iter=12), "exact", audit=True)
    np.testing.assert_allclose(exact.audit.gap, exact.audit.believed_gap, rtol=1e-12)
    best = exact.objective - exact.audit.gap.min()
    assert result.objective - result.audit.gap[-1] <= exact.objective
    assert best <= result.objective


def test_estimators_bring_their_own_view():
    X, y = near()
    model = PursuitRegressor(n_nonzero_coefs=9, selector="halving", random_state=0, scale="column").fit(X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(audit(X, y, model).rho, plain(Z, y - y.mean(), model.support_)[0], rtol=1e-9)
    labels = np.where(y > 0, "yes", "no")
    chosen = PursuitClassifier(n_nonzero_coefs=4, selector="exact").fit(X, labels)
    weighed = audit(X, labels, chosen)
    assert weighed.rho_min > 1 - 1e-9
    assert weighed.sentence in chosen.summary(guarantees=[weighed])
    assert 0 < audit(X, y, PursuitRegressorCV(cv=2).fit(X, y)).rho_min <= 1
    other = OrthogonalMatchingPursuit(n_nonzero_coefs=9).fit(X, y)
    fails("OrthogonalMatchingPursuit does not say in which order", audit, X, y, other, error=TypeError)
    with pytest.raises(ValueError, match="a path for each target"):
        audit(X, np.c_[y, y], PursuitRegressor(shared_support=False, n_nonzero_coefs=2).fit(X, np.c_[y, y]))
    fails("expecting 300 features", audit, X[:, :-1], y, model)


def test_a_dependent_column_leaves_the_residual():
    X, y = near()
    X[:, 5] = X[:, 0] + X[:, 2]
    found = audit(X, y, [0, 2, 5, 4])
    assert found.rho[2] < 1e-10
    assert found.rho[3] == pytest.approx(plain(X, y, [0, 2, 4])[0][2], rel=1e-9)


def test_a_perfect_fit_has_nothing_better():
    found = audit(np.eye(4), np.eye(4)[0], [0, 3])
    assert found.rho.tolist() == [1.0, 1.0]


def test_a_long_path_is_weighed_in_parts(monkeypatch):
    X, y = near()
    whole = audit(X, y, np.arange(60))
    monkeypatch.setattr("skpursuit.guarantees.audit.MAX_PENDING_BYTES", 100_000)
    assert np.array_equal(audit(X, y, np.arange(60)).rho, whole.rho)


X, Y = near()
RESULT = minimize(X, Y, OMP(n_nonzero_coefs=3))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((X, Y, []), ValueError, "path has no columns; give at least one"),
        ((X, Y, [4, 4]), ValueError, "path must hold distinct column numbers"),
        ((X, Y, [4, 300]), ValueError, "path names column 300, but X has 300 columns, from 0 to 299"),
        ((X, Y, [4.0]), TypeError, "path must hold whole numbers"),
        ((X, Y[:-1], [4]), ValueError, "y has 199 rows and X has 200"),
        ((X, np.where(Y > 3, np.nan, Y), [4]), ValueError, "y contains NaN or infinity"),
        ((np.where(X > 3, np.nan, X), Y, [4]), ValueError, "NaN or infinity"),
        ((X, Y + X[:, 9], RESULT), ValueError, "other data, or its solver is not OMP"),
        ((X + 1.0, Y, RESULT), ValueError, "other data, or its solver is not OMP"),
        ((X, Y, minimize(X, Y, FrankWolfe(L1Ball(1.0), max_iter=2))), ValueError, "minimize.*audit=True"),
        ((X, Y, minimize(X, Y, MatchingPursuit(max_iter=50))), ValueError, "minimize.*audit=True"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(given, error, message):
    fails(message, audit, *given, error=error)


def test_solvers_of_many_columns_are_refused():
    fails("one column a step", minimize, X, Y, "cosamp", audit=True)


def test_a_display_draws_rho_and_the_band():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    X, y = near(d=40)
    model = PursuitRegressorCV(cv=2, solver="omp", max_nonzero_coefs=6).fit(X, y)
    found, proof = audit(X, y, model), certify(X, y, model, ridge=0.1, max_nodes=2)
    display = PathDisplay.from_estimator(model, audit=found, proof=proof)
    rho, band = display.figure_.axes[2:]
    assert np.array_equal(rho.lines[0].get_ydata(), found.rho)
    assert len(band.collections) == 1
    matplotlib.pyplot.close(display.figure_)
