"""Text files in any common encoding, as blocks of UTF-8.

A byte order mark, or zero bytes at every second place, means UTF-16; valid UTF-8 is UTF-8; anything else is
read as Windows-1252. `inspect_text` decides this in one pass over the file, which also finds what no table
contains, so later passes need no checks. Compressed files (gzip, bzip2, xz, a zip archive of one file) are
decompressed while they are read.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import itertools
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .columns import ReadOptions
from .errors import TableProblem

TEXT_BLOCK_CHARS = 2**22  # characters
LINES = 2**14  # of a block where they are read one by one
TAIL = 4096  # characters at the end that are kept
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
_UNPACKING: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz")
#: What unpacking raises, of archives with a password too.
_DAMAGED = (EOFError, OSError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
#: Letters and signs of western languages in UTF-8, as they look in Windows-1252: Ã¼, Â°, â€œ
_LATER = "[" + "".join(re.escape(bytes([b]).decode("cp1252", "ignore")) for b in range(0x80, 0xC0)) + "]"
MIXED = re.compile(f"Ã{_LATER}|Â[\xa0-\xbf]|â[€‚]{_LATER}")
_EMPTY_FIRST_CELL = re.compile("\n[,;\t|]")


@dataclass(frozen=True)
class TextFile:
    """A text file that was examined."""

    path: Path
    codec: str  # how it spells characters
    quotes: bool = False  # whether there are any, and so perhaps line breaks inside cells
    blanks: bool = False  # whether a line begins with a separator, and so may hold nothing else
    tail: str = ""  # the end of the text
    n_lines: int = 0  # that are not empty, or more
    longest: int = 0  # characters of the longest line that goes beyond a block
    mixed: str = ""  # the first line that is UTF-8 where the file as a whole is Windows-1252
    whitespace_separated: bool = False  # whether any number of spaces is between columns, and read as a tab

    def lines(self) -> Generator[str, None, None]:
        """Yield the lines, with their line breaks as they are."""
        with open_text(self.path, self.codec) as file:
            yield from (
                "\t".join(line.split()) + "\n" if self.whitespace_separated else line for line in file
            )

    def blocks(self, progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
        """Yield the text as blocks of UTF-8; `progress` hears how many bytes came."""
        with open_text(self.path, self.codec) as file, closing(self.lines()) as lines:
            while (
                text := "".join(itertools.islice(lines, LINES))
                if self.whitespace_separated
                else file.read(TEXT_BLOCK_CHARS)
            ):
                block = text.encode("utf-8", "replace")
                if progress is not None:
                    progress(len(block))
                yield block


def open_bytes(path: Path) -> Any:
    """Open a file for reading bytes, unpacked where it is packed."""
    with open(path, "rb") as file:
        head = file.read(6)
    for magic, unpack in _UNPACKING.items():
        if head.startswith(magic):
            return unpack(path, "rb")
    inside = _members(path) if head.startswith(_ZIP) else []
    if len(inside) != 1:
        return open(path, "rb")
    with zipfile.ZipFile(path) as archive:
        return archive.open(inside[0])  # which keeps the file open for as long as it needs it


def open_text(path: Path, codec: str) -> io.TextIOWrapper:
    """Open a file for reading text, line breaks as they are; LookupError if no such codec is known."""
    codecs.lookup(codec)
    return io.TextIOWrapper(open_bytes(path), codec, newline="")


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


def inspect_text(path: Path, options: ReadOptions) -> TextFile:
    """Recognise the encoding of a text file, or check the one that is asked for; refuse what is no text."""
    check_readable(path)
    asked = options.text_encoding
    try:
        with open_bytes(path) as file:
            head = file.read(65536)
    except _DAMAGED:
        raise TableProblem("packed") from None
    for magic, kind in _BINARY.items():
        if head.startswith(magic):
            raise TableProblem("not text", kind=kind)
    candidates = _likely(head) if asked is None else ["utf-8-sig" if asked.lower() == "utf-8" else asked]
    for codec in candidates:
        try:
            return _examined(path, codec, options)
        except LookupError:
            raise TableProblem("unknown encoding", asked=asked) from None
        except UnicodeError:
            continue
        except _DAMAGED:
            raise TableProblem("packed") from None
    codec = candidates[-1].removesuffix("-sig")
    raise TableProblem("no encoding" if asked is None else "other encoding", codec=codec)


def _likely(head: bytes) -> list[str]:
    """Return the codecs that a file with this beginning may be in, the likeliest first."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ["utf-16"]
    first, second = head[:200:2], head[1:200:2]
    for codec, zeros, letters in (("utf-16-le", second, first), ("utf-16-be", first, second)):
        if len(zeros) > 1 and zeros.count(0) > 0.8 * len(zeros) and letters.count(0) == 0:
            return [codec]
    if b"\0" in head:
        raise TableProblem("NUL bytes", line=head.count(b"\n", 0, head.index(b"\0")) + 1)
    return ["utf-8-sig", "cp1252"]


def _examined(path: Path, codec: str, options: ReadOptions) -> TextFile:
    size, lines, empty, since, longest, quotes, blanks, tail, mixed = 0, 1, 0, 0, 0, False, False, "", ""
    with open_text(path, codec) as file:
        while text := file.read(TEXT_BLOCK_CHARS):
            if "\0" in text:
                raise TableProblem("NUL bytes", line=lines + text.count("\n", 0, text.index("\0")))
            size += len(text)
            options.check_room(size, tell=False)  # at once: what is packed may have no end
            lines += text.count("\n")
            empty += text.count("\n\n") + text.count("\n\r\n")
            longest = max(longest, since + (text.find("\n") + 1 or len(text)))
            since = len(text) - text.rfind("\n") - 1 if "\n" in text else since + len(text)
            if since > MAX_LINE:
                raise TableProblem("long line", line=lines, most=MAX_LINE // 2**20)
            if codec == "cp1252" and not mixed and (match := MIXED.search(text)):
                mixed = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
            quotes = quotes or '"' in text
            blanks = blanks or _EMPTY_FIRST_CELL.search(text) is not None
            tail = (tail + text[-TAIL:])[-TAIL:]
    options.check_room(size)
    return TextFile(path, codec, quotes, blanks, tail, lines - empty - tail.endswith("\n"), longest, mixed)


class BlockStream(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterable[bytes]):
        self._blocks = filter(None, blocks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or memoryview(next(self._blocks, b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
