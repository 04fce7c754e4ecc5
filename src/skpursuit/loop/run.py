"""The only loop: budgets, time, status, callback, interrupt, checkpoint.

A solver makes one state from another and knows nothing of clocks, files or callers. `minimize` checks what it
is given and makes a `Run`; the run asks the solver for one step after the other, until the solver says that
it is done or a limit is reached. State and history change together, so that an interrupt leaves the last
whole iteration, and a checkpoint holds all that the next one needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any, cast

import numpy as np

from skpursuit.data import Design, check_finite, is_design, split_target
from skpursuit.guarantees.audit import StepWeigher
from skpursuit.loop import checkpoint as files
from skpursuit.loop.checkpoint import Checkpoint, Snapshot
from skpursuit.loop.complex_numbers import complex_columns, real_problem
from skpursuit.numerics.blas import single_threaded_blas
from skpursuit.numerics.float_range import NonFiniteError
from skpursuit.numerics.sums import safe_norm
from skpursuit.numerics.tuning import CHECKED_TOGETHER, MAX_GUESSES
from skpursuit.parameters import RandomSource, check_flag, check_nonnegative, seed_of, short_repr
from skpursuit.problem.losses import Loss
from skpursuit.problem.problem import Problem, check_targets_range, checked_targets, make_problem
from skpursuit.problem.state import Record, Result, State, Status
from skpursuit.progress import current_monitor, monitoring
from skpursuit.selectors import BoundSelector, Selection, Selector, as_selector
from skpursuit.selectors.base import SelectionOracle
from skpursuit.solvers import Solver, as_solver

CONSISTENCY_TOL = 1e-8  # of ||z|| + ||y|| in predictions, of the objectives here and at zero in the objective
CERTIFICATE_ORDER = ("none", "exact", "heuristic")


def minimize(
    X: object,
    y: object,
    solver: str | Solver,
    selector: str | Selector = "auto",
    loss: str | Loss = "squared",
    *,
    sample_weight: object = None,
    random_state: RandomSource = None,
    callback: Callable[[Record], object] | None = None,
    time_limit: float | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
    verbose: bool = False,
    audit: bool = False,
) -> Result:
    """Find a sparse w that makes sum_i loss(y_i, x_i . w) small.

    Parameters
    ----------
    X : array-like, sparse array, LinearOperator, path or Design of shape (n, d)
        See `as_design` for what it may be.
    y : array-like of shape (n,) or (n, targets), or str
        The name of a column of X on disk is left out of X. Complex where X is: an array or LinearOperator of
        complex numbers, with squared loss and solvers that know `feature_groups`, scores being |x^H r|.
    solver : str or Solver
        The outer algorithm: an object such as ``OMP(n_nonzero_coefs=50)``, or a name such as "omp" for
        default parameters. ``skpursuit info`` lists all names of solvers, selectors and losses.
    selector : str or Selector
        How the top entries of the gradient are found: "auto" (the fastest exact way), "exact", "certified",
        "halving" or another name, or an object with settings of its own.
    loss : str or Loss
        "squared", "logistic", "huber" or another name, or an object.
    sample_weight : array-like of shape (n,), optional
        A row of weight zero is as good as not there.
    random_state : int, Generator or None
        Seed of randomised selectors and solvers.
    callback : callable, optional
        Called with the `Record` of each iteration; the run stops when it returns True.
    time_limit : float, optional
        Seconds after which the run stops with what it has.
    checkpoint : str, Path or Checkpoint, optional
        File to save the run to, on Ctrl-C too, and to go on from if it exists. Codes of X on disk are kept
        beside it.
    verbose : bool
        Whether to say on the standard error stream, from the third second on, how far the run is.
    audit : bool
        Whether to weigh each step against the best one, as `skpursuit.audit` does, for any loss and solver
        that takes one column a step; see `Result.audit`. Of a run that a checkpoint resumed, the steps of
        this call.

    Returns
    -------
    Result

    Examples
    --------
    >>> from skpursuit import OMP, datasets, metrics, minimize
    >>> X, y, w = datasets.make_sparse_signal(200, 400, 5, snr=10.0, random_state=0)
    >>> result = minimize(X, y, OMP(n_nonzero_coefs=5))
    >>> result.status.name, metrics.f_measure(w, result.coef)
    ('COMPLETE', 1.0)
    """
    check_nonnegative("time_limit", time_limit)
    if not (callback is None or callable(callback)):
        raise TypeError(f"callback must be a function or None, got {short_repr(callback)}")
    check_flag("verbose", verbose)
    check_flag("audit", audit)
    if not (checkpoint is None or isinstance(checkpoint, Checkpoint)):
        checkpoint = Checkpoint(checkpoint)
    if checkpoint is not None:
        files.check_writable(Path(checkpoint.path))
    known = is_design(X)
    design, y = split_target(X, y, check=False, is_real=False)
    if checkpoint is not None:
        design.access.store_codes_beside(checkpoint.path)
    if design.is_complex or np.iscomplexobj(cast(Any, y)):
        y, solver, sample_weight = real_problem(design, y, solver, loss, sample_weight)
    y = checked_targets(y, design.shape[0])
    check_targets_range(y)
    with monitoring("minimize", verbose):
        run = make_run(design, y, solver, selector, loss, sample_weight, random_state)
        run.callback, run.time_limit = callback, time_limit
        if audit and (run.solver.asks_for_many or run.solver.contest):
            rule = "take one column a step, the one of the largest gradient"
            raise ValueError(f"audit weighs solvers that {rule}, got {run.solver!r}")
        run.weigher = StepWeigher(run.problem.design) if audit else None
        run.bytes_before = run.bytes_before if known else 0
        if checkpoint is not None:
            run.resume(checkpoint, seeded=isinstance(random_state, (int, np.integer)))
        run.execute()
        return run.result()


@single_threaded_blas()
def make_run(
    design: Design,
    y: object,
    solver: str | Solver,
    selector: str | Selector,
    loss: str | Loss,
    sample_weight: object = None,
    random_state: RandomSource = None,
) -> Run:
    """A run that is checked and ready to go; parameters as in `minimize`."""
    solver, chosen, seed = as_solver(solver), as_selector(selector), seed_of(random_state)
    base, before = design.for_run(), design.access.file_bytes
    solver = solver.for_design(base)
    problem = make_problem(base, y, loss, sample_weight, solver.ridge)
    expect = solver.workload(problem)
    if expect.contest and not chosen.answers_contests:
        offer = "use 'exact', 'gram', 'certified', 'auto' or 'halving'"
        asked = "complex X" if base.is_complex else expect.contest
        raise ValueError(f"{asked} needs a selector that compares more than single columns; {offer}")
    if not base.in_memory:  # columns of the support, and residuals that are guessed
        base.limit.reserve(8 * base.shape[0] * (expect.n_columns + MAX_GUESSES))
    try:
        bound = chosen.bind(problem.design, expect)
    except Exception:  # prefer the error that names the non-finite column; an interrupt waits for no pass
        check_finite(base)
        raise
    check_finite(base)
    return Run(problem, solver, chosen, bound, seed, before)


class LazyGenerator:
    """A random generator that is made when it is first asked for something: most runs never ask."""

    def __init__(self, seed: list[int]) -> None:
        self._seed = seed

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # what copying and pickling look for belongs to this object
            raise AttributeError(name)
        if "_made" not in self.__dict__:
            self._made = np.random.default_rng(self._seed)
        return getattr(self._made, name)


@dataclass
class Run:
    """One run of the loop: the only mutable thing, and it lives as long as the call."""

    problem: Problem
    solver: Solver
    selector: Selector
    bound: BoundSelector
    seed: int
    bytes_before: int  # that were read from files before this run
    callback: Callable[[Record], object] | None = None
    time_limit: float | None = None
    weigher: StepWeigher | None = None
    state: State = field(init=False)
    begun: State = field(init=False)
    history: list[Record] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    fingerprints: dict[str, str] = field(default_factory=dict)
    stop_status: Status | None = None
    final_selections: list[Selection] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.begun = self.solver.init(self.problem)

    @single_threaded_blas()
    def execute(self) -> None:
        """Iterate until something stops the run."""
        for _ in self.iterate():
            pass

    def iterate(self) -> Iterator[State]:
        """Yield the state after each iteration; ask for it inside `single_threaded_blas`."""
        self.last_saved, watch = time.perf_counter(), current_monitor()
        limits = [None if self.time_limit is None else self.last_saved + self.time_limit, watch.end]
        self.deadline, self.notes = min(end for end in (*limits, inf) if end is not None), watch.notes
        self.most_iterations = self.solver.max_iterations(self.problem)
        try:
            while self.stop_status is None and self.state.status is None:
                done = len(self.history)
                if done >= self.most_iterations:
                    self.stop_status = Status.MAX_ITER
                else:
                    late = time.perf_counter() >= self.deadline
                    self.stop_status = Status.TIME_LIMIT if late else self._iterate()
                if self.checkpoint and time.perf_counter() - self.last_saved >= self.checkpoint.interval:
                    self._save()
                if len(self.history) > done:
                    yield self.state
        finally:  # Ctrl-C included: the last whole iteration is kept
            self._save()
        if self.stop_status is Status.TIME_LIMIT:
            watch.out_of_time()  # it was this limit, or our own
        else:
            asking = SelectionOracle(self.bound, self.state.selector_memory)
            with np.errstate(over="ignore", invalid="ignore"):  # not saved: a longer run may go on
                self.state = asking.count_reads(lambda: self.solver.finalize(self.problem, self.state))
            self.final_selections = asking.answers

    def _iterate(self) -> Status | None:
        """One iteration; the state and the history change together, or not at all."""
        iteration, began = len(self.history), time.perf_counter()
        rng = cast(np.random.Generator, LazyGenerator([self.seed, iteration]))
        asking = SelectionOracle(self.bound, self.state.selector_memory, self.weigher is not None)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # a run ends at what is not finite anyway
                after = self.solver.step(self.problem, self.state, asking, rng)
            finite = isfinite(after.objective) and isfinite(after.coef.sum())
        except NonFiniteError:
            finite = False
        if not finite:
            self.state = self.solver.fallback_state(self.problem, self.state)
            return Status.DIVERGED
        answers, seconds = asking.answers, time.perf_counter() - began
        selected = tuple(j for answer in answers for j in answer.columns.tolist())
        selected = tuple(complex_columns(selected).tolist()) if self.problem.design.is_complex else selected
        read = sum(answer.entries_read for answer in answers), sum(answer.bytes_read for answer in answers)
        weakest = max((one.certificate for one in answers), key=CERTIFICATE_ORDER.index, default="none")
        gap = None if "gap" not in after.memory else float(after.memory["gap"])
        record = Record(iteration, after.objective, selected, *read, weakest, seconds, gap)
        if after.selector_memory is not asking.memory:
            after = replace(after, selector_memory=asking.memory)
        self.state = after
        self.history.append(record)
        if self.weigher is not None and asking.last is not None and len(asking.last[1].columns):
            self.weigher.add(asking.last[0], int(asking.last[1].columns[0]))
        self.notes[:] = "iteration {}, {} coefficients", iteration + 1, len(after.support)
        answer = None if self.callback is None else self.callback(record)
        return Status.CALLBACK if isinstance(answer, (bool, np.bool_)) and answer else None

    def result(self) -> Result:
        """The outcome for the caller; predictions and objective must be those of the coefficients."""
        state, problem = self._not_above_start(), self.problem
        consistent, objective = check_consistency(problem, state)
        status = state.status if consistent else Status.INCONSISTENT
        answers: list[Record | Selection] = [*self.history, *self.final_selections]
        coef = np.zeros((problem.design.shape[1], *problem.target_shape))
        coef[state.support] = state.coef
        if problem.design.is_complex:
            coef = coef[::2] + 1j * coef[1::2]
            columns = [complex_columns(part.tolist()) for part in (state.support, state.dropped)]
            state = replace(state, support=columns[0], dropped=columns[1])
        return Result(
            coef=coef,
            support=state.support,
            status=status or self.stop_status or Status.COMPLETE,
            n_iter=len(self.history),
            objective=objective,
            entries_read=sum(answer.entries_read for answer in answers),
            bytes_read=sum(answer.bytes_read for answer in answers),
            prepared_bytes=problem.design.reads.prepared_bytes,
            history=self.history,
            dropped=state.dropped,
            selector=self.bound.describe(),
            stored_bytes=problem.design.reads.stored_bytes,
            file_bytes=problem.design.access.file_bytes - self.bytes_before,
            audit=None if self.weigher is None else self.weigher.audit(self.history, self.solver.radius),
        )

    def _not_above_start(self) -> State:
        """The last state; where a run is done above its own start, its best iterate or the start instead."""
        state, begun = self.state, self.begun
        if self.stop_status is not None or not (state.status or Status.COMPLETE).ok:
            return state
        reached, limit = map(self.problem.penalized_objective, (state, begun))
        slack = CONSISTENCY_TOL * (abs(reached) + abs(limit)) + float(state.memory.get("gap", 0.0))
        if reached <= limit + slack:
            return state
        best = self.solver.fallback_state(self.problem, state)
        return replace(best if best.objective <= begun.objective else begun, status=Status.DIVERGED)

    # -- checkpoints --------------------------------------------------------------------------------

    @single_threaded_blas()
    def resume(self, checkpoint: Checkpoint, seeded: bool = False) -> None:
        """Go on from the checkpoint's file if it is there, and save to it from now on.

        Draws go on as they began; `seeded` says that a seed was given, which must then be the same.
        """
        path = Path(checkpoint.path)
        self.fingerprints = {
            "X": self.problem.design.data_fingerprint(),
            "y": files.fingerprint(self.problem.y),
            "solver": files.fingerprint(self.solver),
            "selector": files.fingerprint(self.selector),
            "loss": files.fingerprint(self.problem.loss),
        }
        if self.problem.weights is not None:
            self.fingerprints["sample_weight"] = files.fingerprint(self.problem.weights)
        if path.exists():
            saved = files.load_snapshot(path)
            files.check_fingerprints(path, saved.fingerprints, self.fingerprints)
            if seeded:
                seeds = {"random_state": str(saved.seed)}, {"random_state": str(self.seed)}
                files.check_fingerprints(path, *seeds)
            self.state = files.restore_state(path, saved, self.state, self.problem, self.bound)
            self.history, self.seed = saved.history, saved.seed
        self.checkpoint = checkpoint

    def _save(self) -> None:
        if self.checkpoint is not None:
            snapshot = Snapshot(self.state, list(self.history), self.seed, self.fingerprints)
            files.save_snapshot(Path(self.checkpoint.path), snapshot)
            self.last_saved = time.perf_counter()


def check_consistency(problem: Problem, state: State) -> tuple[bool, float]:
    """Whether z and the objective of a state are those of its coefficients, and the objective that is."""
    # Solvers move coefficients, predictions z and the objective side by side, each by its own cheap update. A
    # mistake in one of them, or digits that near-dependent columns lose, would let a result report an
    # objective that its coefficients do not reach. So a run ends with one product, X_S w_S.
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # what is not finite differs
        z = np.zeros_like(state.z)
        for start in range(0, len(state.support), CHECKED_TOGETHER):
            part = slice(start, start + CHECKED_TOGETHER)
            z += problem.design.predict(state.support[part], state.coef[part])
        objective = problem.value(z)
        difference, *sizes = (safe_norm(part.ravel()) for part in (state.z - z, z, problem.y))
        good = isfinite(difference) and difference <= CONSISTENCY_TOL * sum(sizes)
        if state.objective != objective:
            size = abs(objective) + abs(problem.value(np.zeros_like(z)))
            good &= isfinite(size) and abs(state.objective - objective) <= CONSISTENCY_TOL * size
        return good, objective
