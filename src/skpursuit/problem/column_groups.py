"""Groups of columns that enter a model together: the levels of a variable, the lags of a signal."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skpursuit.data.design import Design
from skpursuit.data.options import column_indices
from skpursuit.numerics.arrays import NO_COLUMNS, Floats, Indices
from skpursuit.parameters import check_groups

MISSING = ("None", "nan", "NaN", "NaT", "<NA>")  # what labels that are not there look like


@dataclass(frozen=True, eq=False, repr=False)
class ColumnGroups:
    """A partition of columns: the group of each, numbered in the order of their first columns."""

    labels: Indices

    def __repr__(self) -> str:
        digest = hashlib.sha256(self.labels.astype(np.int64).tobytes()).hexdigest()[:16]
        return f"ColumnGroups({len(self.sizes)} groups, {digest})"

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def sizes(self) -> Indices:
        """The number of columns of each group."""
        return np.bincount(self.labels)

    @cached_property
    def _order(self) -> Indices:
        return np.argsort(self.labels, kind="stable")

    def columns(self, groups: Indices) -> Indices:
        """The columns of some groups, one group after the other."""
        ends = np.cumsum(self.sizes)[groups]
        parts = [self._order[end - size : end] for end, size in zip(ends, self.sizes[groups])]
        return np.concatenate([NO_COLUMNS, *parts])

    def of(self, columns: Indices) -> Indices:
        """The groups of some columns, ascending."""
        return np.unique(self.labels[columns])

    def whole(self, columns: Indices) -> Indices:
        """The groups of which all columns are among these."""
        return np.flatnonzero(np.bincount(self.labels[np.unique(columns)], minlength=len(self)) == self.sizes)

    def scores(self, sizes: Floats, columns: Indices | None = None) -> Floats:
        """The root of the mean square of the sizes in each group: of all columns, or of those given.

        The mean is over all columns of a group. Dividing by powers of two rounds nothing, so that groups of
        one keep their sizes and ties stay ties.
        """
        order, counts, whole = self._order, self.sizes, self.sizes
        if columns is not None:
            order = np.argsort(self.labels[columns], kind="stable")
            labels, counts = np.unique(self.labels[columns], return_counts=True)
            whole = self.sizes[labels]
        starts = np.cumsum(counts) - counts
        if len(starts) == 0:
            return np.empty(0)
        ordered = sizes[order]
        top = np.maximum.reduceat(ordered, starts)
        power = np.frexp(np.where(np.isfinite(top), top, 1.0))[1]
        scaled = np.ldexp(ordered, -np.repeat(power, counts))
        means = np.add.reduceat(scaled * scaled, starts) / whole
        return np.ldexp(np.sqrt(means), power)

    def with_constant(self) -> ColumnGroups:
        """The same with one more column, a group of its own."""
        return ColumnGroups(np.append(self.labels, len(self)))


def read_groups(given: Any, design: Design) -> ColumnGroups:
    """The groups of columns from a label for each, or from lists of columns; others are alone.

    The constant column of a design is none of them, and a group of its own.
    """
    d, names = design.shape[1] - (design.constant is not None), design.names
    if isinstance(given, ColumnGroups):
        groups = given
    else:
        check_groups("feature_groups", given)
        numbers: dict[Hashable, int] = {}
        labels = [numbers.setdefault(one, len(numbers)) for one in _labels(given, d, names)]
        groups = ColumnGroups(np.array(labels))
    return groups if len(groups.labels) == design.shape[1] else groups.with_constant()


def _labels(given: Any, d: int, names: list[str] | None) -> Iterable[Hashable]:
    """A label for each of d columns."""
    listed = [isinstance(one, Collection) and not isinstance(one, (str, bytes)) for one in given]
    if not any(listed):
        if len(listed) != d:
            raise ValueError(f"feature_groups has {len(listed)} labels but X has {d} columns; give each one")
        missing = next((one for one in map(str, given) if one in MISSING), None)
        if missing is not None:
            raise ValueError(f"feature_groups holds {missing}; give every column a label")
        return list(given)
    if not all(listed):
        raise TypeError("feature_groups mixes lists of columns with single ones; write a list for each group")
    labels = np.full(d, -1)
    for number, group in enumerate(given):
        columns = column_indices("feature_groups", group, d, names)
        if not columns:
            raise ValueError(f"feature_groups has an empty list in place {number}; leave it out")
        for j in columns:
            if labels[j] >= 0:
                name = j if names is None else repr(names[j])
                raise ValueError(f"feature_groups names column {name} twice; groups must not overlap")
            labels[j] = number
    alone = np.flatnonzero(labels < 0)
    labels[alone] = len(given) + np.arange(len(alone))
    return labels.tolist()
