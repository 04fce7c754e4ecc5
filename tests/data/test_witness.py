"""A design notices that its X was changed in place."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from skpursuit import OMP, Certified, Exact, PursuitRegressor, as_design, minimize, orthogonal_mp, theory
from skpursuit.selectors import Query
from tests.support.data import view, with_intercept

DENSE = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
}


def shapes(count):
    rng = np.random.default_rng(5)
    fixed = [(1, 1), (1, 9), (9, 1), (8, 8), (64, 64), (512, 3)]
    return [*fixed, *(tuple(int(s) for s in rng.integers(2, 70, 2)) for _ in range(count))]


def check_noticed(design):
    with pytest.raises(ValueError, match=r"X was changed in place.*make a new design"):
        as_design(design)


@pytest.mark.parametrize("layout", DENSE)
def test_a_changed_row_or_column_is_noticed(layout):
    for seed, (n, d) in enumerate(shapes(30)):
        rng = np.random.default_rng(seed)
        X = DENSE[layout](rng.standard_normal((n, d)))
        i, j = rng.integers(n), rng.integers(d)
        design = as_design(X)
        before = X[i].copy()
        X[i] += 1
        check_noticed(design)
        X[i] = before
        as_design(design)
        X[:, j] *= 2
        check_noticed(design)
        assert as_design(X) is not design


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_a_changed_row_or_column_of_a_sparse_matrix_is_noticed(form):
    for seed, (n, d) in enumerate(shapes(30)):
        rng = np.random.default_rng(seed)
        X = sp.random_array((n, d), density=0.3, rng=rng, format=form)
        design = as_design(X)
        as_design(design)
        for numbers in X.tocoo().coords if X.nnz else ():
            before = X.data.copy()
            X.data[numbers == rng.choice(numbers)] += 1
            check_noticed(design)
            X.data[:] = before
            as_design(design)


def test_a_changed_structure_is_noticed():
    X = sp.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [0.0, 0.0, 5.0]]))
    X.data[-1] = 0.0
    design = as_design(X)
    X.eliminate_zeros()
    check_noticed(design)
    X = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    design = as_design(X)
    X.indices[2] = 2
    check_noticed(design)


def test_what_was_copied_may_change():
    whole = np.arange(12).reshape(3, 4)
    X = sp.coo_array(whole)
    designs = as_design(whole), as_design(X)
    whole[:] = 7
    X.data[:] = 7
    for design in designs:
        assert as_design(design) is design


def test_every_use_of_a_design_notices():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 40)), rng.standard_normal(50)
    design = as_design(X)
    uses = [
        lambda: minimize(design, y, OMP(3), "certified"),
        lambda: minimize(view(design, centre=X.mean(axis=0)), y, OMP(3)),
        lambda: minimize(with_intercept(design), y, OMP(3)),
        lambda: Certified().select(design, Query(y)),
        lambda: Exact().select(view(design, root=np.ones(len(X))), Query(y)),
        lambda: orthogonal_mp(design, y, n_nonzero_coefs=3),
        lambda: theory.h2(design, y),
    ]
    for use in uses:
        use()
    X *= 1.5
    for use in uses:
        with pytest.raises(ValueError, match="make a new design"):
            use()


def test_a_design_for_one_call_watches_nothing():
    X = np.random.default_rng(0).standard_normal((20, 8))
    for _ in range(2):
        assert minimize(X, X[:, 2], OMP(1)).support.tolist() == [2]
        assert PursuitRegressor(n_nonzero_coefs=1).fit(X, X[:, 2]).support_.tolist() == [2]
        X += 1


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_a_copy_of_a_design_watches_its_own_x(form):
    X = form(np.random.default_rng(0).standard_normal((6, 5)))
    for copied in (copy.deepcopy(as_design(X)), pickle.loads(pickle.dumps(as_design(X)))):
        X *= 2
        assert as_design(copied) is copied


def test_nan_is_what_it_was():
    design = as_design(np.full((3, 3), np.nan), check=False)
    assert as_design(design, check=False) is design
