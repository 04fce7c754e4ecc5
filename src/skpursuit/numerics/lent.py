"""Large arrays in memory that earlier ones left.

New memory costs a page fault for every few kilobytes, up to 3 microseconds each on a virtual machine: 50 MB
of codes 5 ms, a fifth of the time it takes to make them. So memory is lent. Views keep it alive as they keep
any array; when the last of them is gone it is kept, up to `KEPT` bytes in all, for the next array of about
that size.
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEPT = 2**27  # bytes of memory that nobody uses at the moment
LEAST = 2**18  # bytes of an array that is worth it
LINE = 64  # bytes: arrays begin at a multiple of this

_kept: dict[int, NDArray[np.uint8]] = {}  # by address, oldest first; single steps only, which threads share


class _Loan:
    """What all views of a piece of memory hang on, so that it is known when the last of them is gone."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self.__array_interface__ = memory.__array_interface__


def lent(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """A new array with any contents, as `numpy.empty` gives it, which begins with a cache line."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes < LEAST:
        return np.empty(shape, dtype)
    memory = _taken(nbytes + LINE)
    loan = _Loan(memory)
    weakref.finalize(loan, _give_back, memory).atexit = False
    start = -memory.ctypes.data % LINE
    return np.asarray(loan)[start : start + nbytes].view(dtype).reshape(shape)


def lent_like(array: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """A new array with the shape of another, and with its memory order where that is C or F."""
    if array.flags.c_contiguous:
        return lent(array.shape, dtype)
    return lent(array.shape[::-1], dtype).T


def free() -> None:
    """Give memory that nobody uses at the moment back to the system."""
    _kept.clear()


def _taken(nbytes: int) -> NDArray[np.uint8]:
    """The smallest piece that is kept and fits without much waste, or a new one."""
    for key, memory in sorted(_kept.copy().items(), key=lambda item: item[1].size):
        if nbytes <= memory.size <= 2 * nbytes and _kept.pop(key, None) is not None:
            return memory
    return np.empty(nbytes, np.uint8)


def _give_back(memory: NDArray[np.uint8]) -> None:
    _kept[memory.ctypes.data] = memory
    surplus = sum(piece.size for piece in _kept.copy().values()) - KEPT
    for key, piece in _kept.copy().items():
        if surplus <= 0:
            return
        surplus -= piece.size
        _kept.pop(key, None)
