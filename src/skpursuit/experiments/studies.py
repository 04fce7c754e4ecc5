"""The experiments of the paper as grids: a small one that takes a minute, and the paper's own sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
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
    methods : tuple of str
        The methods to compare; empty for those of the study, and one's own.
    own : dict of str to str
        Selectors of one's own: the name of the method, and ``FILE.py:NAME``.
    """

    full: bool = False
    trials: int | None = None
    data: str | None = None
    methods: tuple[str, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)

    @property
    def repetitions(self) -> int:
        """The number of trials."""
        return self.trials or (20 if self.full else 3)

    def choose(self, methods: Sequence[str]) -> tuple[str, ...]:
        """Return the methods of a study that are wanted, exact always first, and one's own."""
        wanted = self.methods or (*methods, *self.own)
        return tuple(dict.fromkeys(("exact", *(m for m in wanted if m in methods or m in self.own))))

    @property
    def settings(self) -> dict[str, Any]:
        """What results depend on beside their cells: digests of one's own selectors."""
        digests = {}
        for name, place in self.own.items():
            content = Path(place.rpartition(":")[0]).read_bytes()
            digests[f"selector {name}"] = hashlib.sha256(content).hexdigest()[:12]
        return digests


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
        for method in options.choose(methods)
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
    chosen = options.choose((*alone, *swept, "halving-doubling", "reject"))
    cells: list[dict[str, Any]] = []
    for trial in range(options.repetitions):
        given: dict[str, Any] = {"budget": 0.2, "iteration_limit": iterations}
        cells += [_toy(n, d, k, trial, m, **given) for m in chosen if m not in (*swept, "reject")]
        for rows, budget in settings if options.full else settings[:3]:
            given = {"stability": rows, "budget": budget, "iteration_limit": iterations}
            cells += [_toy(n, d, k, trial, method, **given) for method in swept if method in chosen]
    slow = {"stability": 5, "budget": 0.005, "iteration_limit": iterations}
    if "reject" in chosen:
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
        for method in options.choose(methods)
    ]
    return _experiment("cosamp", cells, run_cosamp, options)


def budget(options: Options) -> Experiment:
    """Halving against its budget."""
    n, d, k = (5000, 10000, 50) if options.full else (1000, 2000, 20)
    budgets = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
    halving = ("halving-random", "halving", "halving-plain")
    chosen = options.choose(("exact", "rows", *halving))
    cells: list[dict[str, Any]] = []
    for trial in range(options.repetitions):
        cells += [_toy(n, d, k, trial, method) for method in chosen if method not in halving]
        for share in budgets:
            cells += [_toy(n, d, k, trial, method, budget=share) for method in halving if method in chosen]
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
        for method in options.choose(methods)
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
    chosen = options.choose((*methods, "coder"))
    run = partial(sound.run_audio, data=options.data, methods=chosen, own=dict(options.own))
    settings = {**_sizes(options), "recording": recording.name}
    if options.methods:
        settings["methods"] = ", ".join(chosen)
    return Experiment("audio", cells, run, sound.COLUMNS, settings)


def text(options: Options) -> Experiment:
    """CoSaMP classifiers of text; the trials are splits."""
    found = words.collections(options.data)
    quick = ("exact", "rows", "greedy", "uniform", "halving-random", "halving", "halving-doubling")
    slow = ("stoch", "stoch-3k", "grasp", "grasp-halving")  # most of the time: after all splits of the others
    cells = [
        {"collection": name, "split": split, "method": method}
        for methods in ((*quick, *options.own), slow)
        for split in range(options.repetitions)
        for name in found
        for method in options.choose((*quick, *slow))
        if method in methods
    ]
    run = partial(words.run_text, data=options.data, own=dict(options.own))
    settings = {"generated": any(one.generated for one in found.values()), **options.settings}
    return Experiment(
        "text", cells, run, words.COLUMNS, settings, lambda cell: found[cell["collection"]].X.nnz
    )


def _sizes(options: Options) -> dict[str, Any]:
    return {"sizes": "full" if options.full else "small", **options.settings}


def _toy(n: int, d: int, k: int, trial: int, method: str, **given: Any) -> dict[str, Any]:
    """A cell, with the settings that its method looks at and no others."""
    looks = (*settings_of(method), "iteration_limit")
    settings = {name: value for name, value in given.items() if name in looks}
    return {"n": n, "d": d, "k": k, "trial": trial, "method": method, **settings}


def _experiment(name: str, cells: Iterable[Cell], run: Callable[..., Any], options: Options) -> Experiment:
    own = partial(run, own=dict(options.own)) if options.own else run
    return Experiment(name, list(cells), own, COLUMNS, _sizes(options), _cost)


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
