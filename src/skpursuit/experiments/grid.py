"""An experiment is data: a list of cells, and a function that turns a cell into rows.

`run` computes the cells that a results file does not hold yet and appends each as it is finished, so that a
run can be killed at any moment and continued.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from .results import Store, digest

Cell = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class CellError(RuntimeError):
    """A cell could not be computed; the finished ones are kept."""


@dataclass(frozen=True)
class Experiment:
    """A grid of cells and what is done with each.

    Cells hold JSON values (parameters, sizes, the trial's seed), and a cell is known by its content. ``run``
    is a module's top-level function, so that other processes find it; the rows it returns may fill in columns
    that their cell does not have.
    """

    name: str  # of the results file
    cells: Sequence[Cell]
    run: Callable[[Cell], Rows]
    columns: tuple[str, ...]  # of the results: keys of cells and of rows
    settings: dict[str, Any] = field(default_factory=dict)  # results of other settings are never continued
    cost: Callable[[Cell], float] = lambda cell: 1.0  # relative, for the estimate of the time left


def run(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    *,
    jobs: int = 1,
    progress: Callable[[int, int, float], object] = lambda done, total, share: None,
    about: dict[str, Any] | None = None,
) -> Path:
    """Compute what is missing of an experiment and return the path of its results.

    ``NAME.jsonl`` and ``NAME.csv`` are, or will be, in the folder. Of ``jobs`` processes each has one BLAS
    thread; one job computes in this process. After every cell ``progress`` is told how many are done (earlier
    runs included), how many there are, and the share of this run. ``about`` (machine and versions) is kept
    beside the results.

    Raises
    ------
    ResultsError
        If the file holds results of other settings, is damaged, or is being written to.
    CellError
        If a cell fails. What is finished is kept; running again continues.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    cells = {digest(dict(cell)): cell for cell in experiment.cells}
    path = Path(folder) / f"{experiment.name}.jsonl"
    settings = {"experiment": experiment.name, **experiment.settings}
    with Store(path, experiment.columns, settings, about) as store:
        todo = {name: cell for name, cell in cells.items() if name not in store.done}
        done, work = 0.0, sum(map(experiment.cost, todo.values())) or 1.0
        progress(len(store.done), len(cells), 0.0)
        compute = _compute_here if jobs == 1 or len(todo) <= 1 else _compute_elsewhere
        for name, rows in compute(experiment, todo, jobs):
            store.append(name, [{**todo[name], **row} for row in rows])
            done += experiment.cost(todo[name])
            progress(len(store.done & set(cells)), len(cells), done / work)
        store.finish(list(cells))
    return path


def _compute_here(experiment: Experiment, todo: Mapping[str, Cell], jobs: int) -> Iterator[tuple[str, Rows]]:
    for name, cell in todo.items():
        with _explained(experiment, cell), threadpool_limits(1):
            rows = experiment.run(cell)
        yield name, rows


def _compute_elsewhere(
    experiment: Experiment, todo: Mapping[str, Cell], jobs: int
) -> Iterator[tuple[str, Rows]]:
    """Compute cells in spawned processes, which end with this one or when nobody wants their rows."""
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker, initargs=(watched,))
    try:
        with _explained(experiment, {}):
            names = {pool.submit(experiment.run, cell): name for name, cell in todo.items()}
        for future in as_completed(names):
            with _explained(experiment, todo[names[future]]):
                rows = future.result()
            yield names[future], rows
        pool.shutdown()
    finally:
        held.close()  # the workers see this and end, whatever they are doing
        pool.shutdown(cancel_futures=True)
        watched.close()


@contextlib.contextmanager
def _explained(experiment: Experiment, cell: Cell) -> Iterator[None]:
    """Turn the failure of a cell, or of the process that works on it, into a `CellError`."""
    try:
        yield
    except BrokenProcessPool as error:
        message = "a worker process died (out of memory?); run again with fewer jobs to resume"
        raise CellError(f"{experiment.name}: {message}") from error
    except Exception as error:
        message = f"{experiment.name}: cell {dict(cell)} failed ({type(error).__name__}: {error})"
        raise CellError(f"{message}; the finished cells are kept, run again to resume") from error


def _begin_worker(watched: multiprocessing.connection.Connection) -> None:
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, args=(watched,), daemon=True).start()


def _end_with_parent(watched: multiprocessing.connection.Connection) -> None:
    """Wait until the other end of the pipe is closed: by the parent, or by its death, even by SIGKILL."""
    with contextlib.suppress(EOFError, OSError):
        watched.recv_bytes()
    os._exit(1)
