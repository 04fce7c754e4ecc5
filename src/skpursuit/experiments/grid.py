"""An experiment is data: a list of cells, and a function that turns a cell into rows.

`run` computes the cells that a results file does not hold yet and appends each as it is finished, so that a
run can be killed at any moment and continued.
"""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.connection
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from .store import Store, digest

Cell = Mapping[str, Any]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class CellError(RuntimeError):
    """A cell could not be computed; the finished ones are kept."""


@dataclass(frozen=True)
class Experiment:
    """A grid of cells and what is done with each.

    Attributes
    ----------
    name : str
        Names the results file.
    cells : sequence of dict
        What is computed, as JSON values: parameters, sizes, the trial's seed. A cell is known by its content.
    run : callable
        ``run(cell)`` returns rows (dicts); a module's top-level function, so that other processes find it.
    columns : tuple of str
        Columns of the results: keys of cells and of rows. A row may fill in keys that its cell does not have.
    settings : dict
        What the results depend on beside the cells; results of other settings are never continued.
    cost : callable
        Relative cost of a cell, for the estimate of the time left.
    """

    name: str
    cells: Sequence[Cell]
    run: Callable[[Cell], Sequence[Mapping[str, Any]]]
    columns: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    cost: Callable[[Cell], float] = lambda cell: 1.0


@dataclass(frozen=True)
class Progress:
    """How far a run is: cells done and in all (those of earlier runs included), and the share of this run."""

    name: str
    done: int
    total: int
    share: float
    cell: Cell | None = None


def product(**axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the cells of a full grid, the last axis varying fastest."""
    return [dict(zip(axes, values)) for values in itertools.product(*axes.values())]


def results_path(experiment: Experiment, folder: str | os.PathLike[str]) -> Path:
    """Return where an experiment's rows are kept."""
    return Path(folder) / f"{experiment.name}.jsonl"


def run(
    experiment: Experiment,
    folder: str | os.PathLike[str],
    *,
    jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
    about: dict[str, Any] | None = None,
) -> Path:
    """Compute what is missing of an experiment and return the path of its results.

    Parameters
    ----------
    experiment : Experiment
        What to do.
    folder : path
        Where ``NAME.jsonl`` and ``NAME.csv`` are, or will be.
    jobs : int
        Number of processes; one computes in this process. Each has one BLAS thread.
    progress : callable
        Told of every finished cell.
    about : dict
        Machine and versions, recorded beside the results.

    Raises
    ------
    StoreError
        If the file holds results of other settings, is damaged, or is being written to.
    CellError
        If a cell fails. What is finished is kept; running again continues.
    """
    cells = {digest(dict(cell)): cell for cell in experiment.cells}
    path = results_path(experiment, folder)
    settings = {"experiment": experiment.name, **experiment.settings}
    with Store(path, experiment.columns, settings, about) as store:
        todo = {name: cell for name, cell in cells.items() if name not in store.done}
        tell = progress or (lambda progress: None)
        done, work, total = 0.0, sum(map(experiment.cost, todo.values())) or 1.0, len(cells)
        tell(Progress(experiment.name, len(store.done), total, 0.0))
        for name, rows in _compute(experiment, todo, jobs):
            store.append(name, [{**todo[name], **row} for row in rows])
            done += experiment.cost(todo[name])
            tell(Progress(experiment.name, len(store.done & set(cells)), total, done / work, todo[name]))
        store.finish(list(cells))
    return path


_Result = tuple[str, Sequence[Mapping[str, Any]]]


def _compute(experiment: Experiment, todo: Mapping[str, Cell], jobs: int) -> Iterator[_Result]:
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, not {jobs}")
    if jobs == 1 or len(todo) <= 1:
        yield from _compute_here(experiment, todo)
    else:
        yield from _compute_elsewhere(experiment, todo, min(jobs, len(todo)))


def _compute_here(experiment: Experiment, todo: Mapping[str, Cell]) -> Iterator[_Result]:
    for name, cell in todo.items():
        try:
            with threadpool_limits(1):
                rows = experiment.run(cell)
        except Exception as error:
            raise _cell_error(experiment, cell, error) from error
        yield name, rows


def _compute_elsewhere(experiment: Experiment, todo: Mapping[str, Cell], jobs: int) -> Iterator[_Result]:
    """Compute cells in spawned processes, which end with this one or when nobody wants their rows."""
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker, initargs=(watched,))
    waiting = iter(todo.items())
    running: dict[Future, str] = {}
    try:
        # Few are submitted ahead, so that a failure is met soon.
        for name, cell in itertools.islice(waiting, 2 * jobs):
            running[pool.submit(experiment.run, cell)] = name
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                name = running.pop(future)
                yield name, _result(experiment, todo[name], future)
                for following, cell in itertools.islice(waiting, 1):
                    running[pool.submit(experiment.run, cell)] = following
        pool.shutdown()
    except BrokenProcessPool as error:  # from a result or from a submission
        message = "a worker process died (out of memory?); run again with fewer jobs to resume"
        raise CellError(f"{experiment.name}: {message}") from error
    finally:
        held.close()  # the workers see this and end, whatever they are doing
        pool.shutdown(cancel_futures=True)
        watched.close()


def _result(experiment: Experiment, cell: Cell, future: Future) -> Sequence[Mapping[str, Any]]:
    try:
        return future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:
        raise _cell_error(experiment, cell, error) from error


def _cell_error(experiment: Experiment, cell: Cell, error: Exception) -> CellError:
    message = f"{experiment.name}: cell {dict(cell)} failed ({type(error).__name__}: {error})"
    return CellError(f"{message}; the finished cells are kept, run again to resume")


def _begin_worker(watched: multiprocessing.connection.Connection) -> None:
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, args=(watched,), daemon=True).start()


def _end_with_parent(watched: multiprocessing.connection.Connection) -> None:
    """Wait until the other end of the pipe is closed: by the parent, or by its death, even by SIGKILL."""
    try:
        watched.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
