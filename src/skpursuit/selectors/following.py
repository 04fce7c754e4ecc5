"""Products of the codes with the residuals of consecutive steps, as speculated paths need them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skpursuit.data.design import Design
from skpursuit.numerics.arrays import Floats, Indices


class Represented(NamedTuple):
    """A residual, the product of the codes with it, and what that lost."""

    r: Floats
    g: Floats
    loss: Floats


class Followed(NamedTuple):
    """Products with residuals: |g[t, j] - <decoded v_j, R[t]>| <= loss[t] . factors[j]."""

    g: Floats
    loss: Floats
    represented: Callable[[int], Represented]


class FollowingCodes:
    """The codes of a design, for products with residuals that change little from one to the next."""

    def __init__(self, design: Design) -> None:
        self.design, codes = design, design.codes()
        self.codes, self.coded = codes, codes.coded
        self.can_follow = codes.can_multiply and codes.coded.store.is_one_tile
        if self.can_follow:
            self.factors, self.sizes = codes.factors, codes.sizes

    def following(self, R: Floats, before: Represented | None = None) -> Callable[[], Followed]:
        """Begin with products of the codes with the rows of R; what ends it returns them."""
        before = before or Represented(np.zeros(R.shape[1]), np.zeros(1), np.zeros(self.factors.shape[1]))
        end = self.codes.multiplying(np.diff(np.concatenate([before.r[None], R]), axis=0).T)

        def finish() -> Followed:
            g, loss = end()
            g[0] += before.g
            loss[0] += before.loss
            g, loss = g.cumsum(axis=0), loss.cumsum(axis=0) * (1.0 + 2.0**-40)
            return Followed(g.astype(np.float32), loss, lambda t: Represented(R[t], g[t], loss[t]))

        return finish

    @property
    def block_errors(self) -> Floats:
        """(blocks, d): what the codes lose of a column in a block."""
        errors, scale = self.coded.only._errors, self.design.view.scale
        return errors if scale is None else errors / np.abs(scale)

    def block_norms(self, R: Floats) -> Floats:
        """(T, blocks): norms of the residuals in the blocks of the codes, rounded up."""
        down = self.codes._down(R.T).T
        return np.sqrt(np.add.reduceat(down * down, np.arange(0, down.shape[1], 512), axis=1)) * (
            1 + 2.0**-30
        )

    def decoded(self, cols: Indices) -> Floats:
        """Columns in float32, as far as codes tell them."""
        return self.design.columns(cols, keep=False).astype(np.float32)
