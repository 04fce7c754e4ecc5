"""ARFF files, dense and sparse, with numeric, nominal and string attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from scipy.sparse import csr_array

from .columns import Column, Columns, ReadOptions, different
from .errors import Refused, show
from .source import examine
from .spelling import parse_number

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.I | re.S)
_TOKEN = re.compile(r"""((?:[^,'"\\]|\\.|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*)(,|$)""", re.S)
_SPARSE_ITEM = re.compile(r"\s*(\d+)\s+(.+)", re.S)
_NUMBERS = ("numeric", "real", "integer")


@dataclass(frozen=True)
class _Attribute:
    """One column: numbers where ``labels`` is None, any text where they are empty."""

    name: str
    labels: tuple[str, ...] | None = None

    def value(self, text: str) -> float | str | None:
        """Return a number or a label, None if missing; ValueError for anything else."""
        if text == "?":
            return None
        if self.labels is None:
            try:
                return parse_number(text)
            except ValueError:
                raise ValueError(f"attribute {show(self.name)}: {show(text)} is not a number") from None
        label = _unquote(text)
        if self.labels and label not in self.labels:
            raise ValueError(f"attribute {show(self.name)}: {show(text)} is not one of the declared values")
        return label

    def column(self, rows: list[dict[int, Any]], j: int) -> Column:
        """Return a column of rows; a sparse one may leave out a number or a label, but not a string."""
        if self.labels == () and (short := [i for i, row in enumerate(rows, start=1) if j not in row]):
            problem = (
                f"row {short[0]} leaves out the string {show(self.name)}, which a sparse file must write"
            )
            raise Refused(problem, "write it (? if missing)")
        absent = self.labels[0] if self.labels else 0.0
        kind = pyarrow.float64() if self.labels is None else pyarrow.string()
        return Column(pyarrow.array([row.get(j, absent) for row in rows], kind))


def read_arff(path: Path, options: ReadOptions) -> Columns:
    """Read an ARFF file; a nominal attribute {0,1} is a number, any other attribute that is none a text."""
    lines = (
        (number, line.strip())
        for number, line in enumerate(examine(path, options.text_encoding).lines(), start=1)
        if line.strip() and not line.strip().startswith("%")
    )
    attributes = _read_header(lines)
    names = different(attribute.name for attribute in attributes)
    rows, sparse = _read_data(lines, attributes)
    inside = [j for j, attribute in enumerate(attributes) if sparse and attribute.labels is None]
    raw = {names[j]: attributes[j].column(rows, j) for j in range(len(names)) if j not in set(inside)}
    if not sparse:
        return Columns(str(path), raw)
    place = {j: new for new, j in enumerate(inside)}
    entries = [(i, place[j], cell) for i, row in enumerate(rows) for j, cell in row.items() if j in place]
    i, j, cells = zip(*entries) if entries else ((), (), ())
    matrix = csr_array((np.array(cells, dtype=np.float64), (i, j)), shape=(len(rows), len(inside)))
    return Columns(str(path), raw, tuple(names[j] for j in inside), matrix)


def _read_header(lines: Iterator[tuple[int, str]]) -> list[_Attribute]:
    attributes: list[_Attribute] = []
    for number, text in lines:
        keyword = text.split(None, 1)[0].lower()
        if keyword == "@data" and attributes:
            return attributes
        if keyword == "@attribute":
            attributes.append(_attribute(number, text))
        elif keyword not in ("@relation", "@data"):
            raise Refused(f"line {number} is not part of an ARFF header: {show(text)}", "correct it")
    problem = "there is no @data line after @attribute lines, so this is not a whole ARFF file"
    raise Refused(problem, "get the whole file again, or correct its extension")


def _attribute(number: int, text: str) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise Refused(f"line {number}: cannot understand {show(text)}", "write @attribute NAME TYPE")
    name, kind = _unquote(match[1]), match[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        labels = tuple(_unquote(token) for token in _split(kind[1:-1]))
        return _Attribute(name, None if labels == ("0", "1") else labels)
    return _Attribute(name, None if kind.lower() in _NUMBERS else ())  # strings, dates and the like


def _read_data(
    lines: Iterator[tuple[int, str]], attributes: list[_Attribute]
) -> tuple[list[dict[int, Any]], bool]:
    """Return the values of each row by the number of their attribute, and whether the file is sparse."""
    rows: list[dict[int, Any]] = []
    sparse = None
    for number, text in lines:
        try:
            if sparse not in (None, text.startswith("{")):
                raise ValueError("dense and sparse rows are mixed")
            sparse = text.startswith("{")
            items = dict(_sparse_items(text, len(attributes)) if sparse else enumerate(_split(text)))
            if not sparse and len(items) != len(attributes):
                raise ValueError(f"{len(items)} values where {len(attributes)} attributes are declared")
            rows.append({j: attributes[j].value(token) for j, token in items.items()})
        except ValueError as error:
            raise Refused(f"line {number}: {error}", "correct that line, or get the whole file") from None
    return rows, bool(sparse)


def _sparse_items(text: str, width: int) -> Iterator[tuple[int, str]]:
    if not text.endswith("}"):
        raise ValueError("the row has no closing brace")
    last = -1
    for token in _split(text[1:-1]) if text[1:-1].strip() else []:
        match = _SPARSE_ITEM.fullmatch(token)
        if match is None:
            raise ValueError(f"{show(token)} is not INDEX VALUE")
        if not last < int(match[1]) < width:
            raise ValueError(f"index {match[1]} is out of order or beyond the {width} attributes")
        last = int(match[1])
        yield last, match[2].strip()


def _split(text: str) -> list[str]:
    """Split at commas outside quotes."""
    if "'" not in text and '"' not in text:
        return [token.strip() for token in text.split(",")]
    tokens, position = [], 0
    while match := _TOKEN.match(text, position):
        tokens.append(match[1].strip())
        position = match.end()
        if not match[2]:
            return tokens
    raise ValueError("a quote is not closed")


def _unquote(token: str) -> str:
    token = token.strip()
    if len(token) >= 2 and token[0] == token[-1] and token[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    return token
