"""Blocks of rows of a delimited file, and two ways to take them apart: by csv, or by a compiled kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from .spelling import is_plain, to_number


class Block(Protocol):
    """Some rows of a file, all of the same width."""

    n_rows: int

    def texts(self, cols: list[int]) -> list[Sequence[str]]:
        """Return the fields of some columns."""

    def numbers(self, cols: list[int]) -> list[np.ndarray | None]:
        """Return some columns as numbers, NaN where missing; None for those that hold anything else."""


class Records:
    """Rows that csv has taken apart."""

    def __init__(self, rows: Sequence[list[str]]):
        self.columns = list(zip(*rows))
        self.n_rows = len(rows)

    def texts(self, cols: list[int]) -> list[Sequence[str]]:
        return [self.columns[j] for j in cols]

    def numbers(self, cols: list[int]) -> list[np.ndarray | None]:
        return [_numbers(self.columns[j]) for j in cols]


class Lines:
    """Lines without quotes: csv would do no more than split them."""

    def __init__(self, lines: list[str], delimiter: str, width: int):
        self.lines = lines
        self.delimiter = delimiter
        self.width = width
        self.n_rows = len(lines)

    def texts(self, cols: list[int]) -> list[Sequence[str]]:
        # Lines are split only as far as needed, from the nearer end.
        left, right = max(cols) + 1, self.width - min(cols)
        ended = (line.rstrip("\r\n") for line in self.lines)
        if left <= right:
            rows = [line.split(self.delimiter, left) for line in ended]
            return [[row[j] for row in rows] for j in cols]
        rows = [line.rsplit(self.delimiter, right) for line in ended]
        return [[row[j - self.width] for row in rows] for j in cols]

    def numbers(self, cols: list[int]) -> list[np.ndarray | None]:
        from skpursuit.kernels.decimals import powers_of_ten, read_lines

        values = np.empty((len(cols), self.n_rows))
        place = np.full(self.width, -1)
        place[cols] = np.arange(len(cols))
        text = np.frombuffer("".join(self.lines).encode("utf-8", "replace"), dtype=np.uint8)
        read_lines(text, ord(self.delimiter), place, powers_of_ten(), values)
        return self._settle(cols, values)

    def _settle(self, cols: list[int], values: np.ndarray) -> list[np.ndarray | None]:
        """Look at what the kernel left open: missing values, unusual spellings, text."""
        columns: list[np.ndarray | None] = list(values)
        open_cells = np.isnan(values)
        for row in np.flatnonzero(open_cells.any(axis=0)).tolist():
            fields = self._fields(self.lines[row])
            for i in np.flatnonzero(open_cells[:, row]).tolist():
                number = to_number(fields[cols[i]])
                if number is None:
                    columns[i] = None
                    open_cells[i] = False  # not worth another look
                else:
                    values[i, row] = number
        return columns

    def _fields(self, line: str) -> list[str]:
        return line.rstrip("\r\n").split(self.delimiter)


def _numbers(fields: Sequence[str]) -> np.ndarray | None:
    if is_plain("".join(fields)):
        with contextlib.suppress(ValueError):
            return np.fromiter(map(float, fields), np.float64, len(fields))
    values = [to_number(field) for field in fields]
    return None if None in values else np.array(values, dtype=np.float64)
