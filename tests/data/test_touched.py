"""The counts of `add_rows`, whose kernels read memory directly, against the entries they really read."""

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import as_design

from ..support.data import reads, unchecked

ROWS = np.array([1, 4, 5, 6, 9, 11, 12, 17, 18, 30])
N, D = 40, 100


def layout_of(name, X):
    if name == "strided":
        wide = np.full((2 * N, 2 * D), np.nan)
        wide[::2, ::2] = X
        return wide[::2, ::2]
    if name == "slice":
        wide = np.full((N, D + 9), np.nan)
        wide[:, 4:-5] = X
        return wide[:, 4:-5]
    return np.array(
        X, order="F" if name == "F" else "C", dtype=np.float32 if name == "float32" else np.float64
    )


def sums(X, cols):
    """The result and the count of one call on a fresh design."""
    # as_design refuses NaN; norms of rows are a pass over X of their own, which has its own count
    design = unchecked(X, np.ones(N)) if isinstance(X, np.ndarray) else as_design(X)
    out = np.zeros(D if cols is None else len(cols))
    design.add_rows(ROWS, np.linspace(1, 2, len(ROWS)), out, cols)
    return out, reads(design).entries


@pytest.mark.parametrize("cols", [None, np.array([7]), np.array([3, 41]), np.arange(0, D, 4)], ids=str)
@pytest.mark.parametrize("name", ["C", "F", "slice", "strided", "float32"])
def test_dense_entries(name, cols):
    used = np.zeros((N, D), dtype=bool)
    used[np.ix_(ROWS, np.arange(D) if cols is None else cols)] = True
    X = np.random.default_rng(0).standard_normal((N, D))
    wanted, count = sums(layout_of(name, np.where(used, X, np.nan)), cols)
    clean, _ = sums(layout_of(name, X), cols)
    np.testing.assert_array_equal(wanted, clean)
    for i, j in np.argwhere(used)[:: 7 if cols is None else 1]:
        changed = X.copy()
        changed[i, j] += 1.0
        assert (sums(layout_of(name, changed), cols)[0] != clean).any(), (i, j)
    crowded = cols is not None and name != "F" and len(cols) > 2  # whole rows are read
    assert count == (len(ROWS) * D if crowded else used.sum())


@pytest.mark.parametrize("cols", [None, np.array([3, 41])], ids=["all", "some"])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse_entries(form, cols):
    rng = np.random.default_rng(1)
    X = np.where(rng.random((N, D)) < 0.3, rng.standard_normal((N, D)), 0.0)
    used = np.zeros((N, D), dtype=bool)
    used[ROWS] = X[ROWS] != 0
    clean, count = sums(sp.csr_array(X).asformat(form), cols)
    assert count == used.sum()  # whole rows: to find the columns, all indices of a row are read
    changes = used if cols is None else used & np.isin(np.arange(D), cols)
    for i, j in np.argwhere(X != 0)[::3]:
        changed = X.copy()
        changed[i, j] += 1.0
        assert (sums(sp.csr_array(changed).asformat(form), cols)[0] != clean).any() == changes[i, j]
