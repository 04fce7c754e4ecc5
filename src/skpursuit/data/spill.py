"""What is kept of the tiles on disk: codes that memory has no room for, and codes that a later run can use.

What is kept of a tile is a dataclass of arrays. Its large arrays ("planes") stay in memory if all tiles
together fit in the memory limit, plane by plane; the others are written to a folder, one file for each tile,
and read again when they are used. A folder that the caller named, or one beside a checkpoint, gets all
arrays, and a header with the identity of the source: the next design of the same files uses them. Every array
has a checksum, compared when it is first read. A folder is written under another name and renamed when it is
complete, so that there are whole codes in it or none, and old ones stay until then. Whoever fails removes
what it wrote; what a killed process left, the next fit that looks for these codes removes (`_files.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
import zlib
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skpursuit._files import FileError, beside, locked, remove_leftovers, write_atomically
from skpursuit.data.options import Options
from skpursuit.data.reads import CountedFile, FileReads

FORMAT = 4
HEADER = "header.json"


class StoredArray(NamedTuple):
    """An array in a file."""

    path: str
    offset: int
    dtype: str
    shape: tuple[int, ...]
    checksum: int

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    def read(self, check: bool, reads: FileReads) -> np.ndarray:
        """The array; ValueError where the file is not what was written."""
        found = np.empty(self.shape, self.dtype)
        out, done = found.reshape(-1).view(np.uint8).data, 0
        try:
            with CountedFile(self.path, reads) as file:
                while done < len(out) and (count := file.read_at(out[done:], self.offset + done)):
                    done += count
        except OSError as error:
            raise damaged(self.path, error.strerror or "it cannot be read") from None
        if done < len(out):
            raise damaged(self.path, "it was cut short")
        if check and zlib.crc32(out) != self.checksum:
            raise damaged(self.path, "its checksum does not match")
        return found


def damaged(path: str, problem: str) -> FileError:
    """An error about a piece of stored codes."""
    return FileError(path, f"these stored codes are damaged ({problem})", "delete the folder they are in")


def unwritable(path: Path, error: OSError) -> FileError:
    """An error about codes that the disk has no room for, or a folder that may not be written to."""
    remedy = "make room, or name another folder: as_design(..., codes=path)"
    return FileError(path, f"codes cannot be written ({error.strerror})", remedy)


class Spilled:
    """What is kept of a tile while some of its arrays are on disk: they are read when they are used."""

    def __getattr__(self, name: str) -> Any:
        stored: dict[str, StoredArray] = self.__dict__.get("stored_arrays", {})
        if name not in stored:
            raise AttributeError(name)
        checked: set[str] = self.__dict__["checked"]
        value = self.__dict__[name] = stored[name].read(name not in checked, self.__dict__["reads"])
        checked.add(name)
        return value

    def release(self) -> None:
        """Forget the arrays that are on disk, until they are used again."""
        for name in self.__dict__["stored_arrays"]:
            self.__dict__.pop(name, None)


def spilled(kind: type, values: dict[str, Any], stored: dict[str, StoredArray], reads: FileReads) -> Any:
    """An object of a dataclass with these values, and with arrays that are on disk."""
    made: Any = object.__new__(type(kind.__name__, (Spilled, kind), {}))
    made.__dict__.update(values, stored_arrays=stored, checked=set(), reads=reads)
    return made


class Spill:
    """Where the tiles' codes of one kind are: in memory, on disk, or both.

    Parameters
    ----------
    keep : Keep
        What makes them. `keep.planes` names their large arrays, those that should stay in memory first.
    identity : str
        Of the source.
    tiles : int
    folder : Path, optional
        Where they are to be found later; None: a temporary folder, if one is needed at all.
    options : Options
    reads : FileReads
    """

    def __init__(
        self, keep: Any, identity: str, tiles: int, folder: Path | None, options: Options, reads: FileReads
    ) -> None:
        self.keep, self.options, self.limit, self.reads = keep, options, options.limit, reads
        self.header = {"format": FORMAT, "identity": identity, "keep": repr(keep), "tiles": tiles}
        self.home = None if folder is None else folder / keep.label
        self.held: dict[int, Any] = {}
        self.granted = 0
        self.in_memory: set[str] = set()
        self.making: Path | None = None
        self.lock = ExitStack()  # of the folder that is being made

    # -- codes that are there ---------------------------------------------------------------------------

    def adopt(self) -> bool:
        """Use the codes in the folder, if they are those of this source."""
        if self.home is None:
            return False
        remove_leftovers(self.home)
        try:
            with CountedFile(str(self.home / HEADER), self.reads) as file:
                header = json.loads(file.readall())
            if {name: header.get(name) for name in self.header} != self.header:
                return False
            pieces = header["pieces"]
            if zlib.crc32(json.dumps(pieces).encode()) != header["checksum"]:
                raise damaged(str(self.home / HEADER), "its checksum does not match")
        except FileError:
            raise
        except (OSError, ValueError, KeyError, AttributeError):
            return False
        for number, piece in enumerate(pieces):
            path = str(self.home / piece["file"])
            if not os.path.exists(path):
                raise damaged(path, "it is missing")
            arrays = {name: StoredArray(path, *rest) for name, rest in piece["arrays"].items()}
            arrays = {name: a._replace(shape=tuple(a.shape)) for name, a in arrays.items()}
            self._plan({name: array.nbytes for name, array in arrays.items()}, piece["share"])
            kept = {name: arrays[name].read(True, self.reads) for name in arrays if name in self.in_memory}
            plain = {n: tuple(v) if isinstance(v, list) else v for n, v in piece["values"].items()}
            stored = {name: array for name, array in arrays.items() if name not in kept}
            self.held[number] = spilled(self.keep.kind(), kept | plain, stored, self.reads)
        return True

    # -- codes that are made ----------------------------------------------------------------------------

    def put(self, number: int, made: Any, share: float) -> None:
        """Keep what was made of a tile, which is this share of X."""
        values = {field.name: getattr(made, field.name) for field in fields(made)}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        self._plan({name: value.nbytes for name, value in arrays.items()}, share)
        out = {name for name in arrays if name not in self.in_memory}
        if self.home is None and not out:
            self.held[number] = made
            return
        if self.options.codes is None:
            raise ValueError(
                "memory_limit has no room for the codes of X, and codes=None forbids to write them to disk; "
                'raise memory_limit, give codes="auto", or use selector "gram" or "exact"'
            )
        outside = arrays if self.home is not None else {name: arrays[name] for name in out}
        written = self._write(number, outside, values, share)
        stays = {name: value for name, value in vars(made).items() if name not in out}
        away = {name: written[name] for name in out}
        self.held[number] = spilled(type(made), stays, away, self.reads) if away else made

    def _plan(self, sizes: dict[str, int], share: float) -> None:
        """Decide by the first tile which arrays of all tiles stay in memory."""
        if self.granted:
            return
        small = {name: size for name, size in sizes.items() if name not in self.keep.planes}
        planes = [(name, sizes[name]) for name in self.keep.planes if name in sizes]
        for name, size in [("", sum(small.values())), *planes]:
            total = int(size / share) + 1
            if self.limit.ask(total, force=not name):
                self.granted += total
                self.in_memory |= {name} if name else set(small)

    def _write(self, number: int, arrays: dict[str, np.ndarray], values: dict[str, Any], share: float) -> Any:
        if self.making is None:
            self.pieces: list[dict[str, Any]] = []
            self.making = self._new_folder()
        path, at, written = self.making / f"{number}.codes", 0, {}
        try:
            with open(path, "wb") as file:
                for name, array in arrays.items():
                    flat = np.ascontiguousarray(array).reshape(-1)
                    file.write(flat.data)
                    sum_ = zlib.crc32(flat.data)
                    written[name] = StoredArray(str(path), at, array.dtype.str, array.shape, sum_)
                    at += flat.nbytes
        except OSError as error:
            self.drop()
            raise unwritable(path, error) from None
        rest = {n: v for n, v in values.items() if n not in arrays}
        listed = {name: tuple(stored)[1:] for name, stored in written.items()}
        self.pieces.append({"file": path.name, "arrays": listed, "values": rest, "share": share})
        return written

    def _new_folder(self) -> Path:
        if self.home is None:
            made = Path(tempfile.mkdtemp(prefix="skpursuit-codes-"))
            self.cleaner = weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
            return made
        try:
            self.home.parent.mkdir(parents=True, exist_ok=True)
            made = beside(self.home)
            made.mkdir()
        except OSError as error:
            raise unwritable(self.home.parent, error) from None
        with suppress(OSError):  # some network drives have no locks; then nobody gets one
            self.lock.enter_context(locked(made))
        return made

    def finish(self) -> None:
        """Put a complete folder in its place."""
        if self.making is None or self.home is None:
            return
        sum_ = zlib.crc32(json.dumps(self.pieces).encode())
        whole = self.header | {"pieces": self.pieces, "checksum": sum_}
        try:
            write_atomically(self.making / HEADER, json.dumps(whole))
            if self.home.exists():
                shutil.rmtree(self.home)
            os.replace(self.making, self.home)
        except OSError as error:
            raise unwritable(self.home, error) from None
        self.lock.close()
        for kept in self.held.values():
            stored = getattr(kept, "stored_arrays", {})
            for name, array in stored.items():
                stored[name] = array._replace(path=str(self.home / Path(array.path).name))
        self.making = None

    def drop(self) -> None:
        """Forget everything, and remove what is not complete."""
        self.limit.release(self.granted)
        self.held, self.granted, self.in_memory = {}, 0, set()
        if self.making is not None:
            shutil.rmtree(self.making, ignore_errors=True)
            self.making = None
        self.lock.close()
