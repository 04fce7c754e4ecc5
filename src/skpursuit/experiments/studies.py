"""The experiments of the paper as grids: a small one that takes a minute, and the paper's own sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from . import audio as sound
from . import text as words
from .grid import Cell, Experiment
from .loaders import DataError
from .methods import settings_of
from .toy import COLUMNS, run_cosamp, run_fw, run_omp

#: Bandits that pull single entries are run on this many trials of the full grids.
REJECT_TRIALS = 2


@dataclass(frozen=True)
class Options:
    """What a user may choose.

    Attributes
    ----------
    full : bool
        The paper's sizes.
    trials : int or None
        Repetitions; None is 3 for small and 20 for full runs.
    data : str or None
        Folder with text collections and recordings; None generates stand-ins.
    """

    full: bool = False
    trials: int | None = None
    data: str | None = None

    @property
    def repetitions(self) -> int:
        """The number of trials."""
        return self.trials or (20 if self.full else 3)


def omp(options: Options) -> Experiment:
    """OMP against k."""
    sizes = [(2000, 4000), (5000, 10000)] if options.full else [(500, 1000), (1000, 2000)]
    ks = (10, 25, 50, 100, 150) if options.full else (5, 10, 20, 40)
    methods = (
        "exact", "rows", "greedy", "uniform", "importance", "halving-random", "halving", "halving-doubling",
        "certified", "sketch", "reject",
    )  # fmt: skip
    cells = [
        _toy(n, d, k, trial, method, stability=0.02, budget=0.2)
        for trial in range(options.repetitions)
        for n, d in sizes
        for k in ks
        for method in methods
        if method != "reject" or _reject_fits(options, n, k, trial)
    ]
    return _experiment("omp", cells, run_omp, options)


def _reject_fits(options: Options, n: int, k: int, trial: int) -> bool:
    """Successive reject pulls single entries: minutes for a few steps at the paper's sizes."""
    return (
        trial < REJECT_TRIALS and k <= (10 if options.full else 20) and n <= (2000 if options.full else 500)
    )


def fw(options: Options) -> Experiment:
    """Frank-Wolfe against N_s and the budget."""
    n, d, k, iterations = (2000, 4000, 50, 5000) if options.full else (400, 800, 10, 300)
    settings = ((20, 0.2), (5, 0.05), (80, 0.8), (10, 0.1), (40, 0.4))  # the default first: runs are long
    alone = ("exact", "rows", "bound", "gram", "certified")
    swept = ("greedy", "uniform", "importance", "halving-random", "halving")
    cells: list[dict[str, Any]] = []
    for trial in range(options.repetitions):
        cells += [_toy(n, d, k, trial, method, iteration_limit=iterations) for method in alone]
        cells.append(_toy(n, d, k, trial, "halving-doubling", budget=0.2, iteration_limit=iterations))
        for rows, budget in settings if options.full else settings[:3]:
            given = {"stability": rows, "budget": budget, "iteration_limit": iterations}
            cells += [_toy(n, d, k, trial, method, **given) for method in swept]
    slow = {"stability": 5, "budget": 0.005, "iteration_limit": iterations}
    cells += [_toy(n, d, k, trial, "reject", **slow) for trial in range(min(2, options.repetitions))]
    return _experiment("fw", cells, run_fw, options)


def cosamp(options: Options) -> Experiment:
    """CoSaMP against k, exact under both stop rules."""
    sizes = [(2000, 4000), (5000, 10000)] if options.full else [(500, 1000), (1000, 2000)]
    ks = (10, 25, 50, 100, 200) if options.full else (5, 10, 20, 40)
    methods = (
        "exact", "rows", "exact-k", "rows-k", "greedy", "uniform", "importance", "halving-random", "halving",
        "halving-doubling", "certified", "stoch",
    )  # fmt: skip
    cells = [
        _toy(n, d, k, trial, method, stability=0.02, budget=0.2)
        for trial in range(options.repetitions)
        for n, d in sizes
        for k in ks
        for method in methods
    ]
    return _experiment("cosamp", cells, run_cosamp, options)


