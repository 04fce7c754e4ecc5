"""How far a pass over X on disk is: bytes done, speed, and an estimate of the rest."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

PATIENCE = 2.0  # seconds of a pass before anything is told
OFTEN = 0.5  # seconds between two reports


class Progress(NamedTuple):
    """A report about one pass over X.

    Attributes
    ----------
    done, total : int
        Bytes that were read in this pass, and that it will read.
    seconds : float
        Since it began.
    """

    done: int
    total: int
    seconds: float

    @property
    def speed(self) -> float:
        """Bytes a second."""
        return self.done / self.seconds

    @property
    def left(self) -> float:
        """Estimated seconds to the end of this pass."""
        return (self.total - self.done) / self.speed

    def __str__(self) -> str:
        done, total = self.done / 1e9, self.total / 1e9
        return f"read {done:.1f} of {total:.1f} GB, {self.speed / 1e9:.2f} GB/s, {self.left:.0f} s left"


Listener = Callable[[Progress], object]


class Meter:
    """Tells a listener about one pass, from its third second on."""

    def __init__(self, total: int, listener: Listener | None) -> None:
        self.total, self.listener, self.done = total, listener, 0
        self.began = self.told = time.perf_counter()

    def add(self, nbytes: int) -> None:
        """Count what was read."""
        self.done += nbytes
        now = time.perf_counter()
        late = now - self.began >= PATIENCE and now - self.told >= OFTEN
        last = self.done == self.total and self.told > self.began
        if self.listener is not None and (late or last):
            self.told = now
            self.listener(Progress(self.done, self.total, now - self.began))


def show(progress: Progress) -> None:
    """Write a report over the last one, to the standard error stream: what `verbose` does."""
    end = "\n" if progress.done >= progress.total else ""
    sys.stderr.write(f"\r{progress!s:<70}{end}")
    sys.stderr.flush()
