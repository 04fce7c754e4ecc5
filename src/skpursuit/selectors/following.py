"""Temporary: the interface of the codes that the speculated path uses, on top of `Codes.multiplying`."""

from typing import Any, NamedTuple

import numpy as np


class Represented(NamedTuple):
    a: Any
    g: Any
    loss: Any


class Followed(NamedTuple):
    g: Any
    loss: Any
    represented: Any


class FollowingCodes:
    def __init__(self, design: Any) -> None:
        self.design = design
        self.codes = design.codes()
        self.can_follow = self.codes.can_multiply and self.codes.coded.store.is_one_tile
        if self.can_follow:
            self.factors, self.sizes = self.codes.factors, self.codes.sizes

    def following(self, R: Any, before: Any = None) -> Any:
        (n, d) = self.design.shape
        zero = Represented(np.zeros(n), np.zeros(d), np.zeros(self.factors.shape[1]))
        before = zero if before is None else before
        V = np.diff(np.concatenate([before.a[None], R]), axis=0)
        end = self.codes.multiplying(np.ascontiguousarray(V.T))

        def finish() -> Any:
            g, loss = end()
            loss = np.cumsum(loss, axis=0) + before.loss
            g = np.cumsum(g, axis=0) + before.g
            loss = loss * (1 + 1e-10)
            return Followed(g.astype(np.float32), loss, lambda t: Represented(R[t].copy(), g[t].copy(), loss[t]))

        return finish

    @property
    def block_errors(self) -> Any:
        errors = self.codes.coded.only._errors
        scale = self.codes.view.scale
        return errors if scale is None else errors / np.abs(scale)

    def block_norms(self, R: Any) -> Any:
        down = self.codes._down(np.ascontiguousarray(R.T)).T
        starts = np.arange(0, down.shape[1], 512)
        return np.sqrt(np.add.reduceat(down * down, starts, axis=1)) * (1 + 1e-9)

    def decoded(self, cols: Any) -> Any:
        return self.design.columns(cols, keep=False).astype(np.float32)
