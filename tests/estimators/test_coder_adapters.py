"""The adapters in examples/ do what the functions of the other projects promise."""

import runpy
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

ADAPTERS = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "coder_adapters.py"))
RNG = np.random.default_rng(0)


def test_gradient_matching():
    A, ridge = RNG.standard_normal((50, 200)), 0.5
    b = A[:, :4] @ np.array([3.0, 2.0, 1.0, -2.0])
    match = ADAPTERS["orthogonal_mp_reg"]
    assert np.linalg.norm(A @ match(A, b, tol=1e-3) - b) <= 1e-3 * np.linalg.norm(b)
    weights = match(A, b, nnz=6, positive=True, lam=ridge)
    chosen = np.flatnonzero(weights)
    assert len(chosen) <= 6
    more = np.vstack([A[:, chosen], ridge**0.5 * np.eye(len(chosen))])
    expected = nnls(more, np.append(b, np.zeros(len(chosen))))[0]
    np.testing.assert_allclose(weights[chosen], expected, atol=1e-10)


def test_ksvd_has_signals_in_columns():
    signals = RNG.standard_normal((16, 500))
    dictionary, codes = ADAPTERS["ksvd"](signals, 32, 4)
    np.testing.assert_allclose(np.linalg.norm(dictionary, axis=0), 1)
    assert np.linalg.norm(signals - dictionary @ codes) < 0.6 * np.linalg.norm(signals)


def test_splice_gives_few_concepts_and_their_sum():
    weights, sums = ADAPTERS["splice_decompose"](RNG.standard_normal((20, 50)), np.eye(50), 5)
    assert weights.data.min() > 0
    assert np.diff(weights.indptr).max() == 5
    np.testing.assert_allclose(np.linalg.norm(sums, axis=1), 1)
