"""The boundary: what is taken, what is refused, and that nothing is copied without need."""

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import OMP, PursuitCoder, PursuitRegressor, as_design, minimize, orthogonal_mp
from tests.support.failing import fails


def test_dense_input_is_not_copied():
    X = np.random.default_rng(0).standard_normal((5, 4))
    for view in (X, np.asfortranarray(X), X[::2, ::-1], X.astype(np.float32)):
        assert np.shares_memory(as_design(view).store.first.X, view)
        assert as_design(view).dtype == view.dtype
    design = as_design(X)
    assert as_design(design) is design


def test_sparse_input_is_not_copied():
    X = sp.random_array((9, 7), density=0.3, rng=np.random.default_rng(0), format="csc")
    assert np.shares_memory(as_design(X).store.first.matrix.data, X.data)


def test_unsorted_and_duplicate_entries_are_sorted_in_a_copy():
    X = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 4))
    design = as_design(X)
    np.testing.assert_array_equal(design.product(np.ones(1)), [2.0, 0.0, 4.0, 0.0])
    assert X.indices.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("X", "error", "words"),
    [
        (np.ones(3), ValueError, "two-dimensional"),
        (np.ones((3, 2, 2)), ValueError, "two-dimensional"),
        (np.ones((0, 3)), ValueError, "empty"),
        (np.ones((3, 0)), ValueError, "empty"),
        (np.array([["a", "b"]]), TypeError, "encode"),
        (np.array([[1.0, np.nan]]), ValueError, "NaN or infinity, first in column 1, row 0;"),
        (np.array([[np.inf, 0.0]]), ValueError, "NaN or infinity, first in column 0"),
        (sp.csr_array(np.array([[1.0, np.nan]])), ValueError, "NaN or infinity"),
        (sp.csr_array(np.eye(2, dtype=complex)), TypeError, "complex"),
        (np.full((2, 2), 1.5e308), ValueError, "sizes must lie"),
    ],
)
def test_bad_X(X, error, words):
    for order in "CF":
        X = np.asarray(X, order=order) if isinstance(X, np.ndarray) else X
        fails(words, as_design, X, error=error)
        fails(words, minimize, X, np.ones(X.shape[0]), OMP(n_nonzero_coefs=1), error=error)


def corrupted(form, field, change):
    X = sp.random_array((6, 8), density=0.4, rng=np.random.default_rng(0)).asformat(form)
    value = getattr(X, field)
    setattr(X, field, change(value))
    return X


def first(value, to):
    value = value.copy()
    value[0] = to
    return value


CORRUPT = [
    ("coo", "row", lambda v: first(v, 10**6)),
    ("coo", "row", lambda v: first(v, -1)),
    ("coo", "col", lambda v: first(v, 8)),
    ("coo", "col", lambda v: v[:-1]),
    ("coo", "coords", lambda v: (v[0], v[1].astype(float))),
    ("coo", "data", lambda v: v[:-1]),
    ("coo", "data", lambda v: None),
    ("csc", "indices", lambda v: first(v, 6)),
    ("csr", "indices", lambda v: v.astype(float)),
    ("csr", "indices", lambda v: first(v, -1)),
    ("csr", "indptr", lambda v: np.array([0, 5, 0, 0, 0, 0, 0])),
    ("csr", "indptr", lambda v: np.append(v[:-1], 999)),
    ("csr", "data", lambda v: v[:-1]),
    ("bsr", "indices", lambda v: first(v, 10**6)),
    ("bsr", "indptr", lambda v: first(v, 10**6)),
    ("bsr", "data", lambda v: v[:1]),
    ("bsr", "data", lambda v: np.ones((len(v), 4, 4))),
    ("dia", "offsets", lambda v: v[:2]),
    ("dia", "offsets", lambda v: v * 0),
    ("dia", "data", lambda v: v[0]),
    ("lil", "rows", lambda v: first(v, [100] * len(v[0]))),
    ("lil", "rows", lambda v: first(v, [1] * 50)),
    ("lil", "rows", lambda v: first(v, None)),
    ("lil", "data", lambda v: first(v, ["a"] * len(v[0]))),
    ("lil", "data", lambda v: v[:2]),
    ("dok", "_dict", lambda v: {**v, (10**6, 1): 1.0}),
    ("dok", "_dict", lambda v: {**v, (1, -5): 1.0}),
    ("dok", "_dict", lambda v: {**v, ("a", 1): 1.0}),
]


