"""Complex X and y: pursuits equal to plain complex loops, by arrays of both orders and by operators."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.linalg import aslinearoperator

from skpursuit import (
    OMP,
    CoSaMP,
    FrankWolfe,
    L1Ball,
    MatchingPursuit,
    PursuitRegressor,
    SubspacePursuit,
    SuccessiveHalving,
    as_design,
    minimize,
    orthogonal_mp,
)
from skpursuit.data.complex_tile import ComplexTile

NAN = complex(0, np.nan)
STRIDED = lambda X: np.repeat(X, 2, axis=1)[:, ::2]  # noqa: E731
SOURCES = [np.ascontiguousarray, np.asfortranarray, aslinearoperator, STRIDED]


def drawn(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def problem(seed, dtype=complex):
    """X, y and the size of a model."""
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(8, 40)), int(rng.integers(10, 60)), int(rng.integers(1, 6))
    X = drawn(rng, n, d).astype(dtype)
    X[:, 1] = 1j * X[:, 0]  # as good as column 0, which wins
    X[:, 2] = 0
    return X, X[:, rng.choice(d, k)] @ drawn(rng, k) + 0.2 * drawn(rng, n), k


def plain_omp(X, y, k):
    support, w, r = [], np.zeros(X.shape[1], complex), y
    for _ in range(k):
        scores = np.round(np.abs(X.conj().T @ r), 10)
        scores[support] = -1
        support.append(int(scores.argmax()))
        w[support] = np.linalg.lstsq(X[:, support], y)[0]
        r = y - X @ w
    return support, w


@pytest.mark.parametrize("seed", range(200))
def test_omp_equals_a_plain_complex_loop(seed):
    X, y, k = problem(seed, (complex, np.complex64)[seed % 2])
    support, w = plain_omp(X.astype(complex), y, k)
    source = SOURCES[seed // 2 % 4](X)
    for selector in ("exact", ("certified", "gram", SuccessiveHalving(budget=64.0))[seed // 8 % 3]):
        result = minimize(source, y, OMP(k), selector)
        assert result.support.tolist() == support
        assert [one.selected[0] for one in result.history] == support
        np.testing.assert_allclose(result.coef, w, atol=1e-9 * np.linalg.norm(y))
        assert result.objective == pytest.approx(0.5 * np.linalg.norm(y - X @ w) ** 2, rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_matching_pursuit_and_cosamp_equal_plain_complex_loops(seed):
    X, y, k = problem(seed)
    X = X[:, 3:] / np.linalg.norm(X[:, 3:], axis=0)
    w = np.zeros(X.shape[1], complex)
    for _ in range(30):
        g = X.conj().T @ (y - X @ w)
        j = np.argmax(np.abs(g))
        w[j] += 0.5 * g[j]
    for selector in ("exact", "gram"):
        found = minimize(X, y, MatchingPursuit(max_iter=30, step_size=0.5), selector)
        np.testing.assert_allclose(found.coef, w, atol=1e-9)
    w = np.zeros(X.shape[1], complex)
    for _ in range(3):
        merged = np.union1d(np.flatnonzero(w), np.argsort(-np.abs(X.conj().T @ (y - X @ w)))[: 2 * k])
        fitted = np.linalg.lstsq(X[:, merged], y)[0]
        kept, w = np.argsort(-np.abs(fitted))[:k], np.zeros(X.shape[1], complex)
        w[merged[kept]] = fitted[kept]
    np.testing.assert_allclose(minimize(X, y, CoSaMP(k, max_iter=3)).coef, w, atol=1e-9)


@pytest.mark.parametrize("targets", [1, 3])
def test_orthogonal_mp_takes_complex_numbers(targets):
    X, y, k = problem(5)
    Y = np.column_stack([y * (1 + t) + drawn(np.random.default_rng(t), len(y)) for t in range(targets)])
    coef, sizes = orthogonal_mp(X, Y, n_nonzero_coefs=k, return_n_iter=True)
    expected = np.stack([plain_omp(X, column, k)[1] for column in Y.T], axis=1)
    np.testing.assert_allclose(coef, np.squeeze(expected), atol=1e-9)
    assert np.all(np.array(sizes) == k)
    with warnings.catch_warnings():  # a perfect fit at the last column is no reason for one
        warnings.simplefilter("error")
        assert np.count_nonzero(orthogonal_mp(np.eye(9) + 0j, np.arange(9) * 1j, n_nonzero_coefs=8)) == 8
    w = orthogonal_mp(X, Y[:, 0], tol=0.5)
    assert np.linalg.norm(Y[:, 0] - X @ w) ** 2 <= 0.5


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_a_tile_is_the_real_matrix_of_twice_the_size_without_a_copy(order, dtype):
    rng = np.random.default_rng(0)
    X = np.asarray(drawn(rng, 7, 5).astype(dtype), order=order)
    pairs = np.stack([X, 1j * X.astype(complex)], axis=2).reshape(7, 10)
    A = np.stack([pairs.real, pairs.imag], axis=1).reshape(14, 10)
    tile, rows, cols = ComplexTile(X), np.array([1, 4, 9]), np.array([0, 3, 4, 7])
    assert np.shares_memory(tile.real.X, X)
    near = {"atol": 1e-12 if dtype == np.complex128 else 1e-5}
    for r in (rng.standard_normal(14), rng.standard_normal((14, 3))):
        few, whole, some = np.zeros_like(r), np.zeros((10, *r.shape[1:])), np.zeros((4, *r.shape[1:]))
        few[rows] = r[rows]
        tile.add_rows(rows, r[rows], whole)
        tile.add_rows(rows, r[rows], some, cols)
        for fine in (False, True):  # of one byte and both
            value, bound = tile.encode(fine).estimate(r, fine)
            assert (np.abs(value - A.T @ r) <= bound + near["atol"]).all()
            part, narrow = tile.encode(fine).estimate(r, fine, cols)
            np.testing.assert_array_equal([part, narrow], [value[cols], bound[cols]])
        np.testing.assert_allclose(tile.product(r), A.T @ r, **near)
        np.testing.assert_allclose(tile.product(few, rows), A.T @ few, **near)
        np.testing.assert_allclose(whole, A.T @ few, **near)
        np.testing.assert_allclose(some, whole[cols], **near)
    np.testing.assert_allclose(tile.take(cols), A[:, cols].T, **near)
    design = as_design(X)
    assert tile.cost(rows)[0] == 3 * 5 * 2  # both parts of three rows
    for axis, order in ((0, 2), (1, 2), (1, np.inf)):
        np.testing.assert_allclose(design.norms(axis, order), np.linalg.norm(A, order, axis), **near)
    assert (tile.encode(False).norm_bounds >= np.linalg.norm(A, axis=0)).all()
    X[2] = 9
    with pytest.raises(ValueError, match="changed in place"):
        minimize(design, X[:, 0], OMP(2))


@pytest.mark.parametrize("order", ["C", "F"])
def test_certified_reads_an_eighth_and_halving_less_and_both_give_the_exact_atoms(order):
    rng = np.random.default_rng(0)
    X = np.asarray(drawn(rng, 600, 500), order=order)
    y = X[:, :40:8] @ drawn(rng, 5) + 0.1 * drawn(rng, 600)
    exact, certified, halved = (minimize(X, y, OMP(5), one) for one in ("exact", "certified", "halving"))
    assert exact.support.tolist() == certified.support.tolist() == halved.support.tolist()
    np.testing.assert_array_equal(certified.coef, exact.coef)
    assert {one.certificate for one in certified.history} == {"exact"}
    assert certified.bytes_read < 0.15 * exact.bytes_read
    assert halved.bytes_read < 0.7 * exact.bytes_read
    for selector in ("greedy", "uniform", "importance", SuccessiveHalving("draws", 0.5, exact_fraction=0)):
        found = minimize(X, y, OMP(5), selector, random_state=0)
        assert len(found.support) == 5
        assert found.objective < 0.5 * np.linalg.norm(y) ** 2
    pruned = minimize(X, y, SubspacePursuit(5), "certified")
    assert set(pruned.support) == set(exact.support)


def test_weights_included_and_excluded_columns_are_those_of_complex_rows_and_columns():
    X, y, k = problem(3)
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    weighted, repeated = minimize(X, y, OMP(k), sample_weight=weights), minimize(X[rows], y[rows], OMP(k))
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-9)
    result = minimize(X, y, OMP(3, always_include=[7], exclude=range(4, 7)))
    assert result.support[0] == 7
    assert not set(result.support) & {4, 5, 6}
    A = X[:, minimize(X, y, OMP(k, ridge=0.3)).support]
    ridge = np.linalg.solve(A.conj().T @ A + 0.3 * len(y) * np.eye(k), A.conj().T @ y)
    found = minimize(pd.DataFrame(X).add_prefix("c"), y, OMP(k, ridge=0.3, exclude=["c2"]))
    np.testing.assert_allclose(found.coef[found.support], ridge, atol=1e-9)


def test_a_complex_run_goes_on_from_its_checkpoint(tmp_path):
    X, y, _ = problem(4)
    first = minimize(X, y, OMP(5), callback=lambda one: one.iteration == 1, checkpoint=tmp_path / "run")
    assert first.n_iter == 2
    resumed, whole = minimize(X, y, OMP(5), checkpoint=tmp_path / "run"), minimize(X, y, OMP(5))
    assert [one.selected for one in resumed.history] == [one.selected for one in whole.history]
    np.testing.assert_array_equal(resumed.coef, whole.coef)


@pytest.mark.parametrize(
    ("words", "error", "given"),
    [
        ("y is complex and X is real", TypeError, {"X": np.eye(4)}),
        ("X is complex and y is real", TypeError, {"y": np.ones(4)}),
        ("need the loss 'squared', got 'logistic'", ValueError, {"loss": "logistic"}),
        ("y contains NaN", ValueError, {"y": np.array([1, 1j, NAN, 2])}),
        (
            "NaN or infinity, first in column 2, row 2",
            ValueError,
            {"X": np.diag([1, 1j, NAN, 1])},
        ),
        (
            r"first in column 2, row 2 \('c'\)",
            ValueError,
            {"X": pd.DataFrame(np.diag([1, 1j, NAN, 1]), columns=list("abcd"))},
        ),
        (
            "column 'd' of X is of size",
            ValueError,
            {"X": pd.DataFrame(np.diag([1, 1, 1, 1e200j]), columns=list("abcd"))},
        ),
        ("column 3 of X is of size", ValueError, {"X": np.diag([1, 1, 1, 1e200j])}),
        ("FrankWolfe does not take complex X", ValueError, {"solver": FrankWolfe(L1Ball(1.0))}),
        ("positive=True is for real X", ValueError, {"solver": OMP(2, positive=True)}),
        ("complex X needs a selector that compares more than", ValueError, {"selector": "lucb"}),
        ("n_nonzero_coefs is 9 but X has 4 columns", ValueError, {"solver": OMP(9)}),
        ("exclude names 5, which .* from 0 to 3", ValueError, {"solver": OMP(2, exclude=[5])}),
        (r"y has shape \(3,\) and X has 4 rows", ValueError, {"y": np.ones(3) * 1j}),
    ],
)
def test_what_complex_numbers_cannot_have_is_refused(words, error, given):
    X = np.eye(4) + 0j
    whole = {"X": X, "y": np.ones(4) * 1j, "solver": OMP(2)} | given
    with pytest.raises(error, match=words):
        minimize(**whole)


def test_other_faces_refuse_complex_designs():
    with pytest.raises(TypeError, match="X is complex"):
        PursuitRegressor().fit(as_design(np.eye(4) * 1j), np.ones(4))
