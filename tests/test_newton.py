"""Newton on a support: curvature of coupled targets against its definition, and steps that end."""

import numpy as np
import pytest

from skpursuit import OMP, GraSP, Huber, as_design, datasets, minimize
from skpursuit.fit import newton as descent
from skpursuit.fit.newton import factorize_hessian, second_derivatives
from skpursuit.problem.losses.logistic import Multinomial
from skpursuit.problem.problem import make_problem


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
    bend, _ = factorize_hessian(second_derivatives(problem, A, z, problem.curvature(z)), np.full(k, 0.1))
    np.testing.assert_allclose(bend.solve(g), expected, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_huber_ends_in_few_steps_where_residuals_vanish(scale, monkeypatch):
    steps = []
    plain = descent._point
    monkeypatch.setattr(descent, "_point", lambda *given: steps.append(0) or plain(*given))
    X, y, w = datasets.make_sparse_signal(300, 400, 10, snr=np.inf, random_state=0)
    result = minimize(X, scale * y / y.std(), OMP(10), loss=Huber())
    np.testing.assert_allclose(result.coef, scale * w / y.std(), atol=1e-11 * scale)
    assert len(steps) < 120  # those of first coefficients, one column each, among them


@pytest.mark.parametrize("scale", [1e20, 1e90])
def test_huber_does_not_take_far_targets_for_fitted_ones(scale):
    X, y, _ = datasets.make_sparse_signal(30, 20, 3, snr=5.0, random_state=0)
    result = minimize(X, y * scale, OMP(3), loss="huber")
    assert result.status.name == "COMPLETE"
    assert len(result.support) == 3


@pytest.mark.parametrize("solver", [OMP(2, ridge=1.0), GraSP(2, ridge=1.0)])
@pytest.mark.parametrize("scale", [1e-8, 1e-10, 1e-12])
def test_tiny_columns_with_a_ridge_have_coefficients(solver, scale):
    """Their gain is beyond the digits of the objective: the coefficients are the gradient's, per penalty."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(50))
    result = minimize(X * scale, y, solver, loss="logistic")
    assert result.status.ok
    assert len(result.support) == 2
    expected = (X * scale).T @ (0.5 * y) / 50
    np.testing.assert_allclose(result.coef[result.support], expected[result.support], rtol=1e-6)
