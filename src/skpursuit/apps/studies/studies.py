"""The studies of studies.toml, small (a minute) or in the paper's sizes; audio and text need data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..tables.errors import TableProblem, attach_path
from . import audio as sound
from . import synthetic
from . import text as words
from .grid import Experiment
from .methods import DECLARED as GRIDS
from .methods import RESULT_COLUMNS, runs, settings_of


@dataclass(frozen=True)
class StudyOptions:
    """What a user may choose."""

    full: bool = False  # the paper's sizes
    trials: int | None = None  # repetitions; by default 3 for small and 20 for full runs
    snr: tuple[float, ...] = ()  # of the noise in toy signals, in decibels; by default 3 and 30
    data: str | Path | None = None  # folder with text collections and recordings; None generates stand-ins
    methods: tuple[str, ...] = ()  # the methods to compare; empty for those of the study, and one's own
    #: selectors of one's own: name and FILE.py:NAME
    user_selectors: Mapping[str, str] = field(default_factory=dict)

    def choose(self, study: str) -> tuple[str, ...]:
        """Return the methods that are wanted and that a study can run, exact always first, and one's own."""
        wanted = self.methods or (*GRIDS[study]["methods"], *self.user_selectors)
        return tuple(dict.fromkeys(m for m in ("exact", *wanted) if runs(study, m, self.user_selectors)))

    @property
    def settings(self) -> dict[str, Any]:
        """What results depend on beside their cells: the sizes, and digests of one's own selectors."""
        digests = {}
        for name, place in self.user_selectors.items():
            content = Path(place.rpartition(":")[0]).read_bytes()
            digests[f"selector {name}"] = hashlib.sha256(content).hexdigest()[:12]
        return {"sizes": "full" if self.full else "small", **digests}


def toy_study(name: str, options: StudyOptions) -> Experiment:
    """A study on toy signals; a cell has the settings that its method takes and no others."""
    grid = {**GRIDS[name], **GRIDS[name]["full" if options.full else "small"]}
    shapes = [[np.atleast_1d(one[name]).tolist() for name in ("n", "d", "k")] for one in grid["problems"]]
    problems = [problem for one in shapes for problem in product(*one)]
    families = [{"design": family} for family in grid.get("designs", ())] or [{}]
    axes = [problems, families, options.snr or grid.get("snr", (3, 30)), grid["settings"]]
    cells, limits, methods = [], grid.get("reject", {}), options.choose(name)
    trials = range(options.trials or (20 if options.full else 3))
    for trial, (n, d, k), family, snr, setting in product(trials, *axes):
        place = {"n": n, "d": d, "k": k, "trial": trial, "snr": float(snr), **family}
        for method in methods:
            first = setting is grid["settings"][0]
            beyond = any(place[name] > limits[name] for name in place if name in limits)
            if (first or method in grid.get("swept", ())) and not (method == "reject" and beyond):
                given = {**setting, **limits} if method == "reject" else setting
                takes = {name: given[name] for name in settings_of(method) if name in given}
                cells.append({**place, "method": method, **takes, **grid.get("given", {})})
    run = partial(getattr(synthetic, f"run_{grid['solver']}"), user_selectors=dict(options.user_selectors))
    return Experiment(name, cells, run, tuple(RESULT_COLUMNS["toy"]), options.settings)


def race_study(options: StudyOptions) -> Experiment:
    """One selection by every selector that records its rounds, one's own included."""
    cells = [{**GRIDS["race"]["problem"], "method": method} for method in options.choose("race")]
    run = partial(synthetic.run_race, user_selectors=dict(options.user_selectors))
    return Experiment("race", cells, run, tuple(RESULT_COLUMNS["race"]), options.settings)


def theory_study(options: StudyOptions) -> Experiment:
    """The theorems against selections, for every combination of the values in its grids."""
    grids = GRIDS["theory"]["full" if options.full else "small"]
    cells = [dict(zip(grid, one)) for grid in grids for one in product(*map(np.atleast_1d, grid.values()))]
    cells = [{name: value.item() for name, value in cell.items()} for cell in cells]
    columns = tuple(RESULT_COLUMNS["theory"])
    return Experiment("theory", cells, synthetic.run_theory, columns, options.settings)


def audio_study(options: StudyOptions) -> Experiment:
    """CoSaMP codes of pieces of sound; the trials are the pieces."""
    grid = GRIDS["audio"]["full" if options.full else "small"]
    recording, count = sound.recording(options.data), grid["count"]
    pieces = min(len(recording.pieces), count * grid.get("cells", len(recording.pieces)))
    # In a random order, so that what a long run has finished is a sample of the whole recording.
    starts = np.random.default_rng(0).permutation(np.arange(0, pieces, count)).tolist()
    cells = [
        {"first": first, "count": min(count, pieces - first), "atoms": grid["atoms"]}
        for first in starts
        if recording.pieces[first : first + count].any()  # silence has no code
    ]
    with attach_path(options.data or ""):
        if not cells:
            raise TableProblem("silence", pieces=pieces)
    chosen = options.choose("audio")
    run = partial(
        sound.run_audio, data=options.data, methods=chosen, user_selectors=dict(options.user_selectors)
    )
    settings = {**options.settings, "recording": recording.name}
    if options.methods:
        settings["methods"] = ", ".join(chosen)
    return Experiment("audio", cells, run, tuple(RESULT_COLUMNS["audio"]), settings)


def text_study(options: StudyOptions) -> Experiment:
    """CoSaMP classifiers of text; the trials are splits."""
    found, grid = words.collections(options.data), GRIDS["text"]
    most = grid["splits"]["full" if options.full else "small"]
    cells = [
        {"collection": name, "split": split, "method": method}
        for late in (False, True)
        for split in range(options.trials or (20 if options.full else 3))
        for name in found
        for method in options.choose("text")
        if (method in grid["slow"]) is late and split < most.get(method, split + 1)
    ]
    digests = {name: value for name, value in options.settings.items() if name != "sizes"}
    settings = {"generated": options.data is None, **digests}
    run = partial(words.run_text, data=options.data, user_selectors=dict(options.user_selectors))
    return Experiment("text", cells, run, tuple(RESULT_COLUMNS["text"]), settings)


STUDIES: dict[str, Callable[[StudyOptions], Experiment]] = {
    "race": race_study,
    **{name: partial(toy_study, name) for name in ("fw", "omp", "cosamp", "budget", "scaling", "families")},
    "theory": theory_study,
    "audio": audio_study,
    "text": text_study,
}


def result_columns(name: str) -> dict[str, str]:
    """The columns of the results of a study, and what they hold."""
    return RESULT_COLUMNS.get(name, RESULT_COLUMNS["toy"])
