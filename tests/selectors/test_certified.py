"""Certified selection: the atoms of exact selection on every kind of design, with honest counts."""

import numpy as np
import pytest

from skpursuit import OMP, Certified, Exact, as_design, datasets, minimize

from ..support import data
from ..support.asking import ask
from ..support.data import some_rows, view, with_intercept


def with_zeros(rng, n, d):
    return np.where(rng.random((n, d)) < 0.1, rng.standard_normal((n, d)), 0.0)


NO_PATHS = "skpursuit.numerics.tuning.MAX_POOR_ROUNDS", 0


def test_few_columns_are_recomputed_on_a_gaussian_design():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1000, 2000)), rng.standard_normal(1000)
    design = as_design(X)
    counts = []
    for seed in range(20):
        r = np.random.default_rng(seed).standard_normal(1000)
        answer = ask(Certified(), design, r)
        assert answer.columns.tolist() == ask(Exact(), design, r).columns.tolist()
        counts.append(answer.n_recomputed)
        assert answer.bytes_read <= 0.15 * X.nbytes
    assert np.median(counts) <= 0.1 * 2000
    assert max(counts) > 1
    result = minimize(design, y, OMP(n_nonzero_coefs=20), "certified")
    assert result.bytes_read <= 20 * 0.15 * X.nbytes


def test_one_twin_serves_views_and_folds():
    rng = np.random.default_rng(3)
    X = 1000.0 + rng.standard_normal((120, 80))
    base = as_design(X)
    for fold in range(4):
        root = (np.arange(120) % 4 != fold).astype(float)
        centre = (root @ X) / root.sum()
        scale = np.sqrt(root @ (X - centre) ** 2)
        part = some_rows(base, np.flatnonzero(root))
        for design in (view(base, centre, scale, root), with_intercept(base), part):
            r = rng.standard_normal(design.shape[0])
            answer = ask(Certified(), design, r, k=5)
            assert answer.columns.tolist() == ask(Exact(), design, r, k=5).columns.tolist()
            g, bound = design.codes().estimate(r)
            exact = data.dense(design).T @ r.astype(np.longdouble)
            assert (np.abs(g - exact) <= bound).all()
            fine, finer = design.codes(fine=True).estimate(r, np.arange(0, 80, 7), second_byte=True)
            assert (np.abs(fine - exact[::7][: len(fine)]) <= finer).all()
        assert data.codes(view(base, centre)) is data.codes(base)


@pytest.mark.parametrize(("n", "d"), [(20_000, 100), (50, 4000)])
def test_atoms_of_exact_on_a_tall_and_a_wide_design(n, d):
    X, y, _ = datasets.make_sparse_signal(n, d, 10, random_state=0)
    design, solver = as_design(X), OMP(n_nonzero_coefs=10)
    exact, certified = minimize(design, y, solver, "exact"), minimize(design, y, solver, "certified")
    assert certified.support.tolist() == exact.support.tolist()
    assert {record.certificate for record in certified.history} == {"exact"}
    assert n * d < 1_000_000 or certified.bytes_read < 0.3 * exact.bytes_read


def test_a_step_that_is_not_on_a_path_reads_the_codes_once(monkeypatch):
    monkeypatch.setattr(*NO_PATHS)
    X, y, _ = datasets.make_sparse_signal(900, 1500, 12, random_state=1)
    for target in (y, np.column_stack([y, y[::-1], -y])):  # residuals of several targets share a pass
        design = as_design(X)
        result = minimize(design, target, OMP(n_nonzero_coefs=12), "certified")
        _, nbytes = data.codes(design).cost()
        assert all(nbytes <= record.bytes_read < 2 * nbytes for record in result.history)


def test_a_target_that_is_fitted_but_for_a_subnormal_number():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 40)), rng.standard_normal((300, 2))
    X[0] = X[:, 3] = Y[:, 0] = 0.0
    X[0, 3] = Y[0, 0] = 1.0
    Y[1, 0], Y[0, 1] = 1e-310, 1e6
    exact, certified = (minimize(X, Y, OMP(n_nonzero_coefs=5), s) for s in ("exact", "certified"))
    assert certified.support.tolist() == exact.support.tolist()
    assert len(exact.support) == 5


def test_columns_of_very_different_sizes():
    X, y, _ = datasets.make_sparse_signal(700, 300, 20, random_state=5)
    X[:, ::7] *= 1e-12
    X[:, 3::11] *= 1e7
    design = as_design(X)
    assert data.codes(design).exponent.any()
    result = minimize(design, y, OMP(n_nonzero_coefs=15), "certified")
    assert result.support.tolist() == minimize(X, y, OMP(n_nonzero_coefs=15), "exact").support.tolist()
    X[:, 3] *= 1e30  # its products are beyond float32
    result = minimize(X, y, OMP(n_nonzero_coefs=15), "certified")
    assert result.support.tolist() == minimize(X, y, OMP(n_nonzero_coefs=15), "exact").support.tolist()
