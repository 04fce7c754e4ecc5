"""What a run tells is what its coefficients give; benchmarks/hostile.py asks it of every run (`common`)."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from skpursuit import (
    OMP,
    FrankWolfe,
    GraSP,
    L1Ball,
    Multinomial,
    Status,
    StoGradMP,
    minimize,
)
from skpursuit.problem.losses import as_loss


def targets(rng, n, loss):
    if loss == "logistic":
        return np.where(rng.random(n) < 0.5, -1.0, 1.0)
    if loss == "poisson":
        return rng.poisson(2.0, n).astype(float)
    if isinstance(loss, Multinomial):
        return np.append(rng.integers(3, size=n - 1), 2)
    return rng.standard_normal(n)


def objective(loss, y, z, weights):
    losses = as_loss(loss).value(y, z)
    return float(np.sum(losses if weights is None else weights * losses))


def test_a_pairwise_step_between_opposite_vertices_keeps_what_it_moves():
    solver = FrankWolfe(L1Ball(1.0), max_iter=6, line_search="open-loop", variant="pairwise")
    result = minimize([[1.0]], [0.5], solver, "exact")
    assert result.objective == pytest.approx(0.5 * (result.coef[0] - 0.5) ** 2, rel=1e-12)


@dataclass(frozen=True)
class Forgetful(OMP):
    """A solver with a mistake: the coefficients, the predictions or the objective do not follow."""

    forgets: str = "coef"
    by: float = 1e-6

    def step(self, problem, state, select, rng):
        after = super().step(problem, state, select, rng)
        return replace(after, **{self.forgets: getattr(after, self.forgets) * (1 + self.by)})


@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
@pytest.mark.parametrize("forgets", ["coef", "z", "objective"])
def test_a_solver_that_forgets_to_move_something_is_found_out(forgets, scale):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 30)), rng.standard_normal(20) * scale
    right = minimize(X, y, Forgetful(3, forgets=forgets, by=0.0))
    wrong = minimize(X, y, Forgetful(3, forgets=forgets))
    assert right.status is Status.COMPLETE
    assert wrong.status is Status.INCONSISTENT
    assert not wrong.status.ok
    z = X @ wrong.coef
    assert wrong.objective == pytest.approx(0.5 * np.sum((z - y) ** 2), rel=1e-12)


def test_coefficients_that_lose_their_digits_are_not_called_a_fit():
    rng = np.random.default_rng(0)
    x, other = rng.standard_normal((2, 50))
    X = np.stack([x, x + 1e-11 * other], axis=1)
    result = minimize(X, other, OMP(2), "exact")
    assert result.status is Status.INCONSISTENT
    assert result.objective != result.history[-1].objective


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson", Multinomial()], ids=repr)
@pytest.mark.parametrize("solver", [GraSP(3), GraSP(3, refit=True), StoGradMP(3, max_iter=5)], ids=repr)
def test_columns_of_zeros_give_the_zero_model(solver, loss):
    y = targets(np.random.default_rng(0), 20, loss)
    result = minimize(np.zeros((20, 30)), y, solver, loss=loss, random_state=0)
    assert len(result.support) == 0
    assert not result.coef.any()
    assert result.objective == pytest.approx(objective(loss, y, np.zeros((20, *result.coef.shape[1:])), None))
