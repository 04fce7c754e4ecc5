"""Newton on a support: curvature of coupled targets against its definition, and steps that end."""

import numpy as np
import pytest

from skpursuit import OMP, Huber, as_design, datasets, minimize
from skpursuit.fit.curvature import bend_of, derivatives
from skpursuit.fit.descent import Descent
from skpursuit.fit.newton import largest_only
from skpursuit.problem.losses import as_loss
from skpursuit.problem.losses.multinomial import Multinomial
from skpursuit.problem.problem import make_problem
from skpursuit.problem.sample_losses import SampleLosses
from skpursuit.problem.score import Absolute, Group


@pytest.mark.parametrize("density", [0.2, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_coupled_curvature_is_the_hessian_on_the_support(density, weighted):
    rng = np.random.default_rng(0)
    n, k, m = 80, 5, 3
    A = rng.standard_normal((k, n)) * (rng.random((k, n)) < density)
    A[2] = 1.0
    z, y = rng.standard_normal((n, m)), np.arange(n) % m
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    problem = make_problem(as_design(A.T.copy()), y, Multinomial(), weights)
    p = Multinomial().probabilities(z)
    rows = p[:, :, None] * (np.eye(m) - p[:, None, :]) * (1.0 if weights is None else weights[:, None, None])
    H = np.einsum("is,sab,js->aibj", A, rows, A).reshape(m * k, m * k) + 0.1 * np.eye(m * k)
    g = rng.standard_normal((k, m))
    expected = np.linalg.solve(H, g.T.ravel()).reshape(m, k).T
    slope, found = derivatives(problem, A, z, "curvature")
    bend, _ = bend_of(found, np.full(k, 0.1))
    np.testing.assert_allclose(slope, A @ problem.residual(z), rtol=1e-9)
    np.testing.assert_allclose(bend.solve(g), expected, rtol=1e-9)


def test_decisions_do_not_change_what_was_told():
    """Sums are results of tasks on a cluster, and a task may be made again."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((4, 50)), np.sign(rng.standard_normal(50))
    samples, zero = SampleLosses(y, as_loss("logistic")), np.zeros(4)
    descent = Descent(zero, zero, np.full(4, 0.1), 1e-15, True, 10)
    told = [descent.look(None, A, samples)]
    first, again = (descent.after(told).p for _ in range(2))
    assert first.any()
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_huber_ends_in_few_steps_where_residuals_vanish(scale, monkeypatch):
    steps = []
    plain = Descent.after
    monkeypatch.setattr(Descent, "after", lambda *given: steps.append(0) or plain(*given))
    X, y, w = datasets.make_sparse_signal(300, 400, 10, snr=np.inf, random_state=0)
    result = minimize(X, scale * y / y.std(), OMP(10), loss=Huber())
    np.testing.assert_allclose(result.coef, scale * w / y.std(), atol=1e-11 * scale)
    assert len(steps) < 80


def test_a_huge_ridge_beside_tiny_columns_is_felt():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 5)), rng.standard_normal(10)
    coef = minimize(X * 1e-137, y, OMP(2, forced=(3, 1), ridge=1e-3), loss="huber").coef
    assert 0.5e-2 * coef @ coef < 1e-9  # the penalty, beside losses near one


@pytest.mark.parametrize("scale", [1e20, 1e139])
def test_huber_does_not_take_far_targets_for_fitted_ones(scale):
    X, y, _ = datasets.make_sparse_signal(30, 20, 3, snr=5.0, random_state=0)
    result = minimize(X, y * scale, OMP(3), loss="huber")
    assert result.status.name == "COMPLETE"
    assert len(result.support) == 3


@pytest.mark.parametrize(
    ("score", "apart", "ends", "kept"),
    [
        (Absolute(), False, [[3.0, -4.0, 0.5, 2.0]], [1, 3]),  # of 3, 4, 2 and 8 in units of X
        (Group(), False, [[[3.0, 0.0], [4.0, 1.0], [0.5, 9.0], [0.0, 0.0]]], [1, 2]),
        (Group(), True, [[3.0, 4.0, 0.5, 0.0], [0.0, 1.0, 9.0, 0.0]], [1, 2]),
        (Group(), True, [[3.0, 4.0, 0.5, 2.0]], [1, 3]),
        (Absolute(), False, [[3.0, -3.0, 0.75, 0.75]], [0, 1]),  # of ties the first
    ],
)
def test_the_largest_coefficients_are_kept(score, apart, ends, kept):
    power = np.array([1.0, 1.0, 4.0, 4.0])
    given = [Descent(np.zeros(4), np.array(w), np.zeros(4), 1e-15, True, 300) for w in ends]
    found = largest_only(score, 2, apart, power, given)
    for w, end in zip(ends, found):
        expected = np.zeros_like(np.array(w))
        expected[kept] = np.array(w)[kept]
        np.testing.assert_array_equal(end.w, expected)
