"""ARFF files, dense and sparse, with numeric, nominal and string attributes."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow
from scipy.sparse import csc_array, csr_array

from .columns import Columns, ReadOptions, different
from .errors import TableError, show
from .source import open_lines
from .spelling import parse_number

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.I | re.S)
_TOKEN = re.compile(r"""((?:[^,'"\\]|\\.|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*)(,|$)""", re.S)
_SPARSE_ITEM = re.compile(r"\s*(\d+)\s+(.+)", re.S)
_NUMBERS = ("numeric", "real", "integer")


def read_arff(path: Path, options: ReadOptions) -> Columns:
    """Read an ARFF file; a nominal attribute {0,1} is a number, any other attribute that is none a text."""
    lines = enumerate(open_lines(path, options.text_encoding), start=1)
    attributes = _read_header(path, lines)
    for attribute, name in zip(attributes, different(attribute.name for attribute in attributes)):
        attribute.name = name
    table = _read_data(path, lines, attributes)
    numeric = [j for j, attribute in enumerate(attributes) if attribute.labels is None]
    matrix = table[:, numeric]
    return Columns(
        str(path),
        {a.name: a.texts(path, _column(table, j)) for j, a in enumerate(attributes) if a.labels is not None},
        tuple(attributes[j].name for j in numeric),
        csr_array(matrix) if isinstance(matrix, csc_array) else np.ascontiguousarray(matrix),
    )


@dataclass
class _Attribute:
    """One column: numbers where ``labels`` is None; else codes, with room for new labels if ``open``.

    The codes of an open column begin at 1, so that the zeros of a sparse file are none of them.
    """

    name: str
    labels: dict[str, int] | None = None
    open: bool = False

    def value(self, text: str) -> float:
        """Return a number or the code of a label, NaN if missing; ValueError for anything else."""
        if text == "?":
            return np.nan
        if self.labels is None:
            return parse_number(text)
        label = _unquote(text)
        if self.open:
            return self.labels.setdefault(label, len(self.labels) + 1)
        if label not in self.labels:
            raise ValueError("not one of the declared values")
        return self.labels[label]

    def texts(self, path: Path, codes: np.ndarray) -> pyarrow.Array:
        """Return the column as texts; a sparse file may leave out a nominal value, but not a string."""
        codes = codes - self.open
        if np.any(codes < 0):
            row = int(np.argmax(codes < 0)) + 1
            problem = f"row {row} leaves out the string {show(self.name)}, which a sparse file must write"
            raise TableError(path, problem, "write it (? if missing)")
        known = pyarrow.array(np.nan_to_num(codes).astype(np.int64), mask=np.isnan(codes))
        return pyarrow.array(list(self.labels or [""]), pyarrow.string()).take(known)


def _read_header(path: Path, lines: Iterator[tuple[int, str]]) -> list[_Attribute]:
    attributes: list[_Attribute] = []
    for number, line in lines:
        text = line.strip()
        keyword = text.split(None, 1)[0].lower() if text else ""
        if keyword == "@data":
            if attributes:
                return attributes
            break
        if keyword == "@attribute":
            attributes.append(_attribute(path, number, text))
        elif text and not text.startswith("%") and keyword != "@relation":
            raise TableError(path, f"line {number} is not part of an ARFF header: {show(text)}", "correct it")
    problem = "there is no @data line after @attribute lines, so this is not a whole ARFF file"
    raise TableError(path, problem, "get the whole file again, or correct its extension")


def _attribute(path: Path, number: int, text: str) -> _Attribute:
    match = _ATTRIBUTE.fullmatch(text)
    if match is None:
        raise TableError(path, f"line {number}: cannot understand {show(text)}", "write @attribute NAME TYPE")
    name, kind = _unquote(match[1]), match[2].strip()
    if kind.startswith("{") and kind.endswith("}"):
        labels = [_unquote(token) for token in _split(kind[1:-1])]
        if labels == ["0", "1"]:
            return _Attribute(name)
        return _Attribute(name, {label: i for i, label in enumerate(labels)})
    if kind.lower() in _NUMBERS:
        return _Attribute(name)
    return _Attribute(name, {}, open=True)  # strings, dates and the like


@dataclass
class _Rows:
    """Values collected row by row: all of them in a dense file, (column, value) in a sparse one."""

    values: array = field(default_factory=lambda: array("d"))
    indices: array = field(default_factory=lambda: array("q"))
    indptr: array = field(default_factory=lambda: array("q", [0]))


def _read_data(
    path: Path, lines: Iterator[tuple[int, str]], attributes: list[_Attribute]
) -> np.ndarray | csc_array:
    rows, sparse, width = _Rows(), None, len(attributes)
    for number, line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        braces = text.startswith("{")
        sparse = braces if sparse is None else sparse
        try:
            if braces != sparse:
                raise ValueError("dense and sparse rows are mixed")
            (_add_sparse if sparse else _add_dense)(rows, text, attributes)
        except ValueError as error:
            raise TableError(
                path, f"line {number}: {error}", "correct that line, or get the whole file"
            ) from None
    shape = (len(rows.indptr) - 1, width)
    if not sparse:
        return np.array(rows.values, dtype=np.float64).reshape(shape)
    parts = (np.array(rows.values), np.array(rows.indices), np.array(rows.indptr))
    return csc_array(csr_array(parts, shape=shape))


def _add_dense(rows: _Rows, text: str, attributes: list[_Attribute]) -> None:
    fields = _split(text)
    if len(fields) != len(attributes):
        raise ValueError(f"{len(fields)} values where {len(attributes)} attributes are declared")
    rows.values.extend([_value(attribute, token) for attribute, token in zip(attributes, fields)])
    rows.indptr.append(len(rows.values))


def _add_sparse(rows: _Rows, text: str, attributes: list[_Attribute]) -> None:
    if not text.endswith("}"):
        raise ValueError("the row has no closing brace")
    last = -1
    for token in _split(text[1:-1]) if text[1:-1].strip() else []:
        match = _SPARSE_ITEM.fullmatch(token)
        if match is None:
            raise ValueError(f"{show(token)} is not INDEX VALUE")
        index = int(match[1])
        if not last < index < len(attributes):
            raise ValueError(f"index {index} is out of order or beyond the {len(attributes)} attributes")
        rows.indices.append(index)
        rows.values.append(_value(attributes[index], match[2].strip()))
        last = index
    rows.indptr.append(len(rows.values))


def _value(attribute: _Attribute, token: str) -> float:
    try:
        return attribute.value(token)
    except ValueError as error:
        reason = "not a number" if attribute.labels is None else error
        raise ValueError(f"attribute {show(attribute.name)}: {show(token)} is {reason}") from None


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


def _column(table: np.ndarray | csc_array, j: int) -> np.ndarray:
    column = table[:, [j]]
    return np.asarray(column.toarray() if isinstance(column, csc_array) else column).ravel()
