"""How codes are made: panels of columns of a dense matrix are encoded, in one pass over it.

Threads take ranges of columns. A C-ordered X is read where it lies; other layouts are copied panel by panel.
Columns whose largest entry is far from one are divided by a power of two and encoded again, so that scales
and errors stay within the range of float32.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpursuit.kernels import encode
from skpursuit.kernels import quantized as kernel
from skpursuit.numerics.arrays import Floats
from skpursuit.numerics.threads import over_ranges


class TileEncoder:
    """Arrays of codes while panels of columns are encoded into them."""

    def __init__(self, X: Floats, rng: np.random.Generator | None, steps: bool) -> None:
        n, d = X.shape
        rows = -(-n // kernel.LANES) * kernel.LANES
        self.X = X
        self.codes = np.empty((-(-d // encode.GROUP) * encode.GROUP, rows), np.int8)
        self.steps = np.empty((n, self.codes.shape[0]) if steps else (0, 0), np.int16)
        self.squares = np.zeros((len(self.steps), -(-d // encode.WIDTH)))
        self.params = np.zeros((4, d, -(-rows // kernel.ROWS)))
        self.exponent = np.zeros(d, np.intc)
        self.rngs = None if rng is None else rng.spawn(-(-d // encode.GROUP))

    def build(self) -> dict[str, Any]:
        """The arrays of the codes, by name."""
        self.encode_all(np.ones(self.X.shape[1], bool))
        peak = self.params[3].max(axis=1, initial=0.0)
        if not np.isfinite(peak).all():
            raise ValueError("matrix is not finite")
        odd = (peak > 0.0) & ((peak < 2.0**-20) | (peak > 2.0**60))
        if odd.any():
            self.exponent[odd] = np.frexp(peak[odd])[1]
            self.encode_all(odd)
            # Other units may have pushed entries of these blocks below the smallest number.
            flat = odd[:, None] & (self.params[0] == 0.0)
            self.params[0][flat] = encode.LOW_SCALE
            self.params[2][flat] += 2.0**-100
        if not np.isfinite(self.params[2]).all():  # a NaN is in no extremum, but in the sum of squares
            raise ValueError("matrix is not finite")
        scale, centre, error = self.params[0].astype(np.float32), self.params[1].copy(), self.params[2]
        above = (error * (1.0 + 2.0**-22)).astype(np.float32)
        squares = self.squares.sum(axis=1) if self.steps.size and not odd.any() else None
        frames = {"scale": scale, "centre": centre, "error": above, "exponent": self.exponent}
        return {"codes": self.codes, "steps": self.steps, **frames, "row_squares": squares}

    def encode_all(self, wanted: NDArray[np.bool_]) -> None:
        """Encode the ranges of columns that hold a wanted one."""
        plain = self.X.flags.c_contiguous and self.rngs is None and not self.exponent.any()
        width = wanted.size if plain else encode.WIDTH
        even = wanted.size - wanted.size % encode.GROUP

        def task(lo: int, hi: int) -> None:
            for first in range(lo, hi, width):
                last = min(first + width, hi)
                for a, b in ((first, min(last, even)), (max(first, even), last)):
                    if wanted[a:b].any():
                        self.encode(a, b)

        if self.X.size:
            over_ranges(task, wanted.size, encode.WIDTH, self.X.size, ())

    def encode(self, first: int, last: int) -> None:
        """Encode the columns from first to last: whole groups, or the incomplete one at the end."""
        X, start = self.panel(first, last)
        width = -(-(last - first) // encode.GROUP) * encode.GROUP
        whole = width == self.params.shape[1]
        params = self.params if whole else np.empty((4, width, self.params.shape[2]))
        some = slice(first, first + width)
        given = X, start, width, self.dither(first, width), self.codes[some]
        by_rows = self.steps, self.squares, first
        encode.encode_columns(*given, *by_rows, params, encode.make_scratch(X.dtype))
        if not whole:
            self.params[:, first:last] = params[:, : last - first]

    def panel(self, first: int, last: int) -> tuple[Floats, int]:
        """Return a C-ordered array and the place of the first column in it."""
        exponent = self.exponent[first:last]
        whole = (last - first) % encode.GROUP == 0
        if self.X.flags.c_contiguous and whole and not exponent.any():
            return self.X, first
        width = -(-(last - first) // encode.GROUP) * encode.GROUP
        copy = np.zeros((self.X.shape[0], width), np.float64 if exponent.any() else self.X.dtype)
        encode.copy_columns(self.X, first, last - first, copy)
        if exponent.any():
            np.ldexp(copy[:, : last - first], -exponent, out=copy[:, : last - first])
        return copy, 0

    def dither(self, first: int, width: int) -> NDArray[np.float32]:
        """Zero, or what makes the rounding of a code random, and unbiased to 1/256 of a scale."""
        if self.rngs is None:
            return np.zeros((1, width), np.float32)
        rng = self.rngs[first // encode.GROUP]
        steps = rng.integers(0, 128, (self.X.shape[0], width), np.uint8)
        return (steps.astype(np.float32) - np.float32(63.5)) / np.float32(128.0)
