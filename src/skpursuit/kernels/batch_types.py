"""Plain tuples of arrays that the batch kernels pass around."""

from typing import NamedTuple

import numpy as np

PENDING = -1  # count of a code that is not known yet
STALL = 1e-6  # CoSaMP stops at a relative decrease of the squared residual below this


class Dictionary(NamedTuple):
    """Atoms in rows, their float32 copy, and the Gram rows known so far.

    The row of atom ``j`` is ``gram[slot[j]]``, unless ``slot[j]`` is negative.
    """

    atoms: np.ndarray
    coarse: np.ndarray
    norms: np.ndarray
    gram: np.ndarray
    slot: np.ndarray


class Block(NamedTuple):
    """Signals in rows, with their float32 correlations, squared norms and squared tolerances."""

    signals: np.ndarray
    start: np.ndarray
    energy: np.ndarray
    tol: np.ndarray


class Limits(NamedTuple):
    """What bounds the coding of one signal.

    Relative to the norms at hand: ``coarse`` and ``fine`` bound the rounding of float32 and float64 products,
    ``floor`` what a correlation may be and still count as zero, ``dependence`` what is left of the square of
    an atom that counts as a combination of others. ``penalty`` times half the squared weights is the ridge.
    """

    k: int
    max_iter: int
    coarse: float
    fine: float
    floor: float
    dependence: float
    refit: bool
    penalty: float


class SparseCodes(NamedTuple):
    """Results of a block, one signal per row; ``counts`` is PENDING until a signal is coded."""

    indices: np.ndarray
    values: np.ndarray
    counts: np.ndarray


class CholeskyFactor(NamedTuple):
    """Growing Cholesky factor ``L`` of ``G[S, S]``, ``half = L^-1 D_S y`` and ``weights = L^-T half``.

    ``vector`` has room for the newest atom in float64, ``spare`` for two rows of weights, ``shrunk`` for a
    factor with a penalty.
    """

    lower: np.ndarray
    forward: np.ndarray
    weights: np.ndarray
    atoms: np.ndarray
    vector: np.ndarray
    scratch: np.ndarray
    ridge_lower: np.ndarray


class Scratch(NamedTuple):
    """Scratch of one kernel call; ``bits`` is the memory of ``scores`` read as integers."""

    scores: np.ndarray
    bits: np.ndarray
    peaks: np.ndarray
    residual: np.ndarray
    picks: np.ndarray
    exact: np.ndarray
    excluded: np.ndarray
