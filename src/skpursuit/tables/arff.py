"""ARFF files, dense and sparse, with numeric, nominal and string attributes."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from scipy.sparse import csc_array, csr_array

from .columns import Column, Columns, ReadOptions, different
from .errors import Refused, show
from .source import examine
from .spelling import parse_number

_ATTRIBUTE = re.compile(r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(.+)""", re.I | re.S)
_TOKEN = re.compile(r"""((?:[^,'"\\]|\\.|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*)(,|$)""", re.S)
_SPARSE_ITEM = re.compile(r"\s*(\d+)\s+(.+)", re.S)
_NUMBERS = ("numeric", "real", "integer")


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
        label = _unquote(text)
        if self.labels is None:
            try:
                return parse_number(text)
            except ValueError:
                raise ValueError(f"attribute {show(self.name)}: {show(text)} is not a number") from None
        if self.open:
            return self.labels.setdefault(label, len(self.labels) + 1)
        if label not in self.labels:
            raise ValueError(f"attribute {show(self.name)}: {show(text)} is not one of the declared values")
        return self.labels[label]

    def column(self, values: Any) -> Column:
        """Return the texts of codes; a sparse file may leave out a nominal value, but not a string."""
        codes = (values.toarray() if isinstance(values, csc_array) else values).ravel() - self.open
        if np.any(codes < 0):
            row = int(np.argmax(codes < 0)) + 1
            problem = f"row {row} leaves out the string {show(self.name)}, which a sparse file must write"
            raise Refused(problem, "write it (? if missing)")
        known = pyarrow.array(np.nan_to_num(codes).astype(np.int64), mask=np.isnan(codes))
        return Column(pyarrow.array(list(self.labels or [""]), pyarrow.string()).take(known))


def read_arff(path: Path, options: ReadOptions) -> Columns:
    """Read an ARFF file; a nominal attribute {0,1} is a number, any other attribute that is none a text."""
    lines = (
        (number, line.strip())
        for number, line in enumerate(examine(path, options.text_encoding).lines(), start=1)
        if line.strip() and not line.strip().startswith("%")
    )
    attributes = _read_header(lines)
    for attribute, name in zip(attributes, different(attribute.name for attribute in attributes)):
        attribute.name = name
    table = _read_data(lines, attributes)
    numeric = [j for j, attribute in enumerate(attributes) if attribute.labels is None]
    texts = [j for j, attribute in enumerate(attributes) if attribute.labels is not None]
    matrix = table[:, numeric]
    return Columns(
        str(path),
        {attributes[j].name: attributes[j].column(table[:, [j]]) for j in texts},
        tuple(attributes[j].name for j in numeric),
        csr_array(matrix) if isinstance(matrix, csc_array) else matrix,
    )


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
        labels = [_unquote(token) for token in _split(kind[1:-1])]
        numbers = labels == ["0", "1"]
        return _Attribute(name, None if numbers else {label: i for i, label in enumerate(labels)})
    if kind.lower() in _NUMBERS:
        return _Attribute(name)
    return _Attribute(name, {}, open=True)  # strings, dates and the like


def _read_data(lines: Iterator[tuple[int, str]], attributes: list[_Attribute]) -> Any:
    """Return all values as an array, or as a csc_array where the file is sparse."""
    values, indices, indptr, sparse = array("d"), array("q"), array("q", [0]), None
    for number, text in lines:
        try:
            if sparse not in (None, text.startswith("{")):
                raise ValueError("dense and sparse rows are mixed")
            sparse = text.startswith("{")
            fields = enumerate(_split(text)) if not sparse else _sparse_items(text, len(attributes))
            items = list(fields)
            if not sparse and len(items) != len(attributes):
                raise ValueError(f"{len(items)} values where {len(attributes)} attributes are declared")
            for index, token in items:
                indices.append(index)
                values.append(attributes[index].value(token))
        except ValueError as error:
            raise Refused(f"line {number}: {error}", "correct that line, or get the whole file") from None
        indptr.append(len(values))
    shape = (len(indptr) - 1, len(attributes))
    if not sparse:
        return np.array(values, dtype=np.float64).reshape(shape)
    return csc_array(csr_array((np.array(values), np.array(indices), np.array(indptr)), shape=shape))


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
