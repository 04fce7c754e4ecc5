"""From rows to what is drawn: means over trials, and speeds against a baseline of the same problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median
from typing import Any

from .methods import LABELS
from .parts import Series
from .store import Row

PROBLEM = ("n", "d", "k", "trial", "first")
SPLIT = ("collection", "split")  # of text, where k is part of the answer


def methods_of(rows: Iterable[Row]) -> list[str]:
    """The methods that occur, in the order of `LABELS`, those that are not there at the end."""
    found = dict.fromkeys(str(row["method"]) for row in rows)
    return [*(m for m in LABELS if m in found), *(m for m in found if m not in LABELS)]


def pick(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows with given values; a callable is a test."""
    return [
        row
        for row in rows
        if all(v(row.get(k)) if callable(v) else row.get(k) == v for k, v in wanted.items())
    ]


def mean(rows: Iterable[Row], name: str) -> float | None:
    """The mean of a column, None if it is empty."""
    values = numbers(rows, name)
    return fmean(values) if values else None


def middle(values: Sequence[float], name: str) -> float:
    """The mean; of times the median, since one disturbed run would outweigh all others."""
    return median(values) if name == "seconds" else fmean(values)


def numbers(rows: Iterable[Row], name: str) -> list[float]:
    """The values of a column that are there."""
    return [float(row[name]) for row in rows if row.get(name) is not None]  # type: ignore[arg-type]


def ratios(rows: Sequence[Row], baseline: Sequence[Row]) -> list[float]:
    """How many times faster each row is than the baseline's row of the same problem.

    Times of 0 are left out: some systems count in steps that are longer than a small problem takes.
    """
    base = dict(_times(baseline))
    return [base[key] / seconds for key, seconds in _times(rows) if key in base]


def _times(rows: Iterable[Row]) -> list[tuple[Any, float]]:
    return [(_problem(row), float(row["seconds"])) for row in rows if row["seconds"]]


def speed(rows: Sequence[Row], baseline: Sequence[Row]) -> float | None:
    """The median of `ratios`."""
    found = ratios(rows, baseline)
    return median(found) if found else None


def shared(rows: Sequence[Row], rare: str = "reject") -> list[Row]:
    """Rows of the problems that all methods have been run on, so that their means can be compared.

    A run that was stopped leaves some methods with more problems than others. Methods that are run on few
    problems by design (`rare`) do not count. Without any such problem all rows are returned.
    """
    needed = {row["method"] for row in rows} - {rare}
    done: dict[tuple[Any, ...], set[Any]] = {}
    for row in rows:
        done.setdefault(_problem(row), set()).add(row["method"])
    whole = [row for row in rows if needed <= done[_problem(row)]]
    return whole or list(rows)


def weighted(rows: Sequence[Row], name: str) -> float | None:
    """The mean over pieces of a column that holds means over cells."""
    pairs = [(float(row["count"]), float(row[name])) for row in rows if row.get(name) is not None]  # type: ignore[arg-type]
    total = sum(count for count, _ in pairs)
    return sum(count * value for count, value in pairs) / total if total else None


def places(rows: Iterable[Row], x: str) -> list[float]:
    """The values of a column that occur, ascending."""
    return sorted(set(numbers(rows, x)))


def _problem(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in (SPLIT if "collection" in row else PROBLEM))


def lines(
    rows: Sequence[Row], x: str, y: str, scale: float = 1.0, methods: Sequence[str] | None = None
) -> list[Series]:
    """One line per method: the middle of the trials, and a band from the lowest to the highest."""
    drawn = []
    for method in methods or methods_of(rows):
        own = pick(rows, method=method)
        xs = places(own, x)
        groups = [[scale * v for v in numbers(pick(own, **{x: place}), y)] for place in xs]
        if any(groups):
            drawn.append(_line(method, xs, groups, y))
    return drawn


def flat(
    rows: Sequence[Row], xs: Sequence[float], y: str, methods: Sequence[str], scale: float = 1.0
) -> list[Series]:
    """Methods that have no setting: the same value everywhere."""
    found = {method: numbers(pick(rows, method=method), y) for method in methods}
    values = {method: middle(group, y) if group else None for method, group in found.items()}
    return [
        Series(method, list(xs), [scale * value] * len(xs))
        for method, value in values.items()
        if value is not None
    ]


def _line(name: str, xs: list[float], groups: list[list[float]], y: str) -> Series:
    def each(of: Callable[[list[float]], float]) -> list[float | None]:
        return [of(group) if group else None for group in groups]

    spread = any(len(group) > 1 for group in groups)
    return Series(
        name,
        xs,
        each(lambda group: middle(group, y)),
        each(min) if spread else (),
        each(max) if spread else (),
    )
