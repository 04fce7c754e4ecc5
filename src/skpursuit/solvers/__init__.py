"""The outer algorithms: each is a frozen dataclass with `init` and `step`; the loop is in `loop/`.

`base.Solver` says what a solver must give and what it can do. `SOLVERS` has the names that `minimize`, the
estimators, the command line and error messages know; a new solver is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from skpursuit.parameters import check_choice, short_repr
from skpursuit.solvers.base import Solver

__all__ = ["SOLVERS", "Solver", "as_solver", "solver_class", "solver_names"]

# Names callers may write, and the module and class of each solver. Modules load when they are used.
SOLVERS: dict[str, tuple[str, str]] = {
    "omp": ("matching_pursuit", "OMP"),
    "mp": ("matching_pursuit", "MatchingPursuit"),
    "cosamp": ("cosamp", "CoSaMP"),
    "grasp": ("cosamp", "GraSP"),
    "fw": ("frank_wolfe", "FrankWolfe"),
    "sp": ("subspace_pursuit", "SubspacePursuit"),
    "stoiht": ("cosamp", "StoIHT"),
    "stogradmp": ("cosamp", "StoGradMP"),
}


def as_solver(solver: str | Solver) -> Solver:
    """Turn a name into a solver with its default parameters; solvers pass through."""
    if isinstance(solver, Solver):
        return solver
    if not isinstance(solver, str):
        raise TypeError(f"solver must be a name or an object such as OMP(10), got {short_repr(solver)}")
    check_choice("solver", solver, SOLVERS)
    return solver_class(solver).from_parameters()


def solver_class(solver: str | Solver) -> type[Solver]:
    """The class of a solver, given by name or as an object."""
    if isinstance(solver, Solver):
        return type(solver)
    module, name = SOLVERS[solver]
    kind: type[Solver] = getattr(import_module(f"skpursuit.solvers.{module}"), name)
    return kind


def solver_names(able: Callable[[type[Solver]], bool]) -> list[str]:
    """Names of the solvers that can do something."""
    return [name for name in SOLVERS if able(solver_class(name))]
