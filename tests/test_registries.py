"""Losses and solvers say what they can do, and their registries name them."""

import pickle
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest

import skpursuit as sk
from skpursuit.problem.losses import LOSSES, as_loss
from skpursuit.solvers import SOLVERS, solver_class, solver_names

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 12))
Y = X[:, 3] - 2 * X[:, 7] + 0.1 * RNG.standard_normal(60)


@pytest.mark.parametrize("name", SOLVERS)
def test_what_a_solver_can_do_is_what_it_has_parameters_for(name):
    kind = solver_class(name)
    has = {part.name for part in fields(kind)}
    assert kind.takes_sparsity == ("n_nonzero_coefs" in has)
    assert kind.supports_ridge == ("ridge" in has)
    assert kind.supports_forced == ("always_include" in has)


def test_parameters_become_the_solver_a_name_stands_for():
    given = {
        "n_nonzero_coefs": 3, "tol": 0.5, "max_iter": 7, "always_include": (2,), "ridge": 0.1
    }  # fmt: skip
    assert {name: solver_class(name).from_parameters(**given) for name in SOLVERS} == {
        "omp": sk.OMP(3, 0.5, max_iter=7, always_include=(2,), ridge=0.1),
        "mp": sk.MatchingPursuit(3, 0.5, max_iter=7),
        "cosamp": sk.CoSaMP(3, 0.5, max_iter=7, always_include=(2,), ridge=0.1),
        "grasp": sk.GraSP(3, 0.5, max_iter=7, always_include=(2,), ridge=0.1),
        "fw": sk.FrankWolfe(sk.L1Ball(1.0), max_iter=7, gap_tol=0.5),
        "sp": sk.SubspacePursuit(3, 0.5, max_iter=7, always_include=(2,), ridge=0.1),
        "stoiht": sk.StoIHT(3, 0.5, max_iter=7),
        "stogradmp": sk.StoGradMP(3, 0.5, max_iter=7, always_include=(2,), ridge=0.1),
    }
    assert solver_class("mp").from_parameters(max_iter=None) == sk.MatchingPursuit()


@pytest.mark.parametrize(
    "solver",
    [
        sk.OMP(3, 0.5, ridge=0.1, always_include=(2,)),
        sk.MatchingPursuit(5, step_size=0.1),
        sk.FrankWolfe(sk.L1Ball(2.0), 30, "open-loop", "away", gap_tol=0.1, lazy=True),
    ],
    ids=repr,
)
def test_a_solver_is_a_value_and_is_shown_as_it_is_written(solver):
    other = replace(solver, max_iter=7)
    assert other != solver == replace(other, max_iter=solver.max_iter) == eval(repr(solver), vars(sk))
    assert hash(replace(solver)) == hash(pickle.loads(pickle.dumps(solver))) == hash(solver)
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        replace(solver, max_iter=0)


def test_names_by_ability():
    assert solver_names(lambda kind: kind.supports_forced) == ["omp", "cosamp", "grasp", "sp", "stogradmp"]
    assert solver_names(lambda kind: kind.takes_sparsity) == [
        "omp", "mp", "cosamp", "grasp", "sp", "stoiht", "stogradmp"
    ]  # fmt: skip
    assert solver_class(sk.OMP(2)) is sk.OMP


def test_forced_columns_come_beside_the_number_of_columns():
    assert sk.OMP(2, always_include=(5,)).with_forced((9,)) == sk.OMP(3, always_include=(9, 5))
    assert sk.OMP(tol=1.0).with_forced((9,)) == sk.OMP(tol=1.0, always_include=(9,))
    assert sk.CoSaMP(2).with_forced((9,)) == sk.CoSaMP(3, always_include=(9,))
    with pytest.raises(TypeError, match="StoIHT cannot force columns"):
        sk.StoIHT(2).with_forced((9,))


@pytest.mark.parametrize("name", LOSSES)
def test_losses_by_name_are_losses_with_all_abilities(name):
    loss = as_loss(name)
    assert isinstance(loss, sk.Loss)
    assert loss.quadratic == (name == "squared")
    assert loss.predicts_targets == (name in ("squared", "huber", "quantile"))
    y, z = np.ones(4), np.zeros((4, 2) if loss.couples_targets else 4)
    above = loss.majorant(y, z)
    assert above is None or (above >= loss.curvature(y, z)).all()
    if loss.gives_probability:
        p = loss.probabilities(z) if loss.couples_targets else loss.probability(z)
        np.testing.assert_array_equal(p, 0.5)
    if not loss.couples_targets:
        with pytest.raises(TypeError, match="no probabilities of several classes"):
            loss.probabilities(z)


class Three:
    """A user's loss with the three methods, and nothing else."""

    def value(self, y, z):
        return sk.Huber().value(y, z)

    def residual(self, y, z):
        return sk.Huber().residual(y, z)

    def curvature(self, y, z):
        return sk.Huber().curvature(y, z)


class Four(Three):
    """One that has a parabola above it as well."""

    smoothness = 1.0

    def majorant(self, y, z):
        return sk.Huber().majorant(y, z)


def test_a_loss_of_three_methods_works_and_what_else_it_has_is_used():
    wanted = sk.minimize(X, Y, sk.OMP(3), loss="huber")
    for loss in (Three(), Four()):
        found = sk.minimize(X, Y, sk.OMP(3), loss=loss)
        assert found.support.tolist() == wanted.support.tolist()
        np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-10)
    three, four = as_loss(Three()), as_loss(Four())
    assert (three.smoothness, four.smoothness) == (None, 1.0)
    assert three.majorant(Y, Y) is None
    with pytest.raises(ValueError, match="NaN"):
        three.check_targets([np.nan])
    np.testing.assert_array_equal(four.majorant(Y, Y), np.ones(60))
    assert not three.gives_probability


def test_a_solver_without_abilities_has_none():
    @dataclass(frozen=True)
    class Lazy(sk.Solver):
        max_iter: int | None = 1

        def init(self, problem): ...

        def step(self, problem, state, select, rng): ...

    abilities = ("takes_sparsity", "supports_ridge", "supports_forced", "nested_path", "squared_loss_only")
    assert not any(getattr(Lazy, ability) for ability in abilities)
    assert Lazy.from_parameters(n_nonzero_coefs=3, max_iter=4) == Lazy(4)
