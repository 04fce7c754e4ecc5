"""The walk of one step: the Python calls that go from one file of the package into another.

A call that comes through another library, such as a context manager, counts for the file that made it."""

import sys
from pathlib import Path
from types import FrameType

import numpy as np

import skpursuit
from skpursuit import OMP, Certified, as_design, datasets, minimize

PACKAGE = str(Path(skpursuit.__file__).parent)
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
STEPS = 30


class Walk:
    """Records the functions called across files from one `step` to the next; used as a profile function."""

    def __init__(self) -> None:
        self.steps: list[list[str]] = [[]]

    def step(self, record: object = None) -> None:
        """Begin the next step: the callback of a run."""
        self.steps.append([])

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not is_ours(frame) or frame.f_code.co_name in COMPREHENSIONS:
            return
        outer = frame.f_back
        while outer is not None and not is_ours(outer):
            outer = outer.f_back
        if outer is not None and outer.f_code.co_filename != frame.f_code.co_filename:
            self.steps[-1].append(frame.f_code.co_qualname)


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of the package."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def walked(loss: str, n: int, d: int) -> list[list[str]]:
    """The calls across files of each of 30 steps of an OMP on n x d numbers, certified for squared loss."""
    X, y, _ = datasets.make_sparse_signal(n, d, 20, snr=10.0, random_state=0)
    y = y if loss == "squared" else np.sign(y)
    design, walk, before = as_design(X), Walk(), sys.getprofile()
    given = OMP(n_nonzero_coefs=STEPS), Certified() if loss == "squared" else "exact", loss
    minimize(design, y, OMP(n_nonzero_coefs=2), *given[1:])  # compiles, and makes the codes
    try:
        sys.setprofile(walk)
        minimize(design, y, *given, callback=walk.step)
    finally:
        sys.setprofile(before)
    del walk.steps[0][: next(i for i, called in enumerate(walk.steps[0]) if called.endswith(".step"))]
    return walk.steps[:STEPS]
