"""Results as JSON Lines: one cell one line, so that a file survives being killed at any moment.

The first line holds the settings, which results of other settings are never mixed with; lines that begin with
"about" name the machines that worked on it. A cell's line is appended by one write and synced: the worst that
a kill can leave is half a line at the end, which is cut off when the file is opened again. When a study is
finished, its rows are also written as a plain CSV file beside it. `read_study` reads both this and the first
format (a CSV with the columns "cell" and "part", and the settings in a JSON file beside it).
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

from .._files import FileError, write_atomically

Value = str | int | float | bool | None
Row = dict[str, Value]
LARGEST = 1e300  # of the numbers that a page can show: whatever is larger was not measured
_REMEDY = "use another folder (--out), or delete the file"


class StoreError(FileError):
    """Results that cannot be continued, or shown."""


@dataclass
class Study:
    """What a results file holds: settings, machines, columns, and the rows of each cell."""

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
        head = {
            "settings": self.settings,
            "fingerprint": digest(self.settings),
            "columns": list(self.columns),
        }
        lines: list[Any] = [head, *({"about": one} for one in self.about)]
        for cell, rows in self.cells.items():
            lines.append({"cell": cell, "rows": list(map(_known, rows))})
        return b"".join(map(_line, lines))

    def table(self) -> str:
        """Return the rows as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([row.get(name) for name in self.columns] for row in self.rows)
        return text.getvalue()


