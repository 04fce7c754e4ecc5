"""Results as JSON Lines: one synced line per cell, so that a file survives a kill at any moment.

The first line holds the settings; results of different settings are never mixed. Lines with "about" name the
machines. A kill can leave an incomplete last line, which is cut off when the file is opened again; any other
damage is refused. When a study is finished, its rows are also written as a CSV file.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skpursuit._atomic_files import write_atomically

from ..tables.errors import TableProblem, attach_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Row = dict[str, Any]
Facts = dict[str, Any]  # the settings, or what is known about a machine


@dataclass
class Results:
    """What a results file holds: settings, columns, machines, and the rows of each cell."""

    settings: dict[str, Any]
    columns: tuple[str, ...]
    about: list[dict[str, Any]] = field(default_factory=list)
    cells: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """The rows of all cells."""
        return [row for rows in self.cells.values() for row in rows]

    def lines(self) -> bytes:
        """Return the whole file."""
        head = {"settings": self.settings, "fingerprint": settings_digest(self.settings)}
        lines: list[Any] = [{**head, "columns": self.columns}, *({"about": one} for one in self.about)]
        lines += [{"cell": cell, "rows": list(map(without_none, rows))} for cell, rows in self.cells.items()]
        return b"".join(map(json_line, lines))

    def table(self) -> str:
        """Return the rows as CSV, without the columns of X that were chosen."""
        text, shown = io.StringIO(), [name for name in self.columns if name != "columns"]
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(shown)
        writer.writerows([row.get(name) for name in shown] for row in self.rows)
        return text.getvalue()


def settings_digest(value: Any) -> str:
    """Return a short fingerprint of a JSON value; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def without_none(row: Mapping[str, Any]) -> Row:
    """Return the values of a row that are there, as plain Python numbers of six digits."""
    items = ((name, v.item() if hasattr(v, "item") else v) for name, v in row.items())
    short = ((name, float(f"{v:.6g}") if isinstance(v, float) else v) for name, v in items)
    return {name: value for name, value in short if value is not None}


def json_line(entry: Any) -> bytes:
    """Return a line of a results file."""
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def read_results(folder: Path, name: str) -> Results | None:
    """Read the finished cells of a study; None if there are none yet, TableError if a file is damaged."""
    path = folder / f"{name}.jsonl"
    with attach_path(path):
        try:
            if path.is_file():
                return parse_results(path.read_bytes())[0]
        except OSError as error:
            raise TableProblem("unreadable results", words=error.strerror) from None
    _refuse_lone_table(path)
    return None


def parse_results(content: bytes) -> tuple[Results | None, int]:
    """Return what a file holds and where its last whole line ends; refuse more than a kill can leave."""
    *lines, rest = content.split(b"\n")
    results: Results | None = None
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            if results is not None:
                _add(results, entry)
            elif entry["fingerprint"] != settings_digest(entry["settings"]):
                raise ValueError("the settings were changed")
            else:
                results = Results(dict(entry["settings"]), tuple(map(str, entry["columns"])))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            problem = "no results file" if results is None else "damaged results"
            raise TableProblem(problem, line=number) from None
    if results is None and rest.strip(b"\0") and not rest.startswith(b"{"):
        raise TableProblem("no results file")
    return results, len(content) - len(rest)


def _refuse_lone_table(path: Path) -> None:
    """Refuse a CSV file without the results it was made from, before a study writes its own over it."""
    with attach_path(table := path.with_suffix(".csv")):
        if table.exists() and not path.exists():
            raise TableProblem("lone table", name=path.name)


def _add(results: Results, entry: Any) -> None:
    """Add a line about a machine or a cell; any exception if it is neither."""
    if "about" in entry:
        results.about.append(dict(entry["about"]))
        return
    unknown = {name for row in entry["rows"] for name in row} - set(results.columns)
    if unknown or not entry["rows"] or entry["cell"] in results.cells:
        raise ValueError("a cell that is there already or has no rows, or columns not declared")
    rows = [{name: row.get(name) for name in results.columns} for row in entry["rows"]]
    results.cells[str(entry["cell"])] = rows


class ResultsFile:
    """The results of one experiment, open for appending and locked; a context manager.

    Results depend on their cells and on the ``settings``, which must be those of the file; ``about`` is
    recorded but not compared.
    """

    def __init__(self, path: Path, columns: Sequence[str], settings: Facts, about: Facts | None = None):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        wanted = Results(dict(settings), tuple(columns))
        _refuse_lone_table(path)
        self._file = _open_locked(path)
        try:
            with attach_path(path):
                found, self._size = parse_results(self._file.read())
                self._file.truncate(self._size)
                self.results = found or wanted
                if found is None:
                    self._write(wanted.lines())
                old, new = self.results.settings, wanted.settings
                if settings_digest(old) != settings_digest(new):
                    changed = ", ".join(sorted(k for k in {*old, *new} if old.get(k) != new.get(k)))
                    raise TableProblem("other settings", changed=changed)
                if self.results.columns != wanted.columns:
                    raise TableProblem("other columns")
            if about and about not in self.results.about:
                self._write(json_line({"about": about}))
                self.results.about.append(about)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def append(self, cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add all rows of one cell at once."""
        entry = {"cell": cell, "rows": list(map(without_none, rows))}
        _add(self.results, entry)
        try:
            self._write(json_line(entry))
        except BaseException:
            del self.results.cells[cell]
            raise

    def finish(self, order: Sequence[str]) -> None:
        """Put the cells into the given order, any others after them, and write the CSV file."""
        ranks = {cell: i for i, cell in enumerate(order)}
        cells = sorted(self.results.cells, key=lambda cell: ranks.get(cell, len(ranks)))
        if cells != list(self.results.cells):
            self.results.cells = {cell: self.results.cells[cell] for cell in cells}
            write_atomically(self.path, self.results.lines())
        table = self.path.with_suffix(".csv")
        if not table.exists() or table.read_text(encoding="utf-8") != self.results.table():
            write_atomically(table, self.results.table())

    def _write(self, block: bytes) -> None:
        written = os.write(self._file.fileno(), block)
        if written != len(block):  # a full disk may take a part; leave none of it
            self._file.truncate(self._size)
            with attach_path(self.path):
                raise TableProblem("full disk")
        os.fsync(self._file.fileno())
        self._size += written


def _open_locked(path: Path) -> io.FileIO:
    """Open for reading and appending; refuse if another process has it open so."""
    while True:
        file = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666), "r+")
        try:
            if fcntl is not None:  # some systems have no such locks
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            with attach_path(path):
                raise TableProblem("another run") from None
        # The file may have been replaced (`ResultsFile.finish`) between opening and locking.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        file.close()
