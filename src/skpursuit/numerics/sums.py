"""Sums and norms whose bits depend on the numbers alone, and that stay within range."""

from math import sqrt

import numpy as np

from skpursuit.numerics.arrays import Floats, FloatType, Indices
from skpursuit.numerics.float_range import MAX_SAFE_NORM, MIN_SAFE_NORM

DOT_BATCH = 16  # lines that are multiplied by one call
BLOCK_ROWS = 512  # rows of the pieces whose sums are added one after the other, wherever X is cut


def cast_residual(r: Floats, dtype: FloatType) -> tuple[Floats, Indices | int]:
    """R in the precision of X, each residual divided by a power of two that keeps its sums within float32."""
    if dtype == np.float64:
        return np.asarray(r, dtype=dtype), 0
    exponent = np.frexp(np.abs(r).max(axis=0, initial=0.0))[1] + len(r).bit_length()
    with np.errstate(under="ignore"):
        return np.ldexp(np.asarray(r, dtype=np.float64), -exponent).astype(dtype), exponent


def fixed_order_dot(lines: list[Floats], r: Floats) -> Floats:
    """<line, r> for each line, in an order that depends on n alone: equal lines give equal bits."""
    # Sums of pieces of `BLOCK_ROWS` rows are added one after the other, so that X cut into files between
    # pieces gives the bits of X in one array. Pieces are short enough for BLAS to take them on one thread.
    if r.ndim == 2:
        return np.stack([fixed_order_dot(lines, np.ascontiguousarray(r_m)) for r_m in r.T], axis=1)
    if len(lines) <= 2:
        return np.array([fixed_order_vdot(line, r) for line in lines])
    starts = range(0, len(lines), DOT_BATCH)  # one group after the other, in the same memory
    return np.concatenate([_dots(np.array(lines[i : i + DOT_BATCH]), r) for i in starts])


def _dots(lines: Floats, r: Floats) -> Floats:
    """`fixed_order_dot` of each row of an array with r."""
    whole = len(r) - len(r) % BLOCK_ROWS
    ends = np.vecdot(lines[:, whole:], r[whole:])
    if whole == 0:
        return ends
    sums = np.vecdot(lines[:, :whole].reshape(len(lines), -1, BLOCK_ROWS), r[:whole].reshape(-1, BLOCK_ROWS))
    return sums.cumsum(axis=1)[:, -1] + ends


def fixed_order_vdot(a: Floats, b: Floats) -> float:
    """<a, b> as `fixed_order_dot` adds it up, whatever the number of BLAS threads."""
    whole = len(a) - len(a) % BLOCK_ROWS
    if whole == 0:
        return float(np.dot(a, b))
    sums = np.vecdot(a[:whole].reshape(-1, BLOCK_ROWS), b[:whole].reshape(-1, BLOCK_ROWS))
    return float(sums.cumsum()[-1] + np.dot(a[whole:], b[whole:]))


def scaled_rows(values: Floats, factors: Floats) -> Floats:
    """Values of shape (n,) or (n, m) times a factor for each of n rows."""
    return values * (factors if values.ndim == 1 else factors[:, None])


def block_sums_of_squares(lines: Floats) -> Floats:
    """Sums of squares of contiguous lines, one row for each piece, to be added in order."""
    whole = lines.shape[1] - lines.shape[1] % BLOCK_ROWS
    body, rest = lines[:, :whole].reshape(len(lines), -1, BLOCK_ROWS), lines[:, whole:]
    out = np.empty((-(-lines.shape[1] // BLOCK_ROWS), len(lines)))
    with np.errstate(over="ignore", invalid="ignore"):
        out[: body.shape[1]] = np.vecdot(body, body).T
        if rest.size:
            out[-1] = np.vecdot(rest, rest)
    return out


def safe_norms(lines: Floats) -> Floats:
    """Euclidean norms of lines that neither overflow nor underflow."""
    with np.errstate(over="ignore", under="ignore"):
        norms = np.linalg.norm(lines, axis=1)
    for i in np.flatnonzero(~((norms > MIN_SAFE_NORM) & (norms < MAX_SAFE_NORM))).tolist():
        norms[i] = safe_norm(lines[i])
    return norms


def safe_norm(x: Floats) -> float:
    """Euclidean norm that neither overflows nor underflows."""
    with np.errstate(over="ignore"):
        size = sqrt(x @ x)
    if MIN_SAFE_NORM < size < MAX_SAFE_NORM:
        return size
    top = float(np.abs(x).max(initial=0.0))
    return top * float(np.linalg.norm(x / top)) if 0 < top < np.inf else top


def safe_norms_per_row(lines: Floats) -> Floats:
    """As `safe_norms`, each with the bits that `safe_norm` gives."""
    return np.array([safe_norm(line) for line in lines])
