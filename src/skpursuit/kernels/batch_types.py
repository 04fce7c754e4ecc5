"""Plain tuples of arrays that the kernels of the batched coder pass around; importing them is cheap."""

import math
from typing import NamedTuple

import numpy as np

OMP, POSITIVE, GAIN = 0, 1, 2  # the largest |c|; the largest c, weights >= 0; the largest c^2 / den
PENDING = -1  # count of a code that is not known
STALL = 1e-6  # CoSaMP stops at a relative decrease of the squared residual below this
CLOSED = 1e30  # den of an atom that is not considered
LANES, VECTORS = 16, 8  # float32 numbers of a vector, vectors of a tile
TILE = LANES * VECTORS
AHEAD = 4  # Gram rows that are orthogonalised together,
SLOTS = 2 * AHEAD  # and of which so many are kept


class Dictionary(NamedTuple):
    """Atoms in rows, their Gram matrix (float32, flat, rows padded to whole tiles), squared norms and norms.

    ``squares`` (float32) has the penalty added, and CLOSED for atoms of zeros; ``norms`` are float64.
    """

    atoms: np.ndarray
    gram: np.ndarray
    squares: np.ndarray
    norms: np.ndarray


class Block(NamedTuple):
    """Signals in rows as they are given, powers of two to divide them by, energies and products with atoms.

    ``energy`` and ``start`` (float32, padded) are those of the divided signals; ``start`` is used up.
    """

    signals: np.ndarray
    exponents: np.ndarray
    energy: np.ndarray
    start: np.ndarray


class Limits(NamedTuple):
    """Numbers of one encoder.

    ``tol`` is in units of the signals. Relative to the norms at hand, ``fine`` bounds the rounding of
    float64 products, ``floor`` what a product may be and still count as zero, ``dependence`` what is left
    of the square of an atom that counts as a combination of others. ``penalty`` is the ridge, ``scale`` the
    largest squared norm, ``rounding`` the variance of float32 products in squared units of rounding. Atoms
    were divided by 2^``exponent``.
    """

    k: int
    tol: float
    fine: float
    floor: float
    dependence: float
    penalty: float
    scale: float
    rounding: float
    exponent: int


class Codes(NamedTuple):
    """Results of a block, one signal per row, sorted by index; ``counts`` is PENDING where there is none."""

    indices: np.ndarray
    values: np.ndarray
    counts: np.ndarray


class Fit(NamedTuple):
    """Least squares on the chosen atoms: Cholesky factor, inverse diagonal, ``half = L^-1 D y``, weights.

    ``plain`` is the factor without the penalty, the diagonal inverted; it is used only where there is one.
    """

    lower: np.ndarray
    inverse: np.ndarray
    half: np.ndarray
    weights: np.ndarray
    step: np.ndarray
    residual: np.ndarray
    support: np.ndarray
    plain: np.ndarray


class Work(NamedTuple):
    """Scratch: P, den, peaks, rows orthogonalised ahead with their atoms and steps, candidates, roundings."""

    rows: np.ndarray
    den: np.ndarray
    peaks: np.ndarray
    ahead: np.ndarray
    owner: np.ndarray
    since: np.ndarray
    picks: np.ndarray
    exact: np.ndarray
    rounds: np.ndarray
    noise: np.ndarray
    feasible: np.ndarray
    queue: np.ndarray


def aligned(*shape: int) -> np.ndarray:
    """An empty float32 array that begins at a cache line."""
    raw = np.empty(4 * math.prod(shape) + 64, np.uint8)
    at = -raw.ctypes.data % 64
    return raw[at : at + 4 * math.prod(shape)].view(np.float32).reshape(shape)


def scratch(k: int, n: int, width: int) -> tuple[Work, Fit]:
    """Room for one thread. Made here: compiling what allocates takes longer than all of it."""
    rows = aligned(width * k), aligned(width), aligned(width // VECTORS), aligned(width * SLOTS)
    whole = [np.zeros(size, np.int64) for size in (SLOTS, SLOTS, width, k)]
    exact, noise, rounds, feasible = np.zeros(width), np.zeros(width), np.zeros(k), np.zeros(k)
    work = Work(*rows, whole[0], whole[1], whole[2], exact, rounds, noise, feasible, whole[3])
    inverse, half, weights, step = np.zeros((4, k))
    lower = np.zeros((k, k))
    fit = Fit(lower, inverse, half, weights, step, np.zeros(n), np.zeros(k, np.int64), lower.copy())
    return work, fit
