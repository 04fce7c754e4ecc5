"""Gram selection: exact answers from columns of X^T X that were made ahead."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from skpursuit import OMP, FrankWolfe, Gram, L1Ball, PursuitRegressor, as_design, datasets, minimize
from skpursuit.numerics.tuning import GRAM_SHARE
from skpursuit.selectors.gram import GramGradient

from ..support.asking import Absolute, query_at
from ..support.data import dense, kept_gram_columns, view


def test_a_pursuit_reads_x_a_few_times_only():
    X, y, _ = datasets.make_sparse_signal(300, 1200, 24, snr=3.0, random_state=0)
    exact = minimize(X, y, OMP(n_nonzero_coefs=24), selector="exact")
    gram = minimize(X, y, OMP(n_nonzero_coefs=24), selector="gram")
    assert gram.support.tolist() == exact.support.tolist()
    passes = gram.entries_read / X.size
    assert passes == int(passes)
    assert 2 <= passes <= 6
    assert exact.entries_read == 24 * X.size


def test_the_matrix_is_formed_once_a_third_of_the_columns_was_asked_for_and_memory_allows_it():
    X, y, _ = datasets.make_sparse_signal(120, 90, 40, snr=0.0, random_state=1)
    design, third, room = as_design(X), 90 // GRAM_SHARE, 90 * 90 * 8
    for k, limit, formed in ((5, room, False), (third + 30, room - 1, False), (third + 10, room, True)):
        minimize(design, y, OMP(n_nonzero_coefs=k), Gram(memory_limit=limit))
        assert (design.caches.gram is not None) == formed
        assert formed or kept_gram_columns(design).nbytes <= limit
    np.testing.assert_allclose(design.caches.gram, X.T @ X, atol=1e-12)


def views(X, rng):
    """Designs with large centres, scales and weights, where rounding is relative to more than the column."""
    shifted = X + 1000.0
    yield as_design(X)
    yield as_design(X.astype(np.float32))
    yield view(shifted, centre=shifted.mean(axis=0))
    yield view(X, scale=rng.uniform(0.1, 10.0, X.shape[1]), root=rng.uniform(0.0, 2.0, len(X)))


@pytest.mark.parametrize("seed", range(5))
def test_the_error_bound_holds_and_answers_are_exact_on_views(seed):
    rng = np.random.default_rng(seed)
    X, y, _ = datasets.make_sparse_signal(150, 200, 10, snr=3.0, random_state=seed)
    for design in views(X, rng):
        support, coef = rng.choice(200, 9, replace=False), rng.standard_normal(9)
        Z = dense(design)
        truth = Z.T @ (Z[:, support] @ coef - y)
        r = np.asarray(Z[:, support] @ coef - y, dtype=np.float64)
        g, error = (
            GramGradient(design, y, roundings=0).evaluate(query_at(support, coef, r, Absolute()), {}).estimate
        )
        assert (np.abs(g - truth) <= error).all()
        exact = minimize(design, y, OMP(n_nonzero_coefs=10), selector="exact")
        assert (
            minimize(design, y, OMP(n_nonzero_coefs=10), selector="gram").support.tolist()
            == exact.support.tolist()
        )


@pytest.mark.parametrize("seed", [132, 192, 1092])
def test_float32_columns_that_are_rounded_near_zero(seed):
    """Entries below the normal range of float32, divided by the norms of their columns."""
    rng = np.random.default_rng(seed)
    rng.choice(4)
    X = np.ldexp(rng.standard_normal((7, 36)), rng.integers(-140, 141, 36)).astype(np.float32)
    y = rng.standard_normal(7)
    found = [
        PursuitRegressor(n_nonzero_coefs=6, selector=name, scale="column")
        .fit(csr_array(X), y)
        .support_.tolist()
        for name in ("gram", "exact")
    ]
    assert found[0] == found[1]


def test_float32_columns_of_very_different_sizes():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((50, 300))
    sizes = np.full(300, 1e-33)
    sizes[:2] = 1e10
    y = B[:, :12] @ rng.standard_normal(12) + rng.standard_normal(50)
    X = (B * sizes).astype(np.float32)
    exact = minimize(X, y, OMP(n_nonzero_coefs=20), selector="exact")
    assert minimize(X, y, OMP(n_nonzero_coefs=20), selector="gram").support.tolist() == exact.support.tolist()


def test_frank_wolfe_on_columns_far_from_zero_that_hardly_differ():
    rng = np.random.default_rng(1)
    B = rng.standard_normal((60, 40))
    B[:, 20:] = B[:, :20][:, ::-1] + 3e-8 * rng.standard_normal((60, 20))
    X, y = B + 1e8, B[:, :3].sum(axis=1)
    centred = view(X, centre=X.mean(axis=0))
    runs = [minimize(centred, y - y.mean(), FrankWolfe(L1Ball(3.0), 40), s) for s in ("exact", "gram")]
    exact, gram = ([record.selected for record in run.history] for run in runs)
    assert gram == exact
