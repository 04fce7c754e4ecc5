"""A CSV file that grows by whole cells and survives being killed at any moment.

Each line starts with the cell it belongs to and its place among that cell's lines ("2/3"). All lines of a
cell are appended by one write and synced, so the worst a kill can leave is an incomplete last cell; it is cut
off when the file is opened again. Beside ``NAME.csv`` lies ``NAME.json`` with the settings: rows of other
settings are never mixed in.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .._files import sync_folder, write_atomically
from .settings import Settings, StoreError, digest, lost_settings, read_settings, write_settings

Value = str | int | float | bool | None
Row = dict[str, Value]


class Store:
    """The results of one experiment, open for appending; a context manager.

    Parameters
    ----------
    path : Path
        The CSV file; created if it is not there.
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
        about = about or {}
        self.path = path
        self.columns = tuple(columns)
        self._header = _line(["cell", "part", *self.columns])
        path.parent.mkdir(parents=True, exist_ok=True)
        read_settings(path)  # a file of someone else there is refused before anything is made
        self._file = _open_locked(path)
        try:
            content = self._file.read()
            known = self._machines_so_far(settings) if content else []
            if not content:  # the settings first: rows without them are of no use after a kill
                write_settings(path, Settings(settings, [about]))
            self._size, self._cells = self._recover(content)
            if content and about not in known:
                write_settings(path, Settings(settings, [*known, about]))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    @property
    def done(self) -> frozenset[str]:
        """The cells whose rows are all here."""
        return frozenset(self._cells)

    def append(self, cell: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add all rows of one cell at once."""
        if cell in self._cells or not rows:
            raise ValueError(f"cell {cell} is there already, or has no rows")
        block = b"".join(
            _line([cell, f"{i}/{len(rows)}", *self._fields(row)]) for i, row in enumerate(rows, start=1)
        )
        self._write(block)
        self._cells[cell] = block

    def finish(self, order: Sequence[str]) -> None:
        """Put the cells into the given order, any others after them, by replacing the file in one go."""
        ranks = {cell: i for i, cell in enumerate(order)}
        cells = sorted(self._cells, key=lambda cell: ranks.get(cell, len(ranks)))
        if cells != list(self._cells):
            write_atomically(self.path, self._header + b"".join(self._cells[cell] for cell in cells))

    def _fields(self, row: Mapping[str, Any]) -> list[str]:
        unknown = set(row) - set(self.columns)
        if unknown:
            raise ValueError(f"columns that were not declared: {sorted(unknown)}")
        return [_text(row.get(name)) for name in self.columns]

    def _write(self, block: bytes) -> None:
        written = os.write(self._file.fileno(), block)
        if written != len(block):  # a full disk may take a part; leave none of it
            self._file.truncate(self._size)
            raise StoreError(self.path, "the disk is full", "make room and run again to resume")
        os.fsync(self._file.fileno())
        self._size += written

    def _machines_so_far(self, settings: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the machines of the rows that are here; refuse rows of other settings."""
        stored = read_settings(self.path)
        if stored is None:
            raise lost_settings(self.path)
        if digest(old := stored.values) != digest(settings):
            changed = sorted(k for k in {*old, *settings} if old.get(k) != settings.get(k))
            problem = f"it holds results of other settings ({', '.join(changed)})"
            raise StoreError(self.path, problem, "use another folder (--out), or delete the file")
        return stored.about

    def _recover(self, content: bytes) -> tuple[int, dict[str, bytes]]:
        """Cut off what a kill left incomplete; return the size of the file and its cells."""
        if self._header.startswith(content) and content != self._header:
            self._file.truncate(0)
            self._size = 0
            self._write(self._header)
            sync_folder(self.path.parent)
            return self._size, {}
        if not content.startswith(self._header):
            remedy = "use another folder (--out), or delete the file"
            raise StoreError(self.path, "its columns are not those of this experiment", remedy)
        cells, size = _finished_cells(self.path, content, len(self._header), len(self.columns) + 2)
        if size < len(content):
            self._file.truncate(size)
            os.fsync(self._file.fileno())
        return size, cells


def read_rows(path: str | os.PathLike[str], texts: Sequence[str] = ()) -> list[Row]:
    """Read the finished rows of a results file, values as numbers where they are.

    Parameters
    ----------
    path : path
        The CSV file.
    texts : sequence of str
        Columns that are texts, even where one looks like a number.

    Raises
    ------
    StoreError
        If the file is damaged, and not just cut off by a kill.
    """
    content = Path(path).read_bytes()
    start = content.find(b"\n") + 1
    names = next(csv.reader([content[:start].decode()]), [])
    cells, _ = _finished_cells(Path(path), content, start, len(names))
    lines = io.StringIO(b"".join(cells.values()).decode(), newline="\n")
    kinds: list[Callable[[str], Value]] = [str if name in texts else _value for name in names[2:]]
    return [
        {name: kind(text) for name, kind, text in zip(names[2:], kinds, record[2:])}
        for record in csv.reader(lines)
    ]


def _finished_cells(path: Path, content: bytes, start: int, width: int) -> tuple[dict[str, bytes], int]:
    """Return the complete cells from ``start`` on and where they end; refuse more than a kill can leave."""
    cells, rest = _whole_cells(content[start:], width)
    end = len(content) - len(rest)
    if _holds_other_cells(rest, cells, width):
        line = content[:end].count(b"\n") + 1
        remedy = "delete the lines of that cell and run `skpursuit reproduce` again"
        raise StoreError(path, f"it is damaged at line {line}, not just cut off", remedy)
    return cells, end


def _whole_cells(body: bytes, width: int) -> tuple[dict[str, bytes], bytes]:
    """Return the leading complete cells, by name, and what follows them."""
    cells: dict[str, bytes] = {}
    start = 0
    while (block := _next_cell(body, start, width)) is not None:
        name, end = block
        if name in cells:
            break
        cells[name] = body[start:end]
        start = end
    return cells, body[start:]


def _next_cell(body: bytes, start: int, width: int) -> tuple[str, int] | None:
    """Return the name and the end of the complete cell that begins at ``start``, if one does."""
    name, total = "", 1
    i = 0
    while i < total:
        end = body.find(b"\n", start) + 1
        parsed = _parse(body[start:end], width) if end else None
        if parsed is None or (i > 0 and parsed != (name, i + 1, total)) or (i == 0 and parsed[1] != 1):
            return None
        name, _, total = parsed
        start, i = end, i + 1
    return name, start


def _parse(line: bytes, width: int) -> tuple[str, int, int] | None:
    """Return (cell, part, parts) of a well-formed line."""
    with contextlib.suppress(ValueError, csv.Error, StopIteration):
        record = next(csv.reader([line.decode()], strict=True))
        part, total = map(int, record[1].split("/") if len(record) == width else ())
        return (record[0], part, total) if 1 <= part <= total else None
    return None


def _holds_other_cells(rest: bytes, cells: Mapping[str, bytes], width: int) -> bool:
    """Whether a tail is more than one cell cut short: then it is damage, which is not ours to throw away."""
    names = {parsed[0] for line in rest.split(b"\n") if (parsed := _parse(line, width))}
    after = rest.find(b"\n") + 1
    return len(names) > 1 or bool(names & set(cells)) or _holds_whole_cell(rest[after:], width)


def _holds_whole_cell(rest: bytes, width: int) -> bool:
    starts = itertools.accumulate(map(len, rest.splitlines(keepends=True)), initial=0)
    return any(_next_cell(rest, start, width) for start in starts)


def _open_locked(path: Path) -> io.FileIO:
    """Open for reading and appending; refuse if another process has it open so."""
    while True:
        file = io.FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666), "r+")
        if not _lock(file):
            file.close()
            raise StoreError(
                path, "another run is writing to it", "wait for it, or use another folder (--out)"
            )
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


def _line(fields: Sequence[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(fields)
    return buffer.getvalue().encode()


def _text(value: Any) -> str:
    """Spell a value on one line so that `_value` gives it back."""
    value = value.item() if hasattr(value, "item") else value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else " ".join(str(value).split("\n"))


def _value(text: str) -> Value:
    if text in ("", "true", "false"):
        return {"": None, "true": True, "false": False}[text]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
