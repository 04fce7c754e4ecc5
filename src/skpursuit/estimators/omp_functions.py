"""`orthogonal_mp` and `orthogonal_mp_gram`, called as scikit-learn's.

There are three ways to pursue a target, and `choose_backend` takes the cheapest. The loop of `minimize` is
for large X ("loop"). On small X, and with many targets, it is cheaper to compute X^T X once and to work on
that alone ("gram", Rubinstein, Zibulevsky, Elad 2008); its largest model is then refined on the residual,
because squares of columns keep half the digits. An X that stays in the cache is multiplied with each new
residual ("columns"): there a turn of the loop of `minimize` would cost more than reading X. A larger one is
multiplied in float32, half the bytes, and columns that this cannot tell apart are compared by products in
float64. The last two make a new column orthogonal to those chosen before; products with that direction take
the gradient one step on, and are a row of the triangular factor. All give an `OMPPath`, from which the
coefficients of every step follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg.lapack import dtrtrs
from sklearn.utils.validation import check_array

from skpursuit.data import Design, check_finite, is_design, make_design
from skpursuit.data.caches import gram_matrix
from skpursuit.data.view import View
from skpursuit.estimators.base import FLOAT_DTYPES, with_checked_indices
from skpursuit.estimators.linear_fit import LinearFit
from skpursuit.estimators.parameter_rules import check_values, is_auto
from skpursuit.fit.growing import orthogonalise
from skpursuit.loop.run import make_run, minimize
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.error_bounds import dependence_threshold
from skpursuit.numerics.float_range import power_of
from skpursuit.numerics.sums import fixed_order_dot, safe_norm
from skpursuit.numerics.tuning import GATHERED_ENTRIES, SINGLE_ENTRIES
from skpursuit.parameters import as_array, short_repr, warn_user
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.problem.problem import check_targets_range
from skpursuit.problem.state import Status
from skpursuit.progress import current_monitor
from skpursuit.selectors import Selector
from skpursuit.solvers.matching_pursuit import OMP

WELL_CONDITIONED = 1e-2  # of a column's square, left by the others: X^T X then loses no digits
MAX_REFINEMENTS = 8
EPS, SINGLE_EPS = (float(np.finfo(kind).eps) for kind in (np.float64, np.float32))
PREMATURE = (
    "Orthogonal matching pursuit ended prematurely due to linear dependence in the dictionary. "
    "The requested precision might not have been met."
)


@single_threaded_blas()
def orthogonal_mp(
    X: object,
    y: object,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    precompute: bool | str = False,
    copy_X: bool = True,
    return_path: bool = False,
    return_n_iter: bool = False,
    selector: str | Selector = "auto",
) -> Any:
    """Orthogonal matching pursuit of each target, as scikit-learn's function of the same name.

    Parameters
    ----------
    X : array-like, sparse array or Design of shape (n_samples, n_features)
        Complex X and y, arrays or a LinearOperator, have complex coefficients; they give no path.
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    n_nonzero_coefs : int, optional
        Default: a tenth of the features. More than there are features is clipped with a warning.
    tol : float, optional
        Largest squared norm of the residual; overrides `n_nonzero_coefs`.
    precompute : bool or "auto"
        True: use the Gram matrix. "auto": do so when it is cheaper.
    copy_X : bool
        Of no effect: X is never changed nor copied.
    return_path : bool
        Return the coefficients of every step, along a last axis.
    return_n_iter : bool
        Return the number of active features of each target too.
    selector : str or Selector
        How the best atom is found; see `minimize`.

    Returns
    -------
    coef : ndarray of shape (n_features,) or (n_features, n_targets), with a last axis of steps for a path
    n_iters : int or list of int
        Only with `return_n_iter`.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skpursuit import orthogonal_mp
    >>> X, y = make_regression(noise=4, random_state=0)
    >>> orthogonal_mp(X, y).shape
    (100,)
    """
    flags = {"copy_X": copy_X, "return_path": return_path, "return_n_iter": return_n_iter}
    check_values(
        {}, n_nonzero_coefs=n_nonzero_coefs, tol=tol, precompute=precompute, selector=selector, **flags
    )
    if np.iscomplexobj(cast(Any, y)) or getattr(getattr(X, "dtype", None), "kind", "") == "c":
        return _complex_omp(X, y, n_nonzero_coefs, tol, (return_path, return_n_iter, precompute, selector))
    if not is_design(X):
        X = check_array(
            with_checked_indices(X), accept_sparse=["csr", "csc"], dtype=FLOAT_DTYPES, ensure_all_finite=False
        )
    design, y = make_design(X), _as_columns("y", y)
    check_targets_range(y)
    k = design.shape[1] if tol is not None else omp_sparsity(n_nonzero_coefs, design.shape[1])
    way = choose_backend(design, expected_steps(design, y, k, tol), precompute, selector)
    targets = omp_paths(design, y, k, tol, way, selector)
    warn_if_premature(targets)
    return _packed(targets, design.shape[1], return_path, return_n_iter, np.float64)


def _complex_omp(X: object, y: object, k: int | None, tol: float | None, how: tuple[Any, ...]) -> Any:
    """`orthogonal_mp` of complex X and y by the loop of `minimize`, each target by itself."""
    return_path, return_n_iter, precompute, selector = how
    if return_path:
        raise ValueError("return_path=True is for real X; fit complex X for each number of coefficients")
    design, y = make_design(X, is_real=False), as_array("y", y, is_real=False)
    k = None if tol is not None else omp_sparsity(k, design.shape[1] // (1 + design.is_complex))
    selector = "gram" if precompute is True else selector
    found = [minimize(design, column, OMP(k, tol), selector) for column in y.reshape(len(y), -1).T]
    if any(one.status is not Status.CONVERGED if k is None else len(one.support) < k for one in found):
        warn_user(PREMATURE, RuntimeWarning)
    coef, sizes = np.stack([one.coef for one in found], axis=1), [len(one.support) for one in found]
    coef = np.squeeze(coef)
    return (coef, sizes[0] if len(sizes) == 1 else sizes) if return_n_iter else coef


@single_threaded_blas()
def orthogonal_mp_gram(
    Gram: object,
    Xy: object,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    norms_squared: object = None,
    copy_Gram: bool = True,
    copy_Xy: bool = True,
    return_path: bool = False,
    return_n_iter: bool = False,
) -> Any:
    """Orthogonal matching pursuit from X^T X and X^T y, as scikit-learn's function of the same name.

    Parameters
    ----------
    Gram : array-like of shape (n_features, n_features)
    Xy : array-like of shape (n_features,) or (n_features, n_targets)
    n_nonzero_coefs, tol, return_path, return_n_iter
        As in `orthogonal_mp`.
    norms_squared : array-like of shape (n_targets,), optional
        Squared norms of the targets; needed with `tol`.
    copy_Gram, copy_Xy : bool
        Of no effect: nothing is overwritten.

    Returns
    -------
    coef, n_iters
        As of `orthogonal_mp`.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import orthogonal_mp_gram
    >>> orthogonal_mp_gram(np.eye(3), np.array([1.0, -5.0, 2.0]), n_nonzero_coefs=1)
    array([ 0., -5.,  0.])
    """
    flags = {"copy_Gram": copy_Gram, "copy_Xy": copy_Xy}
    flags |= {"return_path": return_path, "return_n_iter": return_n_iter}
    check_values({}, n_nonzero_coefs=n_nonzero_coefs, tol=tol, **flags)
    gram = check_array(as_array("Gram", Gram), dtype=np.float64, input_name="Gram")
    d = len(gram)
    if gram.shape != (d, d):
        raise ValueError(f"Gram must be square, got shape {gram.shape}")
    xty = _as_columns("Xy", Xy)
    if len(xty) != d:
        raise ValueError(f"Xy has {len(xty)} rows and Gram has {d}; they must be the same features")
    if tol is not None and norms_squared is None:
        raise ValueError("Gram OMP with tol needs the squared norms of the targets: give norms_squared")
    energies = _checked_energies(norms_squared, xty.shape[1])
    k = d if tol is not None else omp_sparsity(n_nonzero_coefs, d)
    targets = gram_paths(gram, xty, k, tol, energies)
    warn_if_premature(targets)
    dtype = np.result_type(as_array("Gram", Gram), as_array("Xy", Xy), np.float32)
    return _packed(targets, d, return_path, return_n_iter, dtype)


def omp_paths(
    design: Design, y: Floats, k: int, tol: float | None, way: str, selector: str | Selector
) -> list[OMPPath]:
    """The path of each column of y."""
    energies = np.sum(y * y, axis=0)
    each = [(column, *_limits(k, tol, energy)) for column, energy in zip(y.T, energies)]
    if way == "loop":
        paths = []
        for column, k, tol in each:
            run = make_run(design, column, OMP(k, tol), selector, "squared")
            run.execute()
            state, factor = run.state, run.state.factorised
            premature = len(state.support) < k if tol is None else state.status is not Status.CONVERGED
            paths.append(OMPPath(state.support, factor.triangle().T, factor.b, premature))
        return paths
    check_finite(design)
    floor = design.noise_floor(np.arange(design.shape[1]))
    with single_threaded_blas():
        if way == "columns":
            columns = _all_columns(design)
            return [omp_path(ColumnPursuit(columns, column, k, floor), tol) for column, k, tol in each]
        paths = gram_paths(gram_matrix(design), design.product(y), k, tol, energies, floor)
        return [refine_path(path, design, column) for path, column in zip(paths, y.T)]


def _all_columns(design: Design) -> Floats:
    """All columns as rows of an array, in the memory order that X has where it is one: turning it is slow."""
    every, X = np.arange(design.shape[1]), design.with_view(View()).in_memory_matrix
    if not isinstance(X, np.ndarray) or design.view.rows is not None:
        return design.columns(every, cache=False)
    design.reads.add(*design.cost())
    lines = np.empty_like(X.T, np.float64)
    np.copyto(lines, X.T)
    return design.view.columns(lines, every)


def gram_paths(
    gram: Floats, xty: Floats, k: int, tol: float | None, energies: Floats, floor: Floats | None = None
) -> list[OMPPath]:
    """The path of each target from X^T X; `energies` are the squared norms of the targets."""
    limits = [_limits(k, tol, energy) for energy in energies]
    columns = zip(xty.T, limits, energies.tolist())
    return [omp_path(GramPursuit(gram, line, k, energy, floor), tol) for line, (k, tol), energy in columns]


def _limits(k: int, tol: float | None, energy: float) -> tuple[int, float | None]:
    """At least one atom, as scikit-learn does, even where the zero model is within `tol`."""
    return (1, None) if tol is not None and energy <= tol else (k, tol)


def refine_path(path: OMPPath, design: Design, y: Floats) -> OMPPath:
    """The path with its largest model refined on its residual, where X^T X has too few digits for it."""
    sharp = (np.diag(path.L) ** 2 >= WELL_CONDITIONED * np.sum(path.L**2, axis=1)).all()
    if len(path) == 0 or (sharp and design.dtype == np.float64):
        return path
    columns, before = design.columns(path.support), np.inf
    for _ in range(MAX_REFINEMENTS):
        rest = columns @ (y - path.coef(len(path)) @ columns)
        step = dtrtrs(path.L, rest, lower=1)[0]
        length = safe_norm(step)
        if not length < 0.5 * before:
            break
        path, before = replace(path, projections=path.projections + step), length
    return path


def expected_steps(design: Design, y: Floats, k: int, tol: float | None) -> int:
    """Columns that all targets are likely to take."""
    return y.shape[1] * (k if tol is None else min(design.shape) // 4 + 1)


def choose_backend(
    design: Design, steps: int, precompute: bool | str, selector: str | Selector, folds: int = 0
) -> str:
    """The cheapest way, or the one that the caller chose: "loop", "gram" or "columns"."""
    # `folds` have Gram matrices of their own, which cost more than products where X has few rows.
    n, d = design.shape
    if precompute is True:
        return "gram"
    if not is_auto(selector) or design.cost()[0] < n * d or not design.has_codes or design.on_disk:
        return "loop"
    in_cache = n * d <= GATHERED_ENTRIES and design.in_memory
    one_by_one = n * d / 1e9 + steps * (n * d / 5e9 + 5e-5) if in_cache else steps * (n * d / 2e9 + 3e-4)
    gram = n * d * d / 25e9 + folds * d * d / 1.25e8 + steps * 3e-5
    if precompute == "auto" and gram < one_by_one and 8 * d * d <= 2**28:
        return "gram"
    return "columns" if in_cache else "loop"


def _as_columns(name: str, values: object) -> Floats:
    """Targets as the columns of an array."""
    array = as_array(name, values)
    if array.ndim == 0:
        raise ValueError(f"{name} must have one or two dimensions, got the number {short_repr(values)}")
    return check_array(array.reshape(len(array), -1), dtype=np.float64, input_name=name)


def _checked_energies(norms_squared: object, targets: int) -> Floats:
    """Squared norms of the targets, zeros if there are none."""
    if norms_squared is None:
        return np.zeros(targets)
    found = np.atleast_1d(as_array("norms_squared", norms_squared)).ravel()
    numbers = found.dtype.kind in "fiu" and len(found) == targets
    if not numbers or not ((found >= 0) & (found < np.inf)).all():
        raise ValueError(
            f"norms_squared must be {targets} numbers of at least 0, one for each target, got {found}"
        )
    return found.astype(np.float64)


def omp_sparsity(n_nonzero_coefs: int | None, d: int) -> int:
    """The number of coefficients, at most d."""
    if n_nonzero_coefs is None:
        return sparsity.for_omp(d)
    return sparsity.clip_to_available("n_nonzero_coefs", n_nonzero_coefs, d)


def warn_if_premature(targets: list[OMPPath]) -> None:
    """Warn, as scikit-learn does, when a target ran out of independent columns that help."""
    if any(path.ended_early for path in targets):
        warn_user(PREMATURE, RuntimeWarning)


def _packed(targets: list[OMPPath], d: int, return_path: bool, return_n_iter: bool, dtype: DTypeLike) -> Any:
    """Coefficients (d, targets, steps) without axes of length 1: the steps of the shortest path, or one."""
    sizes = [len(path) for path in targets]
    coef = np.zeros((d, len(targets), min(sizes) if return_path else 1), dtype=dtype)
    for t, path in enumerate(targets):
        for i in range(coef.shape[2]):
            fit = path.fit(i + 1 if return_path else len(path))
            coef[fit.columns, t, i] = fit.coef
    coef = np.squeeze(coef)
    if not return_n_iter:
        return coef
    return coef, sizes[0] if len(sizes) == 1 else sizes


@dataclass(frozen=True)
class OMPPath:
    """The least-squares models of all prefixes of a support, kept as a factor: L L^T = X_S^T X_S."""

    support: Indices
    L: Floats
    projections: Floats  # L^-1 X_S^T y
    ended_early: bool = False  # no independent column was left that helps, or all were not enough for `tol`

    def __len__(self) -> int:
        return len(self.support)

    def coef(self, k: int) -> Floats:
        """Least-squares coefficients of the first k columns."""
        return dtrtrs(self.L[:k, :k].T, self.projections[:k])[0] if k else self.projections[:0]

    def all_coefs(self) -> Floats:
        """Those of the first 1, 2, ... columns, one model a row; of an empty path one row of nothing."""
        coefs = np.zeros((max(1, len(self)), len(self)))
        for k in range(1, len(self) + 1):
            coefs[k - 1, :k] = self.coef(k)
        return coefs

    def fit(self, k: int) -> LinearFit:
        """The model of the first k columns, of centred data."""
        return LinearFit(self.support[:k], self.coef(k), 0.0)


class SmallPursuit:
    """What a pursuit of one target knows: its columns, and products of directions with the target.

    `noise` bounds the error of products with y, and `noise_floor` has the norm below which a centred column
    is only rounding of its mean.
    """

    squared_residual: float
    noise: float

    def __init__(self, d: int, k: int, noise_floor: Floats | None) -> None:
        self.support: list[int] = []
        self.allowed = np.ones(d)  # 0 for columns that were tried
        self.noise_floor = np.zeros(d) if noise_floor is None else noise_floor
        self.projections, self.shares = np.zeros(k), np.zeros(k)  # shares: of directions, centring noise


class GramPursuit(SmallPursuit):
    """A pursuit from X^T X and X^T y: row i of V holds the products of all columns with the i-th direction.

    `energy` is ||y||^2, where it is known.
    """

    def __init__(
        self, gram: Floats, xty: Floats, k: int, energy: float = 0.0, noise_floor: Floats | None = None
    ) -> None:
        super().__init__(len(xty), k, noise_floor)
        self.gram, self.g, self.squared_residual, self.V = gram, xty.copy(), energy, np.empty((k, len(xty)))
        # Products with y are rounded relative to ||x_j|| ||y||, where that is known.
        widest = float(np.sqrt(np.abs(np.diag(gram)).max(initial=0.0)))
        self.noise = 64 * EPS * max(float(np.abs(xty).max(initial=0.0)), float(np.sqrt(energy)) * widest)

    def best(self, least: float) -> int | None:
        """The allowed column with the largest product with the residual; None if it is not above `least`."""
        scores = np.abs(self.g) * self.allowed
        top = float(scores.max(initial=0.0))
        return int((scores >= top - self.noise).argmax()) if top > least else None  # NaN is not above

    def add(self, j: int) -> bool:
        """Add a column to the support and fit again; False if it depends on those chosen before."""
        size = len(self.support)
        row, shadow, before = self.gram[j], self.V[:size, j], float(self.noise_floor[j])
        square = float(row[j])
        left = square - float(shadow @ shadow)
        noise = self.shares[:size] * shadow
        if not left > max(16 * len(row) * EPS * square, float(noise @ noise) + before * before):
            return False
        pivot = sqrt(left)
        direction = np.subtract(row, shadow @ self.V[:size], out=self.V[size])
        direction /= pivot
        step = float(self.g[j]) / pivot
        self.g -= step * direction
        self.squared_residual -= step * step
        self.projections[size], self.shares[size] = step, before / pivot
        return True

    def triangle(self) -> Floats:
        """`L` of the path."""
        return np.tril(self.V[: len(self.support), self.support].T)


class ColumnPursuit(SmallPursuit):
    """A pursuit that multiplies the columns of X, the rows of an array, with each new residual."""

    def __init__(self, columns: Floats, y: Floats, k: int, noise_floor: Floats | None = None) -> None:
        d, n = columns.shape
        super().__init__(d, k, noise_floor)
        self.columns, self.residual, self.squared_residual = columns, y, float(y @ y)
        self.sizes = np.sqrt(np.einsum("ij,ij->i", columns, columns))
        self.tiny = dependence_threshold(n, self.sizes, self.noise_floor)
        self.widest = float(self.sizes.max())
        self.noise = 4 * (n + 2) * EPS * self.widest * sqrt(self.squared_residual)
        self.unit, self.single = power_of(self.widest), None
        if columns.size >= SINGLE_ENTRIES and k > 8:  # else the copy does not pay
            self.single = np.empty_like(columns, np.float32)
            np.multiply(columns, 2.0**-self.unit, out=self.single, casting="same_kind")
        most = min(k, n, d)
        self.Q, self.L = np.empty((most, n)), np.zeros((most, most))

    def best(self, least: float) -> int | None:
        found = None
        if self.single is not None and self.squared_residual > 0.0:
            norm = sqrt(self.squared_residual)
            power = power_of(norm)
            g = self.single @ (self.residual * 2.0**-power).astype(np.float32)
            scores = np.abs(g) * self.allowed
            scores *= 2.0 ** (self.unit + power)
            # Its own rounding, that of both factors, and as much again.
            margin = (self.residual.size + 8) * SINGLE_EPS * self.widest * norm
            found = self._winner(scores, 4 * margin + least, 2 * margin)
        if found is None:
            found = self._winner(np.abs(self.columns @ self.residual) * self.allowed, least, self.noise)
        return found

    def _winner(self, scores: Floats, least: float, apart: float) -> int | None:
        """The winner by products in a fixed order, whose bits are equal for equal columns alone."""
        top = float(scores.max())
        if not top > least:
            return None
        (close,) = (scores >= top - apart).nonzero()
        if len(close) == 1:
            return int(close[0])
        return int(close[np.abs(fixed_order_dot(list(self.columns[close]), self.residual)).argmax()])

    def add(self, j: int) -> bool:
        size, floor = len(self.support), float(self.noise_floor[j])
        if size == len(self.Q):
            return False
        x, size_of_x, tiny = np.ascontiguousarray(self.columns[j]), float(self.sizes[j]), float(self.tiny[j])
        direction, row = orthogonalise(self.Q[:size], x, size_of_x, tiny, self.shares[:size])
        if direction is None:
            return False
        step = float(direction @ self.residual)
        self.residual = self.residual - step * direction
        self.squared_residual = float(self.residual @ self.residual)
        self.Q[size], self.L[size, : size + 1], self.projections[size] = direction, row, step
        self.shares[size] = floor / row[-1]
        return True

    def triangle(self) -> Floats:
        return self.L[: len(self.support), : len(self.support)]


def omp_path(pursuit: GramPursuit | ColumnPursuit, tol: float | None = None) -> OMPPath:
    """Models of 1, 2, ... columns, until there are k of them or the energy is at most `tol`."""
    support, premature, watch, k = pursuit.support, False, current_monitor(), len(pursuit.projections)
    while len(support) < k and not watch.out_of_time():
        if tol is not None and pursuit.squared_residual <= tol:
            break
        j = pursuit.best((1 + len(support)) * pursuit.noise)
        if j is None:
            premature = True
            break
        pursuit.allowed[j] = 0.0
        if pursuit.add(j):
            support.append(j)
    premature |= tol is not None and pursuit.squared_residual > tol
    half = pursuit.projections[: len(support)]
    return OMPPath(np.array(support, dtype=np.intp), pursuit.triangle(), half, premature)
