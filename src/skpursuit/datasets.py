"""Toy problems with a known sparse answer.

X is Gaussian with columns of unit norm, k of them make the signal, and noise is added to it. Coefficients and
noise are drawn before X, so that they do not depend on its dtype.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from skpursuit.numerics.arrays import Floats
from skpursuit.parameters import check_count, check_number

Seed = int | np.random.Generator | np.random.SeedSequence | None

# Entries drawn at a time: the block is still in the cache when its squares are summed.
_BLOCK = 1 << 15


def make_sparse_signal(
    n: int, d: int, k: int, snr: float = 3.0, dtype: DTypeLike = np.float64, random_state: Seed = 0
) -> tuple[Floats, Floats, Floats]:
    """Noisy combination of k columns of a Gaussian matrix.

    The columns of X have unit norm. The k coefficients at random positions are N(0, 1) pushed away from
    zero by 0.1 in their own sign. The noise variance is ‖Xw‖² / n * 10^(-snr / 10).

    Parameters
    ----------
    n, d : int
        Rows and columns of X.
    k : int
        Number of non-zero coefficients, 0 <= k <= d.
    snr : float, default 3.0
        Signal-to-noise ratio in decibels; ``inf`` for no noise.
    dtype : float32 or float64
        Of all three results. float32 is drawn as such, without a float64 copy of X.
    random_state : int, Generator, SeedSequence or None, default 0
        Seed. The same seed gives the same positions and coefficients for both dtypes.

    Returns
    -------
    X : ndarray of shape (n, d), C order
    y : ndarray of shape (n,)
    w : ndarray of shape (d,)
    """
    check_number("snr", snr, "(-inf, inf]")
    X, w, signal, noise = _drawn(n, d, k, dtype, random_state, lambda rng: rng.standard_normal(n))
    y = signal + noise * np.sqrt(signal @ signal / n * 10.0 ** (-snr / 10))
    return X, y.astype(X.dtype), w.astype(X.dtype)


def make_logistic_signal(
    n: int, d: int, k: int, strength: float = 3.0, dtype: DTypeLike = np.float64, random_state: Seed = 0
) -> tuple[Floats, Floats, Floats]:
    """Labels -1 and +1 drawn from a sparse logistic model.

    X and the positions are those of ``make_sparse_signal``; the coefficients are scaled so that the root mean
    square of z = Xw is ``strength``, and y is +1 with probability 1 / (1 + exp(-z)).

    Parameters
    ----------
    n, d, k, dtype, random_state
        As in ``make_sparse_signal``.
    strength : float, default 3.0
        Typical size of the log-odds: 0 gives random labels, large values separable classes.

    Returns
    -------
    X, y, w : ndarray
        As from ``make_sparse_signal``; y has labels -1 and +1.
    """
    check_number("strength", strength)
    X, w, signal, noise = _drawn(n, d, k, dtype, random_state, lambda rng: rng.logistic(size=n))
    scale = strength / np.sqrt(signal @ signal / n) if k else 0.0
    # z + logistic noise > 0 has probability 1 / (1 + exp(-z)).
    y = np.where(scale * signal + noise > 0, 1, -1).astype(X.dtype)
    return X, y, (scale * w).astype(X.dtype)


def _drawn(
    n: int, d: int, k: int, dtype: DTypeLike, seed: Seed, noise: Callable[[np.random.Generator], Floats]
) -> tuple[Floats, Floats, Floats, Floats]:
    """X, coefficients in float64, the signal that they make of X, and noise."""
    for name, value, least in (("n", n, 1), ("d", d, 1), ("k", k, 0)):
        check_count(name, value, optional=False, least=least)
    kind: np.dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if k > d:
        raise ValueError(f"k must be between 0 and d={d}, got {k}")
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {kind}")
    positions, values = rng.choice(d, size=k, replace=False), rng.standard_normal(k)
    values, w = values + np.copysign(0.1, values), np.zeros(d)
    w[positions], drawn = values, noise(rng)
    X, squares, step = np.empty((n, d), kind), np.zeros(d), max(1, _BLOCK // d)
    for start in range(0, n, step):
        rows = X[start : start + step]
        rng.standard_normal(dtype=kind, out=rows)
        # Short sums in the dtype of X, added up in float64: float32 columns stay unit to its rounding.
        squares += np.einsum("ij,ij->j", rows, rows)
    X /= np.sqrt(np.maximum(squares, np.finfo(kind).tiny)).astype(kind)
    return X, w, X[:, positions] @ values, drawn