def digest(value: Any) -> str:
    """Return a short fingerprint of a JSON value; the order of keys does not count."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_study(folder: Path, name: str) -> Study | None:
    """Read the finished cells of a study; None if there are none yet.

    Raises
    ------
    StoreError
        If a file is damaged, and not just cut off by a kill, or is not of a study.
    """
    path = folder / f"{name}.jsonl"
    try:
        if path.is_file():
            return parse(path, path.read_bytes())[0]
        first = path.with_suffix(".csv")
        return read_first_format(first) if first.is_file() else None
    except OSError as error:
        raise StoreError(path, f"it cannot be read ({error.strerror})", "name another folder") from None


def parse(path: Path, content: bytes) -> tuple[Study | None, int]:
    """Return what a file holds and where its last whole line ends; refuse more than a kill can leave."""
    lines = content.split(b"\n")
    study: Study | None = None
    end = 0
    for number, line in enumerate(lines[:-1], start=1):
        entry = _entry(line)
        if study is None:
            study = _begun(path, entry)
        elif not _add(study, entry):
            remedy = "delete that line and run `skpursuit reproduce` again"
            raise StoreError(path, f"it is damaged at line {number}, not just cut off", remedy)
        end += len(line) + 1
    if study is None and lines[-1].strip(b"\0") and not lines[-1].startswith(b"{"):
        raise StoreError(path, "these are not results of `skpursuit reproduce`", _REMEDY)
    return study, end


def _entry(line: bytes) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(line)
    return None


def _begun(path: Path, entry: Any) -> Study:
    settings = entry.get("settings") if isinstance(entry, dict) else None
    columns = entry.get("columns") if isinstance(entry, dict) else None
    named = isinstance(columns, list) and all(isinstance(name, str) for name in columns)
    if not _is_flat(settings) or not named or entry.get("fingerprint") != digest(settings):
        raise StoreError(path, "these are not results of `skpursuit reproduce`", _REMEDY)
    return Study(settings, tuple(columns))  # type: ignore[arg-type]


def _add(study: Study, entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    if _is_flat(entry.get("about")):
        study.about.append(entry["about"])
        return True
    cell, rows = entry.get("cell"), entry.get("rows")
    known = (
        isinstance(rows, list)
        and rows
        and all(isinstance(r, dict) and set(r) <= set(study.columns) for r in rows)
    )
    if not isinstance(cell, str) or cell in study.cells or not known:
        return False
    study.cells[cell] = [{name: row.get(name) for name in study.columns} for row in rows]  # type: ignore[union-attr]
    return True


def _is_flat(value: Any) -> bool:
    """Whether this is a JSON object of single values, as the page shows them."""
    return isinstance(value, dict) and all(
        abs(v) < LARGEST if isinstance(v, int | float) else v is None or isinstance(v, str)
        for v in value.values()
    )


class Store:
    """The results of one experiment, open for appending; a context manager.

    Parameters
    ----------
    path : Path
        The file, ``NAME.jsonl``; created if it is not there.
    columns : sequence of str
        Columns of the results.
    settings : dict
        Whatever the results depend on beside their cells: texts, numbers, yes or no.
    about : dict or None
        Machine and versions, recorded but not compared.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[str],
        settings: dict[str, Any],
        about: dict[str, Any] | None = None,
    ):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        old = None if path.exists() else read_study(path.parent, path.stem)
        self._file = _open_locked(path)
        try:
            study, self._size = parse(path, self._file.read())
            fresh = Study(dict(settings), tuple(columns))
            if study is None and old is not None:
                self._check(old, fresh)
                study = old
                self._file.truncate(0)
                self._size = 0
                self._write(study.lines())
            self._file.truncate(self._size)
            if study is None:
                study = fresh
                self._write(study.lines())
            self._check(study, fresh)
            self.study = study
            if about and about not in study.about:
                self._write(_line({"about": about}))
                study.about.append(about)
        except BaseException:
            self._file.close()
            raise

    def _check(self, found: Study, wanted: Study) -> None:
        """Refuse rows of other settings or columns."""
        if digest(old := found.settings) != digest(new := wanted.settings):
            changed = sorted(k for k in {*old, *new} if old.get(k) != new.get(k))
            raise StoreError(self.path, f"it holds results of other settings ({', '.join(changed)})", _REMEDY)
        if found.columns != wanted.columns:
            raise StoreError(self.path, "its columns are not those of this experiment", _REMEDY)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    @property
    def done(self) -> frozenset[str]:
        """The cells whose rows are all here."""
        return frozenset(self.study.cells)

    def append(self, cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add all rows of one cell at once."""
        if cell in self.study.cells or not rows:
            raise ValueError(f"cell {cell} is there already, or has no rows")
        unknown = {name for row in rows for name in row} - set(self.study.columns)
        if unknown:
            raise ValueError(f"columns that were not declared: {sorted(unknown)}")
        plain = [_known({k: v.item() if hasattr(v, "item") else v for k, v in row.items()}) for row in rows]
        self._write(_line({"cell": cell, "rows": plain}))
        self.study.cells[cell] = [{name: row.get(name) for name in self.study.columns} for row in plain]

    def finish(self, order: Sequence[str]) -> None:
        """Put the cells into the given order, any others after them, and write the CSV file."""
        ranks = {cell: i for i, cell in enumerate(order)}
        cells = sorted(self.study.cells, key=lambda cell: ranks.get(cell, len(ranks)))
        if cells != list(self.study.cells):
            self.study.cells = {cell: self.study.cells[cell] for cell in cells}
            write_atomically(self.path, self.study.lines())
        table = self.path.with_suffix(".csv")
        if not table.exists() or table.read_text(encoding="utf-8") != self.study.table():
            write_atomically(table, self.study.table())

    def _write(self, block: bytes) -> None:
        written = os.write(self._file.fileno(), block)
        if written != len(block):  # a full disk may take a part; leave none of it
            self._file.truncate(self._size)
            raise StoreError(self.path, "the disk is full", "make room and run again to resume")
        os.fsync(self._file.fileno())
        self._size += written


def _open_locked(path: Path) -> io.FileIO:
    """Open for reading and appending; refuse if another process has it open so."""
    while True:
        file = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666), "r+")
        if not _lock(file):
            file.close()
            remedy = "wait for it, or use another folder (--out)"
            raise StoreError(path, "another run is writing to it", remedy)
        # The file may have been replaced (`Store.finish`) between opening and locking.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        file.close()


def _lock(file: io.FileIO) -> bool:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _known(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def _line(entry: Any) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def read_first_format(path: Path) -> Study | None:
    """Read results that were kept as CSV with their settings beside them."""
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        records = list(csv.reader(file))
    if not records or records[0][:2] != ["cell", "part"]:
        if not records or "cell,part".startswith(",".join(records[0])):
            return None
        raise StoreError(path, "these are not results of `skpursuit reproduce`", _REMEDY)
    stored = _entry(path.with_suffix(".json").read_bytes()) if path.with_suffix(".json").is_file() else None
    if (
        not isinstance(stored, dict)
        or not _is_flat(stored.get("settings"))
        or not isinstance(stored.get("about"), list)
    ):
        problem = f"{path.with_suffix('.json').name} with their settings is gone or damaged"
        raise StoreError(path, f"it holds results, but {problem}", f"bring it back, {_REMEDY}")
    names = records[0][2:]
    study = Study(stored["settings"], tuple(names), [one for one in stored["about"] if _is_flat(one)])
    waiting: list[Row] = []
    for number, record in enumerate(records[1:], start=2):
        part, _, total = record[1].partition("/") if len(record) == len(names) + 2 else ("", "", "")
        if part != str(len(waiting) + 1) or record[0] in study.cells:
            if number == len(records):  # cut off by a kill
                break
            raise StoreError(path, f"it is damaged at line {number}, not just cut off", "delete that line")
        waiting.append({name: _value(name, text) for name, text in zip(names, record[2:])})
        if part == total:
            study.cells[record[0]], waiting = waiting, []
    return study if study.cells else None


def _value(name: str, text: str) -> Value:
    if name in ("collection", "method", "status"):
        return text
    if text in ("", "true", "false"):
        return {"": None, "true": True, "false": False}[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
