"""Bytes of a text file as UTF-8, with the checks that every text format needs.

The encoding is recognised: a byte order mark or zero bytes at every second place tell UTF-16, valid UTF-8 is
UTF-8, and anything else is Windows-1252, which is Latin-1 with the characters that people type.
"""

from __future__ import annotations

import codecs
import io
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .errors import TableError, show

BLOCK = 2**22
#: A longer line is taken for a file that is not a table (a table of 100 000 columns stays well below).
MAX_LINE = 16 * 2**20

_BINARY = {
    b"PAR1": "Parquet file",
    b"PK\x03\x04": "zip archive (a spreadsheet or an npz file?)",
    b"\x1f\x8b": "gzip file",
    b"BZh": "bzip2 file",
    b"\xfd7zXZ": "xz file",
    b"\x89HDF": "HDF5 file",
    b"\x89PNG": "picture",
    b"%PDF": "PDF document",
    b"\xd0\xcf\x11\xe0": "old spreadsheet",
    b"\x93NUMPY": "NumPy array",
    b"SQLite format 3": "SQLite database",
}
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def check_readable(path: Path) -> None:
    """Raise TableError if a file is missing, a folder, unreadable or empty."""
    try:
        with open(path, "rb") as file:
            first = file.read(1)
    except FileNotFoundError:
        raise TableError(path, "there is no such file", "check the name") from None
    except IsADirectoryError:
        raise TableError(path, "this is a folder", "give a file") from None
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or error
        raise TableError(path, f"cannot be read ({words})", "check the file's name and permissions") from None
    if not first:
        raise TableError(path, "the file is empty", "give a file with a header and rows of data")


def recognise(path: Path, text_encoding: str | None = None) -> str:
    """Return the codec of a text file; TableError if it is no text."""
    check_readable(path)
    with open(path, "rb") as file:
        head = file.read(65536)
    for magic, kind in _BINARY.items():
        if head.startswith(magic):
            remedy = "unpack or export it, or correct its extension (--format)"
            raise TableError(path, f"this is a {kind}, not text", remedy)
    if text_encoding is not None:
        return _asked_for(path, text_encoding)
    for mark, codec in _MARKS.items():
        if head.startswith(mark) and (codec != "utf-8-sig" or _decodes(path, "utf-8")):
            return codec
    for codec, zeros, letters in (
        ("utf-16-le", head[1:200:2], head[:200:2]),
        ("utf-16-be", head[:200:2], head[1:200:2]),
    ):
        if len(zeros) > 1 and zeros.count(0) > 0.8 * len(zeros) and letters.count(0) == 0:
            return codec
    if b"\0" in head:
        raise _nul_bytes(path, head.count(b"\n", 0, head.index(b"\0")) + 1)
    return "utf-8" if _decodes(path, "utf-8") else "cp1252"


def _asked_for(path: Path, text_encoding: str) -> str:
    try:
        name = codecs.lookup(text_encoding).name
    except LookupError:
        problem = f"no text encoding is called {show(text_encoding)}"
        raise TableError(
            path, problem, "leave --encoding out to have it recognised", (), "--encoding"
        ) from None
    if name == "utf-8" and not _decodes(path, name):
        raise TableError(path, "the text is not utf-8", "leave --encoding out", (), "--encoding")
    return "utf-8-sig" if name == "utf-8" else name


def _decodes(path: Path, codec: str) -> bool:
    decoder = codecs.getincrementaldecoder(codec)()
    with open(path, "rb") as file:
        try:
            while block := file.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def utf8_blocks(path: Path, codec: str) -> Iterator[bytes]:
    """Yield a file in blocks of UTF-8, checked; what is UTF-8 already passes as it is."""
    decoder = None if codec.startswith("utf-8") else codecs.getincrementaldecoder(codec)()
    lines, since, first = 1, 0, True
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            if decoder is not None:
                block = _transcoded(path, codec, decoder, block)
            elif first:
                block = block.removeprefix(codecs.BOM_UTF8)
            if b"\0" in block:
                raise _nul_bytes(path, lines + block.count(b"\n", 0, block.index(b"\0")))
            lines += block.count(b"\n")
            since = len(block) - block.rfind(b"\n") - 1 if b"\n" in block else since + len(block)
            if since > MAX_LINE:
                problem = f"line {lines} is longer than {MAX_LINE // 2**20} million characters"
                raise TableError(path, problem, "check that this is a table with one row per line")
            first = False
            yield block
    if decoder is not None and (rest := _transcoded(path, codec, decoder, b"")):
        yield rest


def _transcoded(path: Path, codec: str, decoder: Any, block: bytes) -> bytes:
    try:
        return decoder.decode(block, final=not block).encode()
    except UnicodeError as error:
        raise _encoding_error(path, codec, error) from None


def _nul_bytes(path: Path, line: int) -> TableError:
    remedy = "the file is damaged or no text table: get or export it again, as CSV in UTF-8"
    return TableError(path, f"line {line} holds NUL bytes", remedy)


def open_lines(path: Path, text_encoding: str | None = None, after: str = "") -> Iterator[str]:
    """Yield the lines of a text file, and what comes `after` it."""
    stream = Utf8Stream(utf8_blocks(path, recognise(path, text_encoding)), after.encode())
    return io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", newline="")


def _encoding_error(path: Path, codec: str, error: UnicodeError) -> TableError:
    where = f" (byte 0x{error.object[error.start]:02x})" if isinstance(error, UnicodeDecodeError) else ""
    problem = f"the text is not {codec.removesuffix('-sig')}{where}"
    return TableError(path, problem, "save it as UTF-8, or name its encoding (--encoding)", (), "--encoding")


class Utf8Stream(io.RawIOBase):
    """Blocks of bytes as a file, with something after their end; `told` hears how many bytes came."""

    def __init__(self, blocks: Iterator[bytes], after: bytes, told: Callable[[int], None] | None = None):
        self._blocks = itertools.chain(blocks, [after])
        self._ready = memoryview(b"")
        self._told = told

    def readable(self) -> bool:
        return True

    def readall(self) -> bytes:
        parts = []
        for block in self._blocks:
            parts.append(block)
            if self._told is not None:
                self._told(len(block))
        return b"".join(parts)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._ready = memoryview(block)
            if self._told is not None:
                self._told(len(self._ready))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
