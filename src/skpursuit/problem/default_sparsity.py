"""How many coefficients a model has when nobody says, and what becomes of a number that is too large.

Every public name documents its own default, and users rely on them, so that there are several rules; they
stand here together, as functions of the n rows and d columns, to be compared and changed in one place. All
agree that a tenth of the columns is a sparse model. They differ in the least number of columns, and in
whether n limits it: more columns than rows cannot be independent.
"""

import numpy as np

from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import warn_user

MAX_PATH_SIZE = 2000  # of a model that is chosen, unless more are asked for


def clip_to_available(
    name: str, wanted: int, most: int, of: str = "X", unit: str = "columns", least: int = 0
) -> int:
    """The number that a parameter asks for, at most as many as there are; warns where it asks for more.

    Fewer than the `least`, which are always in a model, are refused.
    """
    if wanted < least:
        raise ValueError(f"always_include names {least} columns but {name} is {wanted}; raise it")
    if wanted <= most:
        return int(wanted)
    warn_user(f"{name} is {wanted} but {of} has {most} {unit}; using {most}")
    return most


def for_solver(n: int, d: int) -> int:
    """Solvers: a tenth of the columns, at least 1, at most n."""
    return max(1, min(n, d // 10))


def for_pursuit(n: int, d: int, has_tol: bool, weights: Floats | None = None) -> int:
    """Pursuit estimators: a tenth of the columns, at least 10, at most n and d, the only limits with `tol`.

    Weights may be counts: then n is their sum, as if the samples were repeated.
    """
    if weights is not None:
        n = int(max(np.count_nonzero(weights), min(weights.sum(), d)))
    return min(n, d) if has_tol else min(n, d, max(10, d // 10))


def for_feature_selector(n: int, d: int, weights: Floats | None = None) -> int:
    """`PursuitFeatureSelector`: that of `for_pursuit`, at most 100, beyond which "cv" would be faster."""
    return min(for_pursuit(n, d, False, weights), 100)


def for_pursuit_cv(n: int, d: int, folds: bool = True) -> tuple[int, int]:
    """Their cross-validation: up to that of `for_pursuit`, and where that is best up to half the rows.

    An information criterion tries at most a quarter of them: it takes the number to be small against n.
    """
    most = min(d, MAX_PATH_SIZE, max(1, n // (2 if folds else 4)))
    return min(most, max(10, d // 10)), most


def for_omp(d: int) -> int:
    """scikit-learn's `OrthogonalMatchingPursuit`: a tenth of the columns, at least 1."""
    return max(int(0.1 * d), 1)


def for_omp_cv(d: int) -> int:
    """scikit-learn's `OrthogonalMatchingPursuitCV`: a tenth of the columns, at least 5, at most d."""
    return min(max(int(0.1 * d), 5), d)


def for_codes(n: int, d: int, has_tol: bool) -> int:
    """Codes of signals of length n over d atoms: a tenth of the atoms, or all with `tol`; at most n."""
    return min(n, d if has_tol else max(1, d // 10))


def for_learned_codes(d: int) -> int:
    """Codes while d atoms are learned: 10, or d if that is less."""
    return min(10, d)