def budget(options: Options) -> Experiment:
    """Halving against its budget."""
    n, d, k = (5000, 10000, 50) if options.full else (1000, 2000, 20)
    budgets = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
    cells: list[dict[str, Any]] = []
    for trial in range(options.repetitions):
        cells += [_toy(n, d, k, trial, method) for method in ("exact", "rows")]
        for share in budgets:
            for method in ("halving-random", "halving", "halving-plain"):
                cells.append(_toy(n, d, k, trial, method, budget=share))
    return _experiment("budget", cells, run_cosamp, options)


def scaling(options: Options) -> Experiment:
    """CoSaMP against d, then against n."""
    if options.full:
        shapes = [(2000, d, 100) for d in (2000, 4000, 6000, 8000, 10000)]
        shapes += [(n, 10000, 400) for n in (3000, 4000, 6000, 8000)]
    else:
        shapes = [(500, d, 10) for d in (500, 1000, 2000)] + [(n, 1000, 20) for n in (500, 1000, 2000)]
    methods = ("exact", "rows", "greedy", "halving-random", "halving", "certified", "stoch")
    cells = [
        _toy(n, d, k, trial, method, stability=0.02, budget=0.2)
        for trial in range(options.repetitions)
        for n, d, k in shapes
        for method in methods
    ]
    return _experiment("scaling", cells, run_cosamp, options)


def audio(options: Options) -> Experiment:
    """CoSaMP codes of pieces of sound; the trials are the pieces."""
    atoms, count = (2048, 32) if options.full else (256, 8)
    recording = sound.recording(options.data)
    pieces = len(recording.pieces) if options.full else min(len(recording.pieces), 8 * count)
    methods = (
        "exact", "rows", "stoch", "stoch-3k", "uniform", "greedy", "halving-random", "halving",
        "certified",
    )  # fmt: skip
    # In a random order, so that what a long run has finished is a sample of the whole recording.
    starts = np.random.default_rng(0).permutation(np.arange(0, pieces, count)).tolist()
    cells = [
        {"first": first, "count": min(count, pieces - first), "atoms": atoms}
        for first in starts
        if recording.pieces[first : first + count].any()  # silence has no code
    ]
    if not cells:
        raise DataError(options.data or "", f"its first {pieces} pieces are silence", "give other recordings")
    run = partial(sound.run_audio, data=options.data, methods=(*methods, "coder"))
    settings = {**_sizes(options), "recording": recording.name}
    return Experiment("audio", cells, run, sound.COLUMNS, settings)


def text(options: Options) -> Experiment:
    """CoSaMP classifiers of text; the trials are splits."""
    found = words.collections(options.data)
    quick = ("exact", "rows", "greedy", "uniform", "halving-random", "halving", "halving-doubling")
    slow = ("stoch", "stoch-3k", "grasp", "grasp-halving")  # most of the time: after all splits of the others
    cells = [
        {"collection": name, "split": split, "method": method}
        for methods in (quick, slow)
        for split in range(options.repetitions)
        for name in found
        for method in methods
    ]
    run = partial(words.run_text, data=options.data)
    settings = {"generated": any(one.generated for one in found.values())}
    return Experiment(
        "text", cells, run, words.COLUMNS, settings, lambda cell: found[cell["collection"]].X.nnz
    )


def _sizes(options: Options) -> dict[str, Any]:
    return {"sizes": "full" if options.full else "small"}


def _toy(n: int, d: int, k: int, trial: int, method: str, **given: Any) -> dict[str, Any]:
    """A cell, with the settings that its method looks at and no others."""
    looks = (*settings_of(method), "iteration_limit")
    settings = {name: value for name, value in given.items() if name in looks}
    return {"n": n, "d": d, "k": k, "trial": trial, "method": method, **settings}


def _experiment(name: str, cells: Iterable[Cell], run: Callable[[Cell], Any], options: Options) -> Experiment:
    return Experiment(name, list(cells), run, COLUMNS, _sizes(options), _cost)


def _cost(cell: Cell) -> float:
    """Passes over X, roughly: for the estimate of the time left."""
    steps = cell.get("iteration_limit") or (cell["k"] if cell["method"].endswith("-k") else 10)
    dear = {"reject": 50.0, "bound": 1.5, "gram": 0.1}.get(cell["method"], 1.0)
    return dear * cell["n"] * cell["d"] * steps


STUDIES: dict[str, Callable[[Options], Experiment]] = {
    "omp": omp,
    "cosamp": cosamp,
    "budget": budget,
    "scaling": scaling,
    "fw": fw,
    "audio": audio,
    "text": text,
}
