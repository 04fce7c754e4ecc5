"""The counts of `accumulate`, whose kernels read memory directly, against what they really read.

Entry by entry: what is not counted may be NaN, and a change of any counted entry shows in the result. Page by
page (`guarded.py`): what is read and thrown away, as in the whole rows that are counted where listed columns
touch so many cache lines that whole rows are read.
"""

import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import as_design

from ..support.data import add_rows, reads, unchecked
from ..support.process import run_python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and mprotect")
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
    add_rows(design, ROWS, np.linspace(1, 2, len(ROWS)), out, cols)
    return out, reads(design).entries


@pytest.mark.parametrize("cols", [None, np.array([7]), np.array([3, 41]), np.arange(0, D, 4)], ids=str)
@pytest.mark.parametrize("name", ["C", "F", "slice", "strided", "float32"])
def test_dense_entries(name, cols):
    used = np.zeros((N, D), dtype=bool)
    used[np.ix_(ROWS, np.arange(D) if cols is None else cols)] = True
    # Column-wise reading multiplies rows that are left out by zero: they count, and have to be finite.
    by_column = name == "F" and cols is not None
    harmless = used | (np.isin(np.arange(D), cols)[None] if by_column else False)
    X = np.random.default_rng(0).standard_normal((N, D))
    wanted, count = sums(layout_of(name, np.where(harmless, X, np.nan)), cols)
    clean, _ = sums(layout_of(name, X), cols)
    np.testing.assert_array_equal(wanted, clean)
    for i, j in np.argwhere(used)[:: 7 if cols is None else 1]:
        changed = X.copy()
        changed[i, j] += 1.0
        assert (sums(layout_of(name, changed), cols)[0] != clean).any(), (i, j)
    few = cols is not None and name in ("C", "slice", "float32") and len(cols) <= 2
    whole_rows = len(ROWS) * D
    assert count == (harmless.sum() if cols is None or few or by_column else whole_rows)


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


ROW_WISE = ["C", "C float32", "strided", "F copy by rows"]
CASES = [
    *(f"{layout}/all/data" for layout in ROW_WISE),
    *(f"{layout}/crowded/data" for layout in ROW_WISE[:3]),
    *(f"{layout}/few/data" for layout in ROW_WISE[:2]),
    "F/listed/data",
    "F float32/listed/data",
    *(f"{form}/{choice}/{part}" for form in ("csr", "csc") for choice in ("all", "few", "unstored")
      for part in ("indices", "data")),
]  # fmt: skip


@pytest.fixture(scope="module")
def found():
    """Case -> pages that were read, with the counts; one process finds out for all."""
    printed = run_python("-m", "tests.data.guarded", *CASES, OMP_NUM_THREADS="1")
    return dict(zip(CASES, map(json.loads, printed.splitlines()), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_bytes_are_those_of_the_entries(found, case):
    index = 8 if case.startswith("cs") else 0
    assert found[case]["bytes"] == found[case]["entries"] * ((4 if "float32" in case else 8) + index)


@pytest.mark.parametrize("layout", ROW_WISE)
def test_whole_rows_are_read_page_by_page(found, layout):
    case = found[f"{layout}/all/data"]
    assert case["pages"] == [4 * row + part for row in (0, 2, 3) for part in range(4)]
    assert case["entries"] == len(case["pages"]) * case["page"]


@pytest.mark.parametrize("layout", ROW_WISE[:3])
def test_crowded_columns_are_read_as_whole_rows(found, layout):
    assert found[f"{layout}/crowded/data"] == found[f"{layout}/all/data"]


@pytest.mark.parametrize("layout", ROW_WISE[:2])
def test_of_few_columns_nothing_else_is_read(found, layout):
    case = found[f"{layout}/few/data"]
    assert case["pages"] == [4 * row + part for row in (0, 2, 3) for part in (1, 3)]
    assert case["entries"] == len(case["pages"])  # one entry in each


@pytest.mark.parametrize("layout", ["F", "F float32"])
def test_listed_columns_in_f_order_are_read_whole(found, layout):
    case = found[f"{layout}/listed/data"]
    assert case["pages"] == [4 * column + part for column in (1, 3, 4) for part in range(4)]
    assert case["entries"] == len(case["pages"]) * case["page"]


@pytest.mark.parametrize("choice", ["all", "few", "unstored"])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse_rows_are_read_whole(found, form, choice):
    """Indices always; values only where a listed column is stored, though they share the count."""
    indices, data = found[f"{form}/{choice}/indices"], found[f"{form}/{choice}/data"]
    assert indices["pages"] == [0, 2, 3]
    assert data["pages"] == ([] if choice == "unstored" else [0, 2, 3])
    assert indices["entries"] == data["entries"] == 3 * indices["page"]
