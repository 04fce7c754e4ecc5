"""Codes of many signals: right, the same on any number of threads, and calm about bad dictionaries."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.linear_model import orthogonal_mp_gram
from tests.support.failing import fails
from threadpoolctl import threadpool_limits

from skpursuit import PursuitCoder


def gaussian(d=128, n=64, m=60, seed=0):
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((d, n))
    return atoms / np.linalg.norm(atoms, axis=1, keepdims=True), rng.standard_normal((m, n))


def supports(codes):
    return [tuple(codes.indices[a:b]) for a, b in pairwise(codes.indptr)]


def cosamp(atoms, y, k, refit=False):
    """The algorithm as in the paper, by least squares on the signals themselves."""
    w, left = np.zeros(len(atoms)), y @ y
    for _ in range(k):
        top = np.argsort(-np.abs(atoms @ (y - w @ atoms)), kind="stable")[: 2 * k]
        merged = np.union1d(np.flatnonzero(w), top)
        fit = np.linalg.lstsq(atoms[merged].T, y, rcond=None)[0]
        kept = np.argsort(-np.abs(fit), kind="stable")[:k]
        new = np.zeros(len(atoms))
        new[merged[kept]] = fit[kept]
        if refit:
            new[merged[kept]] = np.linalg.lstsq(atoms[merged[kept]].T, y, rcond=None)[0]
        residual = np.sum((y - new @ atoms) ** 2)
        if residual >= left * (1 - 1e-6):
            break
        w, left = new, residual
    return w


@pytest.mark.parametrize(("d", "n"), [(128, 64), (300, 100), (30, 50), (1, 5), (70, 1)])
def test_omp_equals_scikit_learn(d, n):
    atoms, signals = gaussian(d, n, 300)
    k = max(1, min(d, n) // 6)
    theirs = orthogonal_mp_gram(atoms @ atoms.T, atoms @ signals.T, n_nonzero_coefs=k)
    ours = PursuitCoder(atoms, n_nonzero_coefs=k).transform(signals)
    assert ours.shape == (300, d)
    np.testing.assert_allclose(ours.toarray(), theirs.reshape(d, 300).T, atol=1e-10)


@pytest.mark.parametrize("refit", [False, True])
def test_cosamp_equals_least_squares_on_the_signals(refit):
    atoms, signals = gaussian(m=80)
    signals[40:] = atoms[np.arange(120).reshape(40, 3)].sum(axis=1) + 0.1 * signals[40:]
    codes = PursuitCoder(atoms, n_nonzero_coefs=4, solver="cosamp", refit=refit).transform(signals)
    assert np.all(np.diff(codes.indptr) <= 4)
    expected = np.array([cosamp(atoms, y, 4, refit) for y in signals])
    np.testing.assert_allclose(codes.toarray(), expected, atol=1e-10)


@pytest.mark.parametrize("solver", ["omp", "cosamp"])
def test_exactly_sparse_signals_are_recovered_and_nothing_else_is_added(solver):
    atoms, _ = gaussian(200, 100)
    truth = np.zeros((30, 200))
    rng = np.random.default_rng(2)
    for row in truth:
        row[rng.choice(200, 4, replace=False)] = rng.choice([-1, 1], 4) * (1 + rng.random(4))
    codes = PursuitCoder(atoms, n_nonzero_coefs=12, solver=solver).transform(truth @ atoms)
    np.testing.assert_allclose(codes.toarray(), truth, atol=1e-12)
    assert codes.nnz == 4 * 30
    single = PursuitCoder(atoms, n_nonzero_coefs=12, solver=solver).transform((truth @ atoms).astype("f"))
    assert single.dtype == np.float32
    assert single.nnz == 4 * 30


@pytest.mark.parametrize("solver", ["omp", "cosamp"])
@pytest.mark.parametrize("scale", [1e-90, 1e-8, 1e90])
def test_scale_changes_no_support(solver, scale):
    atoms, signals = gaussian()
    plain = PursuitCoder(atoms, solver=solver).transform(signals)
    loud = PursuitCoder(atoms, solver=solver).transform(signals * scale)
    assert supports(loud) == supports(plain)
    np.testing.assert_allclose(loud.data / scale, plain.data, rtol=1e-9)
    big = PursuitCoder(atoms * scale, solver=solver).transform(signals)
    if solver == "omp":
        assert supports(big) == supports(plain)
        np.testing.assert_allclose(big.data * scale, plain.data, rtol=1e-9)


def test_what_float32_cannot_tell_apart_is_settled_in_float64():
    rng = np.random.default_rng(3)
    y = rng.standard_normal(64)
    y /= np.linalg.norm(y)
    other = rng.standard_normal(64)
    other -= other @ y * y
    other /= np.linalg.norm(other)
    atoms = np.array([np.cos(a) * y + np.sin(a) * other for a in (1e-3, 1e-3 - 1e-9, 0.5)])
    for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
        codes = PursuitCoder(atoms[order], n_nonzero_coefs=1).transform(y[None])
        assert order[codes.indices[0]] == 1


@pytest.mark.parametrize("solver", ["omp", "cosamp"])
def test_ties_go_to_the_lowest_index(solver):
    ones = PursuitCoder(np.vstack([np.eye(5)] * 3), 2, solver).transform(np.ones((1, 5)))
    assert supports(ones) == [(0, 1)]


@pytest.mark.parametrize("solver", ["omp", "cosamp"])
def test_zero_duplicate_and_dependent_atoms(solver):
    atoms, signals = gaussian(6, 10, 40)
    bad = np.vstack([np.zeros(10), atoms, atoms[0] + atoms[1], atoms[2] * (1 + 1e-12), np.zeros(10)])
    codes = PursuitCoder(bad, len(bad), solver).transform(signals)
    assert np.isfinite(codes.data).all()
    assert np.all(np.diff(codes.indptr) <= 6)
    assert not np.isin(codes.indices, [0, len(bad) - 1]).any()
    best = signals @ np.linalg.pinv(atoms) @ atoms
    np.testing.assert_allclose(codes @ bad, best, atol=1e-8)
    assert PursuitCoder(np.zeros((4, 10)), 2, solver).transform(signals).nnz == 0


@pytest.mark.parametrize("tol", [30.0, 1e-2, 1e-9, 1e-20])
def test_tol_is_the_squared_residual_norm(tol):
    atoms, signals = gaussian(m=20)
    coder = PursuitCoder(atoms, n_nonzero_coefs=None, tol=tol)
    codes = coder.transform(signals)
    left = np.sum((signals - coder.inverse_transform(codes)) ** 2, axis=1)
    assert np.all(left <= tol * (1 + 1e-6) + 1e-25)
    for y, count in zip(signals, np.diff(codes.indptr)):
        if count > 1:
            fewer = PursuitCoder(atoms, n_nonzero_coefs=int(count) - 1).transform(y[None])
            assert np.sum((y - fewer @ atoms) ** 2) > tol


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_bits_on_any_number_of_threads(dtype):
    atoms, signals = (x.astype(dtype) for x in gaussian(m=700))
    first, *others = [PursuitCoder(atoms, 5, n_jobs=n).transform(signals) for n in (1, 2, 3, -1, None)]
    with threadpool_limits(1):
        others.append(PursuitCoder(atoms, 5).transform(signals))
    for other in others:
        np.testing.assert_array_equal(other.data, first.data)
        np.testing.assert_array_equal(other.indices, first.indices)
        np.testing.assert_array_equal(other.indptr, first.indptr)


def test_zero_signals_and_no_signals():
    atoms, signals = gaussian(m=3)
    signals[1] = 0
    for way in ({}, {"atom_score": "gain"}, {"positive": True}):
        codes = PursuitCoder(atoms, 1, **way)._encoder(atoms, signals.dtype, 1000)
        np.testing.assert_array_equal(np.diff(codes.transform(signals).indptr), [1, 0, 1])
    codes = PursuitCoder(atoms, 2).transform(signals)
    np.testing.assert_array_equal(np.diff(codes.indptr), [2, 0, 2])
    nothing = PursuitCoder(atoms, 2).transform(np.empty((0, 64)))
    assert nothing.shape == (0, 128)


@pytest.mark.parametrize(
    ("dictionary", "message"),
    [
        (np.full((3, 64), np.nan), "dictionary contains NaN"),
        (np.ones(64), r"dictionary must have an atom in each row, got an array of shape \(64,\)"),
        (np.empty((0, 64)), "dictionary must have an atom in each row"),
    ],
)
def test_bad_dictionaries_are_named(dictionary, message):
    with pytest.raises(ValueError, match=message):
        PursuitCoder(dictionary).transform(gaussian(m=2)[1])


def test_bad_signals_are_named():
    atoms, signals = gaussian(m=600)
    coder = PursuitCoder(atoms, 2)
    fails("X has 63 features, but PursuitCoder is expecting 64", coder.transform, signals[:, 1:])
    fails("Expected 2D array", coder.transform, signals[0])
    for value in (np.nan, np.inf, -np.inf):
        broken = signals.copy()
        broken[520, 3] = value
        fails(r"NaN or infinity \(first in row 520\)", coder.transform, broken)
    fails("Complex data", coder.transform, signals * 1j)
    with pytest.raises(ValueError, match="codes have 5 columns, expected one for each of the 128 atoms"):
        coder.inverse_transform(np.ones((2, 5)))


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_a_dictionary_that_float32_cannot_hold_is_refused(scale):
    coder = PursuitCoder(np.eye(4) * scale, 1)
    assert coder.transform(np.ones((1, 4))).nnz == 1
    fails("dictionary leaves the range of float32", coder.transform, np.ones((1, 4), dtype=np.float32))
