"""Selectors, and how a run asks them.

A solver asks which entries of X^T r are largest (`Query`) and gets columns (`Selection`, both in `query.py`).
Between the two lies a selector, bound to a design and to what the solver expects: `selector.bind(design,
expect)` makes codes, layouts and stores of column sums, and gives a `BoundSelector` that answers query after
query. How estimates become decisions is in `top_k.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np

from skpursuit.data import Design, as_design
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.numerics.error_bounds import Estimate
from skpursuit.numerics.float_range import NonFiniteError
from skpursuit.numerics.tuning import CACHE, COSTS, NANO, SPARSE_SHARE
from skpursuit.selectors.query import NO_MEMORY, Memory, Query, Selection, Workload
from skpursuit.selectors.top_k import exact_selection

if TYPE_CHECKING:
    from skpursuit.selectors.gram import GramGradient
    from skpursuit.selectors.speculation import SpeculativePursuit

Round = tuple[float, Indices, Floats]
Found = TypeVar("Found")


class Selector(ABC):
    """A way to find the top entries of X^T r. Subclasses are frozen dataclasses.

    A simple one gives `find`. One that remembers, or adds up products of columns, gives `find_with_memory` as
    well.
    """

    random_access: ClassVar[str] = ""  # "rows" or "entries", where it reads these of X at random
    answers_contests: ClassVar[bool] = False  # queries whose score is a contest (`contests.py`)
    #: a method (design, query) that yields the rounds in which columns compete, for `skpursuit.plots`: the
    #: rows read so far, the columns that are left, and their estimates of X^T r; None where there are none
    rounds: ClassVar[Callable[..., Iterator[Round]] | None] = None

    def select(self, design: Design, query: Query) -> Selection:
        """Answer a single query, on an X that is what it was when the design was made.

        Raises `NonFiniteError` where there is no answer because r or the column norms are not finite.
        """
        as_design(design)
        with np.errstate(over="ignore", invalid="ignore"):  # bounds become infinite, which settles nothing
            return BoundSelector(self, design).select(query)

    def bind(self, design: Design, expect: Workload) -> BoundSelector:
        """Make what is kept on the design for all queries (codes, layouts, norms), and be ready for them."""
        if self.random_access:
            design.prepare_access(self.random_access)
        return BoundSelector(self, design)

    def encodes(self, design: Design, expect: Workload) -> bool | None:
        """Whether `bind` makes codes of X with a second byte (True) or without (False); None: no codes."""
        return None

    def find_with_memory(self, bound: BoundSelector, query: Query, memory: Memory) -> Selection:
        """Answer one query of a run, given the memory of the answer before it, or an empty one."""
        return self.find(bound.design, query)

    @abstractmethod
    def find(self, design: Design, query: Query) -> Selection:
        """Find the top entries; reading is counted by the design.

        Scores that are NaN may raise `NonFiniteError`; an answer that is not finite is not used.
        """

    def accepts_memory(self, design: Design, memory: Memory, targets: tuple[int, ...]) -> bool:
        """Whether a memory that was read from a file has the form of one that `find_with_memory` gives."""
        return True

    def predict_seconds(self, design: Design, expect: Workload) -> float:
        """Predicted seconds for all queries of a run; infinity where `auto` must not choose it."""
        return inf

    @property
    def plot_title(self) -> str:
        """What stands above a picture of its rounds."""
        return type(self).__name__


@dataclass(frozen=True)
class Exact(Selector):
    """Compute X^T r and take its top entries, ties to the lowest index.

    The baseline of every speed figure.

    Examples
    --------
    >>> import numpy as np
    >>> from skpursuit import Exact, as_design
    >>> from skpursuit.selectors import Query
    >>> Exact().select(as_design(np.eye(3)), Query(np.array([1.0, -5.0, 2.0]))).columns
    array([1])
    """

    answers_contests: ClassVar[bool] = True

    def find(self, design: Design, query: Query) -> Selection:
        return exact_selection(design, query)

    def predict_seconds(self, design: Design, expect: Workload) -> float:
        before = design.access.pass_seconds + design.access.sweep_seconds(expect.n_columns)  # norms, columns
        return before + expect.n_queries * product_seconds(design, expect.n_targets)


def product_seconds(design: Design, residuals: int = 1) -> float:
    """Predicted seconds of X^T r for so many residuals at once."""
    entries, nbytes = design.cost()
    if design.has_codes:
        one = nbytes * (COSTS.byte if nbytes > CACHE else COSTS.cached_byte) * NANO + 5e-6
        times = COSTS.multi_residual + COSTS.per_residual * residuals
    else:
        one = entries * COSTS.sparse_entry * NANO + 2e-5
        times = SPARSE_SHARE * residuals
    return (one if residuals == 1 else one * times) + design.access.pass_seconds


class BoundSelector:
    """A selector at work on one design, with what it made for the queries of a run."""

    def __init__(self, selector: Selector, design: Design) -> None:
        self.selector, self.design = selector, design
        self.auto_reason = ""  # why `auto` chose the selector, if it did
        self.gram_gradient: GramGradient | None = None  # gradients known more cheaply than by reading X
        self.speculation: SpeculativePursuit | None = None  # answers to several steps, made together
        self.fine = False  # whether a second byte of the codes was made beforehand

    def describe(self) -> str:
        """One line for `Result.selector`."""
        return f"auto: {self.selector!r}, {self.auto_reason}" if self.auto_reason else repr(self.selector)

    def select(self, query: Query, memory: Memory | None = None) -> Selection:
        """Answer one query, a single one if no memory is given, and say what was read.

        Raises `NonFiniteError` where numbers left the float range on the way.
        """
        reads = self.design.reads
        entries, nbytes = reads.entries, reads.bytes
        if memory is None:
            found = self.selector.find(self.design, query)
        else:
            found = self.selector.find_with_memory(self, query, memory)
        if not isfinite(found.gradient.sum()):
            raise NonFiniteError("X^T r has no largest entry: r, or a product with it, is not finite")
        return found._replace(
            certificate=found.certificate if len(found.columns) else "none",
            entries_read=reads.entries - entries,
            bytes_read=reads.bytes - nbytes,
        )


class SelectionOracle:
    """What one step calls to ask its selector.

    The selector's memory belongs to one transition: the step is given that of the state it starts from, and
    its last answer has that of the state it leads to. A step that did not ask leaves none.
    """

    def __init__(self, bound: BoundSelector, given: Memory, audited: bool = False) -> None:
        self.bound, self.given, self.audited = bound, given, audited  # each query is looked at afterwards
        self.memory: Memory = NO_MEMORY
        self.answers: list[Selection] = []
        self.last: tuple[Query, Selection] | None = None  # what the step was decided by

    def __call__(self, query: Query) -> Selection:
        answer = self.take(self.bound.select(query, self.given))
        self.last = query, answer
        return answer

    def take(self, answer: Selection) -> Selection:
        """Count an answer as that of the selector."""
        self.given = self.memory = answer.memory
        self.answers.append(answer)
        return answer

    def select_exactly(self, query: Query) -> Selection:
        """The exact answer, where a solver has to be sure of it."""
        answer = BoundSelector(Exact(), self.bound.design).select(query)
        self.answers.append(answer)
        self.last = query, answer
        return answer

    def known_gradient(self, query: Query) -> Estimate | None:
        """X^T r, where the selector knows it without reading X."""
        sums = self.bound.gram_gradient
        known = None if sums is None else self.count_reads(lambda: sums.evaluate(query, self.given))
        self.memory = self.given if known is None else known.memory
        return None if known is None else known.estimate

    def gram_column(self, j: int, query: Query) -> Floats:
        """X^T x_j, made with those that the last answer makes likely."""
        assert self.bound.gram_gradient is not None
        return self.bound.gram_gradient.column(j, np.array([j]), self.memory["xtz"], query.score)

    def count_reads(self, look: Callable[[], Found]) -> Found:
        """What a look at X outside a query gives, its reads counted like those of an answer."""
        reads = self.bound.design.reads
        entries, nbytes = reads.entries, reads.bytes
        found = look()
        read = reads.entries - entries, reads.bytes - nbytes
        self.answers.append(Selection(NO_COLUMNS, np.empty(0), "exact", *read))
        return found