@pytest.mark.parametrize(("form", "field", "change"), CORRUPT)
def test_no_field_of_a_sparse_matrix_is_trusted(form, field, change):
    y = np.ones(6)
    model = PursuitRegressor(n_nonzero_coefs=1).fit(np.eye(6, 8), y)
    for use in (
        as_design,
        lambda X: minimize(X, y, OMP(1)),
        lambda X: PursuitRegressor().fit(X, y),
        model.predict,
        lambda X: orthogonal_mp(X, y),
        PursuitCoder(np.eye(8)).inverse_transform,
    ):
        fails(f"corrupt {form} matrix.*rebuild it", use, corrupted(form, field, change))


def test_random_coordinates_are_taken_or_refused():
    rng = np.random.default_rng(3)
    for _ in range(200):
        rows, cols = rng.integers(-1, 6, 12), rng.integers(-1, 8, 12)
        X = sp.coo_array((rng.standard_normal(12), (rows % 5, cols % 7)), shape=(5, 7))
        X.row, X.col = rows, cols
        good = (rows >= 0).all() and (rows < 5).all() and (cols >= 0).all() and (cols < 7).all()
        if good:
            dense = np.zeros((5, 7))
            np.add.at(dense, (rows, cols), X.data)
            np.testing.assert_allclose(as_design(X).store.first.matrix.toarray(), dense)
        else:
            fails("corrupt coo", as_design, X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
def test_every_sparse_format_is_taken_and_left_as_it_was(form, kind):
    X = kind(sp.random_array((6, 8), density=0.4, rng=np.random.default_rng(0))).asformat(form)
    dense = X.toarray()
    np.testing.assert_array_equal(as_design(X).store.first.matrix.toarray(), dense)
    np.testing.assert_array_equal(X.toarray(), dense)
    empty = kind((3, 4)).asformat(form)
    assert as_design(empty).store.first.matrix.nnz == 0


def test_what_lies_behind_the_last_pointer_is_nothing():
    X = sp.csr_array(np.eye(3))
    X.data, X.indices = np.append(X.data, np.nan), np.append(X.indices, 999)
    np.testing.assert_array_equal(as_design(X).store.first.matrix.toarray(), np.eye(3))
    assert len(X.indices) == 4


def test_diagonals_outside_the_matrix_are_nothing():
    X = sp.dia_array((np.ones((3, 4)), [0, 50, -50]), shape=(4, 4))
    np.testing.assert_array_equal(as_design(X).store.first.matrix.toarray(), np.eye(4))


def test_truncated_memory_map_is_refused(tmp_path):
    path = tmp_path / "x.bin"
    np.ones(64).tofile(path)
    X = np.memmap(path, dtype=np.float64, mode="r", shape=(8, 8))
    with open(path, "r+b") as file:
        file.truncate(100)
    fails("cut short", as_design, X)


def test_other_byte_order_and_half_floats():
    X = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_array_equal(as_design(X.astype(">f8")).store.first.X, X)
    assert as_design(X.astype(np.float16)).dtype == np.float32
    assert as_design(X > 0).dtype == np.float64


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_numbers_in_the_other_byte_order(form):
    X = sp.random_array((60, 8), density=0.4, rng=np.random.default_rng(0), format=form)
    y = np.arange(60.0)
    swapped = X.copy()
    swapped.data = X.data.astype(X.dtype.newbyteorder())
    results = [minimize(one, y, OMP(3)) for one in (X, swapped)]
    np.testing.assert_array_equal(results[0].coef, results[1].coef)


def test_norms_of_zero_columns_are_not_negative():
    assert not np.signbit(as_design(np.zeros((600, 3))).norms(0)).any()
