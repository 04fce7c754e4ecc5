"""Text files in any common encoding, read as UTF-8.

A byte order mark, or zero bytes at every second place, means UTF-16; valid UTF-8 is UTF-8; anything else is
read as Windows-1252. Compressed files (gzip, bzip2, xz, a zip archive of one file) are decompressed.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from .columns import ReadOptions
from .errors import TableProblem

READ_BYTES = 2**22  # at a time
#: A longer line is taken for a file that is not a table (a table of 100 000 columns stays well below).
MAX_LINE = 16 * 2**20
_ZIP = b"PK\x03\x04"
_BINARY = {
    b"PAR1": "Parquet file",
    _ZIP: "zip archive of several files (a spreadsheet or an npz file?)",
    b"\x89HDF": "HDF5 file",
    b"\x89PNG": "picture",
    b"%PDF": "PDF document",
    b"\xd0\xcf\x11\xe0": "old spreadsheet",
    b"\x93NUMPY": "NumPy array",
    b"SQLite format 3": "SQLite database",
}
_UNPACKING: dict[bytes, Callable[[Path], io.BufferedIOBase]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")
#: What unpacking raises, of archives with a password too.
_DAMAGED = (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
#: Letters and signs of western languages in UTF-8, as they look in Windows-1252: Ã¼, Â°, â€œ
_LATER = "[" + "".join(re.escape(bytes([b]).decode("cp1252", "ignore")) for b in range(0x80, 0xC0)) + "]"
MIXED = re.compile(f"Ã{_LATER}|Â[\xa0-\xbf]|â[€‚]{_LATER}")


@dataclass(frozen=True)
class TextFile:
    """The content of a text file as UTF-8, and what is peculiar about it."""

    content: bytearray
    mixed: str = ""  # the first line that is UTF-8 where the file as a whole is Windows-1252

    def lines(self, stop: int | None = None) -> io.TextIOWrapper:
        """Return the lines up to a byte, with their line breaks as they are."""
        return io.TextIOWrapper(io.BytesIO(self.content[:stop]), "utf-8", newline="")

    def line_lengths(self) -> np.ndarray:
        """Return the bytes of each line, its line break included."""
        ends = np.flatnonzero(np.frombuffer(self.content, dtype=np.uint8) == ord("\n"))
        return np.diff(ends, prepend=-1, append=len(self.content) - 1)


def _open(path: Path) -> IO[bytes] | io.BufferedIOBase:
    """Open a file for reading bytes, unpacked where it is packed."""
    with open(path, "rb") as file:
        head = file.read(6)
    for magic, unpack in _UNPACKING.items():
        if head.startswith(magic):
            return unpack(path)
    inside = _members(path) if head.startswith(_ZIP) else []
    if len(inside) != 1:
        return open(path, "rb")
    with zipfile.ZipFile(path) as archive:
        return archive.open(inside[0])  # which keeps the file open for as long as it needs it


def _members(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [name for name in archive.namelist() if not name.startswith("__MACOSX/")]


def uncompressed_name(path: Path) -> Path:
    """Return the name of a file without that of its packing; of a zip archive of one file, that file's."""
    if path.suffix.lower() != ".zip":
        return path.with_suffix("") if path.suffix.lower() in COMPRESSED_SUFFIXES else path
    try:
        (inside,) = _members(path)
    except _DAMAGED:
        raise TableProblem("packed") from None
    except ValueError:
        raise TableProblem("not text", kind=_BINARY[_ZIP]) from None
    return Path(inside)


def check_readable(path: Path) -> None:
    """Refuse a file that is missing, a folder, unreadable or empty."""
    try:
        with open(path, "rb") as file:
            first = file.read(1)
    except FileNotFoundError:
        raise TableProblem("no such file") from None
    except IsADirectoryError:
        raise TableProblem("a folder") from None
    except (OSError, ValueError) as error:
        raise TableProblem("unreadable", words=getattr(error, "strerror", None) or error) from None
    if not first:
        raise TableProblem("empty file")


def read_text(path: Path, options: ReadOptions) -> TextFile:
    """Read a text file in the encoding that is asked for, or recognise it; refuse what is no text."""
    content, asked = _unpacked(path, options), options.text_encoding
    codecs_tried = _likely(content) if asked is None else ["utf-8-sig" if asked.lower() == "utf-8" else asked]
    for codec in codecs_tried:
        try:
            text = content.decode(codec)
        except LookupError:
            raise TableProblem("unknown encoding", asked=asked) from None
        except UnicodeError:
            continue
        if "\0" in text:
            raise TableProblem("NUL bytes", line=text.count("\n", 0, text.index("\0")) + 1)
        mixed = MIXED.search(text) if codec == "cp1252" else None
        line = text[text.rfind("\n", 0, mixed.start()) + 1 :].partition("\n")[0] if mixed else ""
        if codec == "utf-8-sig":  # most files: without a copy
            del content[: len(codecs.BOM_UTF8) * content.startswith(codecs.BOM_UTF8)]
        else:
            content = bytearray(text, "utf-8", "replace")
        lengths = (found := TextFile(content, line)).line_lengths()
        if lengths.max() > MAX_LINE:
            raise TableProblem("long line", line=lengths.argmax() + 1, most=MAX_LINE // 2**20)
        return found
    if b"\0" in content:
        raise TableProblem("NUL bytes", line=content.count(b"\n", 0, content.index(b"\0")) + 1)
    name = codecs_tried[-1].removesuffix("-sig")
    raise TableProblem("no encoding" if asked is None else "other encoding", codec=name)


def _unpacked(path: Path, options: ReadOptions) -> bytearray:
    """Return the bytes of a file, unpacked where it is packed; refuse those that are no text."""
    content = bytearray()
    try:
        with _open(path) as file:
            while block := file.read(READ_BYTES):
                content += block
                for magic, kind in _BINARY.items():
                    if content.startswith(magic):
                        raise TableProblem("not text", kind=kind)
                options.check_room(len(content), tell=False)  # at once: what is packed may have no end
    except _DAMAGED:
        raise TableProblem("packed") from None
    options.check_room(len(content))
    return content


def _likely(content: bytearray) -> list[str]:
    """Return the codecs that a file of this content may be in, the likeliest first."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ["utf-16"]
    first, second = content[:200:2], content[1:200:2]
    for codec, zeros, letters in (("utf-16-le", second, first), ("utf-16-be", first, second)):
        if len(zeros) > 1 and zeros.count(0) > 0.8 * len(zeros) and letters.count(0) == 0:
            return [codec]
    return ["utf-8-sig", "cp1252"]
