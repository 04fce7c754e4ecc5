"""What a run tells is what its coefficients give; benchmarks/hostile.py asks it of every run (`common`)."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from skpursuit import OMP, FrankWolfe, L1Ball, Status, minimize


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
