"""The walk of one step: the Python calls that go from one file of the package into another.

`python -m tests.support.walk` prints those of the median of 30 steps of a certified OMP, in order, indented
by depth, and counts them all; with the name of another loss behind it those of an exact OMP with that loss.

Calls are seen by `sys.setprofile`. Comprehensions and generator expressions are no calls of their own; a call
that comes through another library, such as a context manager, counts for the file of ours that made it.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np

import skpursuit
from skpursuit import OMP, Certified, as_design, datasets, minimize

PACKAGE = str(Path(skpursuit.__file__).parent)
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
STEPS = 30


class Call(NamedTuple):
    """One call across files: how many of the package's functions are around it, who calls, and what."""

    depth: int
    caller: str
    called: str

    def __str__(self) -> str:
        return f"{'  ' * self.depth}{self.called}  (from {self.caller})"


class Walk:
    """Records the calls across files from one `step` to the next; used as a profile function."""

    def __init__(self) -> None:
        self.steps: list[list[Call]] = [[]]

    def step(self, record: object = None) -> None:
        """Begin the next step: the callback of a run."""
        self.steps.append([])

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not is_ours(frame) or frame.f_code.co_name in COMPREHENSIONS:
            return
        around = frames_around(frame)
        if around and around[0].f_code.co_filename != frame.f_code.co_filename:
            self.steps[-1].append(Call(len(around), place(around[0]), place(frame)))


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of the package."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def frames_around(frame: FrameType) -> list[FrameType]:
    """The package's frames around this one, the nearest first."""
    found, outer = [], frame.f_back
    while outer is not None:
        if is_ours(outer):
            found.append(outer)
        outer = outer.f_back
    return found


def place(frame: FrameType) -> str:
    """File and function, such as `data/design.py Design.product`."""
    file = Path(frame.f_code.co_filename).relative_to(PACKAGE)
    return f"{file.as_posix()} {frame.f_code.co_qualname}:{frame.f_lineno}"


def walked(loss: str, n: int, d: int) -> list[list[Call]]:
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
    del walk.steps[0][: next(i for i, call in enumerate(walk.steps[0]) if ".step:" in call.called)]
    return walk.steps[:STEPS]


def main() -> None:
    """Print the median step."""
    steps = walked("squared", 3000, 6000) if len(sys.argv) < 2 else walked(sys.argv[1], 8000, 300)
    median, counts = sorted(steps, key=len)[STEPS // 2], [len(step) for step in steps]
    told = f"{len(median)} calls across files; mean {sum(counts) / STEPS:.1f}, steps 1 to {STEPS}: {counts}"
    sys.stdout.write("\n".join([*map(str, median), told, ""]))


if __name__ == "__main__":
    main()
