"""What is kept of the tiles on disk: codes that memory has no room for, and codes that a later run can use.

What is kept of a tile is a dataclass of arrays. Its large arrays stay in memory if all tiles together fit in
the memory limit, one after the other; the others are written to a folder, one file for each tile, and read
again when they are used. A folder that the caller named, or one beside a checkpoint, gets all arrays, and a
header with the identity of the source: the next design of the same files uses them. Every array has a
checksum, compared when it is first read. A folder is written under another name and renamed when it is
complete, so that there are whole codes in it or none, and old ones stay until then. Whoever fails removes
what it wrote; what a killed process left goes later (`_atomic_files.beside`).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skpursuit._atomic_files import FileError, beside
from skpursuit.data.options import DesignOptions
from skpursuit.data.read_counter import CountedFile, FileReads

if TYPE_CHECKING:
    from skpursuit.data.codes.coded_tile import CodedTile

CODES_FORMAT = 5
HEADER = "header.json"
PLANES = "codes", "second_byte"  # the large arrays, one byte an entry each; they stay in memory in this order


@dataclass
class Folder:
    """Where the arrays are now, and the count of what is read of them."""

    path: Path
    reads: FileReads


@dataclass
class ChecksummedArray:
    """An array in a file."""

    folder: Folder
    file: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    checksum: int
    checked: bool = False

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    def read(self) -> np.ndarray:
        """The array; FileError where the file is not what was written."""
        path, found = str(self.folder.path / self.file), np.empty(self.shape, self.dtype)
        out, done = found.reshape(-1).view(np.uint8).data, 0
        try:
            with CountedFile(path, self.folder.reads) as file:
                while done < len(out) and (count := file.read_at(out[done:], self.offset + done)):
                    done += count
        except OSError as error:
            raise corrupt_codes_error(path, error.strerror or "it cannot be read") from None
        if done < len(out):
            raise corrupt_codes_error(path, "it was cut short")
        if not self.checked and zlib.crc32(out) != self.checksum:
            raise corrupt_codes_error(path, "its checksum does not match")
        self.checked = True
        return found


def corrupt_codes_error(path: str, problem: str) -> FileError:
    """An error about a piece of stored codes."""
    return FileError(path, f"these stored codes are damaged ({problem})", "delete the folder they are in")


def unwritable_codes_error(path: Path, error: OSError) -> FileError:
    """An error about codes that the disk has no room for, or a folder that may not be written to."""
    remedy = "make room, or name another folder: as_design(..., codes=path)"
    return FileError(path, f"codes cannot be written ({error.strerror})", remedy)


class LazyArrays:
    """What is kept of a tile while some of its arrays are on disk: they are read when they are used."""

    def __getattr__(self, name: str) -> Any:
        stored: dict[str, ChecksummedArray] = self.__dict__.get("stored_arrays", {})
        if name not in stored:
            raise AttributeError(name)
        value = self.__dict__[name] = stored[name].read()
        return value

    def release(self) -> None:
        """Forget the arrays that are on disk, until they are used again."""
        for name in self.__dict__["stored_arrays"]:
            self.__dict__.pop(name, None)


def with_lazy_arrays(kind: type, values: dict[str, object], stored: dict[str, ChecksummedArray]) -> Any:
    """An object of a dataclass with these values, and with arrays that are on disk."""
    made: Any = object.__new__(type(kind.__name__, (LazyArrays, kind), {}))
    made.__dict__.update(values, stored_arrays=stored)
    return made


class CodeStorage:
    """Where the tiles' codes of one kind are: in memory, on disk, or both.

    `header` tells that codes in a folder are these: the identity of the source, and whether they are `fine`.
    They are to be found later in `folder`; None: in a temporary one, if one is needed at all.
    """

    def __init__(
        self, header: dict[str, object], folder: Path | None, options: DesignOptions, reads: FileReads
    ) -> None:
        self.options = options
        self.header = {"format": CODES_FORMAT, **header}
        self.final_dir = None if folder is None else folder / ("panels-fine" if header["fine"] else "panels")
        self.folder = Folder(self.final_dir or Path(), reads)
        self.coded_tiles: dict[int, CodedTile] = {}
        self.granted = 0
        self.in_memory: set[str] = set()
        self.pieces: list[dict[str, object]] = []  # what the header says of each file
        self.cleaner = ExitStack()  # removes a folder that is temporary or not complete
        weakref.finalize(self, self.cleaner.close)

    def load_existing(self) -> None:
        """Use the codes in the folder, if they are those of this source."""
        if self.final_dir is None:
            return
        with beside(self.final_dir):
            pass  # what killed writers left is removed
        try:
            with CountedFile(str(self.final_dir / HEADER), self.folder.reads) as file:
                found = json.loads(file.readall())
            pieces, checksum = found["pieces"], found["checksum"]
            if {name: found.get(name) for name in self.header} != self.header:
                return
        except (OSError, ValueError, KeyError, TypeError):
            return
        if zlib.crc32(json.dumps(pieces).encode()) != checksum:
            raise corrupt_codes_error(str(self.final_dir / HEADER), "its checksum does not match")
        from skpursuit.data.codes.coded_tile import CodedTile

        tiles, totals = [], Counter[str]()
        for number, piece in enumerate(pieces):
            place, listed = (self.folder, f"{number}.codes"), piece["arrays"].items()
            stored = {name: ChecksummedArray(*place, *array) for name, array in listed}
            totals.update({name: array.nbytes for name, array in stored.items()})
            tiles.append(stored)
        self._plan(totals)
        for number, (piece, stored) in enumerate(zip(pieces, tiles)):
            values = {n: tuple(v) if isinstance(v, list) else v for n, v in piece["values"].items()}
            values |= {name: stored.pop(name).read() for name in self.in_memory & stored.keys()}
            self.coded_tiles[number] = with_lazy_arrays(CodedTile, values, stored)

    def put(self, number: int, made: CodedTile, share: float) -> None:
        """Keep what was made of a tile, which is this share of X."""
        values = {field.name: getattr(made, field.name) for field in fields(made)}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        if not self.coded_tiles:
            self._plan({name: int(value.nbytes / share) + 1 for name, value in arrays.items()})
        out = arrays.keys() - self.in_memory
        if self.final_dir is None and not out:
            self.coded_tiles[number] = made
            return
        if self.options.codes is None:
            raise ValueError(
                "memory_limit has no room for the codes of X, and codes=None forbids to write them to disk; "
                'raise memory_limit, give codes="auto", or use selector "gram" or "exact"'
            )
        to_disk = arrays if self.final_dir is not None else {name: arrays[name] for name in out}
        written = self._write(number, to_disk)
        rest = {name: value for name, value in values.items() if name not in arrays}
        listed = {n: (a.offset, a.dtype, a.shape, a.checksum) for n, a in written.items()}
        self.pieces.append({"arrays": listed, "values": rest})
        stays = {name: value for name, value in vars(made).items() if name not in out}
        self.coded_tiles[number] = with_lazy_arrays(type(made), stays, {name: written[name] for name in out})

    def _plan(self, totals: Mapping[str, int]) -> None:
        """Decide which arrays of all tiles stay in memory: small ones, and large ones as long as they fit."""
        planes = [name for name in PLANES if name in totals]
        for name in ("", *planes):
            names = {name} if name else totals.keys() - set(planes)
            total = sum(totals[name] for name in names)
            if self.options.memory_budget.try_allocate(total, force=not name):
                self.granted += total
                self.in_memory |= names

    def _write(self, number: int, arrays: dict[str, np.ndarray]) -> dict[str, ChecksummedArray]:
        """Write arrays of a tile to a file of a new folder."""
        written, name = {}, f"{number}.codes"
        try:
            if not self.pieces and self.final_dir is None:
                self.folder.path = Path(tempfile.mkdtemp(prefix="skpursuit-codes-"))
                self.cleaner.callback(shutil.rmtree, self.folder.path, ignore_errors=True)
            elif not self.pieces and self.final_dir is not None:
                self.final_dir.parent.mkdir(parents=True, exist_ok=True)
                self.folder.path = self.cleaner.enter_context(beside(self.final_dir))
                self.folder.path.mkdir()
            with open(self.folder.path / name, "wb") as file:
                for key, array in arrays.items():
                    flat, at = np.ascontiguousarray(array).reshape(-1).data, file.tell()
                    file.write(flat)
                    sum_ = zlib.crc32(flat)
                    written[key] = ChecksummedArray(self.folder, name, at, array.dtype.str, array.shape, sum_)
        except OSError as error:
            raise unwritable_codes_error(self.folder.path, error) from None
        return written

    def commit(self) -> None:
        """Put a complete folder in its place."""
        if self.final_dir is None:
            return
        whole = {"pieces": self.pieces, "checksum": zlib.crc32(json.dumps(self.pieces).encode())}
        try:
            (self.folder.path / HEADER).write_text(json.dumps(self.header | whole))
            if self.final_dir.exists():
                shutil.rmtree(self.final_dir)
            os.replace(self.folder.path, self.final_dir)
        except OSError as error:
            raise unwritable_codes_error(self.final_dir, error) from None
        self.folder.path = self.final_dir
        self.cleaner.close()

    def discard(self) -> None:
        """Forget everything, and remove what is not complete."""
        self.options.memory_budget.allocated -= self.granted
        self.coded_tiles, self.granted, self.in_memory, self.pieces = {}, 0, set(), []
        self.cleaner.close()
