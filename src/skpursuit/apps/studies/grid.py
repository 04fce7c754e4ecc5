"""An experiment: a list of cells, and a function that turns a cell into result rows.

`run_experiment` computes and appends the cells that a results file lacks, so a run can be killed and resumed.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from .results import ResultsFile, settings_digest

Cell = Mapping[str, Any]
CellRows = Sequence[Mapping[str, Any]]
RESUME = "the finished cells are kept, run again to resume"


class CellError(RuntimeError):
    """A cell could not be computed; the finished ones are kept."""


@dataclass(frozen=True)
class Experiment:
    """A grid of cells, known by their content of JSON values, and what is done with each."""

    name: str  # of the results file
    cells: Sequence[Cell]
    run: Callable[[Cell], CellRows]  # a module's top-level function, so that other processes find it
    columns: tuple[str, ...]  # of the results: keys of cells and of rows
    settings: dict[str, Any] = field(default_factory=dict)  # results of other settings are never continued


def run_experiment(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    *,
    jobs: int = 1,
    progress: Callable[[int, int, float], object] = lambda done, total, share: None,
    about: dict[str, Any] | None = None,
) -> Path:
    """Compute what is missing of an experiment and return the path of its results, ``NAME.jsonl``.

    After every cell ``progress`` is told how many are done (earlier runs included), how many there are, and
    the share of this run. CellError if a cell fails; what is finished is kept, and running again continues.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    cells = {settings_digest(dict(cell)): cell for cell in experiment.cells}
    path = Path(folder) / f"{experiment.name}.jsonl"
    settings = {"experiment": experiment.name, **experiment.settings}
    with ResultsFile(path, experiment.columns, settings, about) as store:
        todo = {name: cell for name, cell in cells.items() if name not in store.results.cells}
        sized = all("n" in cell for cell in todo.values())
        sizes = {name: cell["n"] * cell["d"] if sized else 1 for name, cell in todo.items()}  # of X
        done, work = 0.0, sum(sizes.values()) or 1
        progress(len(store.results.cells), len(cells), 0.0)
        try:
            computed = _computed(experiment, todo, jobs)
            for name, rows in computed:
                if isinstance(rows, Exception):
                    # joblib tells of the cells that are given up
                    with warnings.catch_warnings(action="ignore", category=UserWarning):
                        computed.close()
                    problem = f"cell {dict(todo[name])} failed ({type(rows).__name__}: {rows})"
                    raise CellError(f"{experiment.name}: {problem}; {RESUME}") from rows
                store.append(name, [{**todo[name], **row} for row in rows])
                done += sizes[name]
                progress(len(store.results.cells.keys() & cells), len(cells), done / work)
        except BrokenProcessPool as error:
            problem = "a worker process died (out of memory?); run again with fewer jobs to resume"
            raise CellError(f"{experiment.name}: {problem}") from error
        store.finish(list(cells))
    return path


def _computed(
    experiment: Experiment, todo: Mapping[str, Cell], jobs: int
) -> Generator[tuple[str, CellRows | Exception], None, None]:
    """Yield the name of each cell with its rows, or with the error that it ended in, as they are finished."""
    pool = Parallel(min(jobs, len(todo) or 1), batch_size=1, return_as="generator_unordered")
    with parallel_config("loky", inner_max_num_threads=1), threadpool_limits(1):
        work = delayed(_compute)
        yield from pool(work(experiment.run, name, cell, os.getpid()) for name, cell in todo.items())


def _compute(
    run: Callable[[Cell], CellRows], name: str, cell: Cell, parent: int
) -> tuple[str, CellRows | Exception]:
    if os.getpid() != parent:
        _exit_with_parent(parent)
    try:
        return name, run(cell)
    except Exception as error:
        return name, error


@functools.cache
def _exit_with_parent(parent: int) -> None:
    """End this worker when its parent is gone, even by SIGKILL, whatever it is computing."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
