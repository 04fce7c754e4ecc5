"""Every data source keeps the same contract: products, norms, gathers, and the adjoint test."""

import numpy as np
import pytest

from skpursuit import as_design
from skpursuit.numerics.sums import BLOCK_ROWS

from ..support import data
from ..support.sources import NAMES, every_source, matrix


@pytest.fixture(params=[*NAMES, "file C", "file F"])
def source(request, tmp_path):
    if request.param.startswith("file"):  # in tiles
        dense = matrix(600, 40)
        design = data.on_disk(np.asarray(dense, order=request.param[-1]), tmp_path / "x.npy", 2**14)
        assert len(design.store.places) > 3
    else:
        design, dense = every_source(matrix(), tmp_path)[request.param]
    loose = 2e-5 if design.dtype == np.float32 else 1e-11
    return design, dense, loose


def test_adjoint(source):
    design, dense, loose = source
    rng = np.random.default_rng(0)
    support = rng.permutation(dense.shape[1])
    u, v = rng.standard_normal(dense.shape[0]), rng.standard_normal(dense.shape[1])
    left = design.predict(support, v[support]) @ u
    right = v @ design.product(u)
    assert abs(left - right) <= loose * (1 + abs(left))


@pytest.mark.parametrize("targets", [(), (3,)])
def test_products(source, targets):
    design, dense, loose = source
    rng = np.random.default_rng(1)
    r = rng.standard_normal((dense.shape[0], *targets))
    cols = np.array([5, 0, 5, 11])
    close = dict(rtol=loose, atol=loose * 10)
    np.testing.assert_allclose(design.product(r), dense.T @ r, **close)
    np.testing.assert_allclose(design.dots(cols, r), dense[:, cols].T @ r, **close)
    rows = np.array([2, 9, 2, 20])
    out = np.ones((dense.shape[1], *targets))
    design.add_rows(rows, r[:4], out)
    np.testing.assert_allclose(out, 1 + dense[rows].T @ r[:4], **close)
    cols = np.array([0, 5, 11])
    some = np.ones((3, *targets))
    design.add_rows(rows, r[:4], some, cols)
    np.testing.assert_allclose(some, 1 + dense[np.ix_(rows, cols)].T @ r[:4], **close)


def test_columns_gram_and_norms(source):
    design, dense, loose = source
    cols = np.array([6, 1, 6])
    close = dict(rtol=loose, atol=loose * 10)
    np.testing.assert_allclose(design.columns(cols), dense[:, cols].T, **close)
    np.testing.assert_allclose(data.gram_column(design, 6), dense.T @ dense[:, 6], **close)
    np.testing.assert_allclose(data.gram_matrix(design), dense.T @ dense, **close)
    for axis, order in ((0, 2), (1, 2), (1, np.inf)):
        expected = np.linalg.norm(dense, ord=order, axis=axis)
        np.testing.assert_allclose(design.norms(axis, order), expected, **close)


def test_rounding_bound_covers_the_product(source):
    design, dense, _ = source
    r = np.random.default_rng(3).standard_normal(dense.shape[0])
    bound = design.rounding(r)
    if bound is not None:
        assert (np.abs(design.product(r) - dense.T @ r) <= bound + 1e-15).all()
        assert (bound < 1.0).all()


def test_fingerprints_tell_designs_apart(source, tmp_path):
    design, dense, _ = source
    other = dense.copy()
    other[1, 1] += 1.0
    assert design.data_fingerprint() == design.data_fingerprint()
    assert as_design(dense).data_fingerprint() != as_design(other).data_fingerprint()


def test_counts_start_anew_for_each_run_and_caches_are_shared(source):
    design, dense, _ = source
    design.norms(1)
    other = design.for_run()
    other.product(np.ones(dense.shape[0]))
    assert data.reads(other).entries > 0
    assert other.norms(1) is design.norms(1)
    before = data.reads(design)
    other.product(np.ones(dense.shape[0]))
    assert data.reads(design) == before


@pytest.mark.parametrize("length", [BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS + 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_of_lines_that_are_cut_into_pieces(length, dtype):
    X = np.random.default_rng(length).standard_normal((5, length)).astype(dtype)
    expected = np.linalg.norm(X.astype(float), axis=1)
    for design, axis in ((as_design(X), 1), (as_design(X.T), 0)):
        np.testing.assert_allclose(design.norms(axis), expected, rtol=1e-13)
