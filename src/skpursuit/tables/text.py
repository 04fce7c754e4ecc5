"""Lines of a text file, with the checks that every text format needs."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from .errors import TableError, show

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


def open_lines(path: Path, text_encoding: str = "utf-8") -> Generator[str]:
    """Yield the lines of a text file; a `TableError` for anything that is not text in that encoding."""
    check_readable(path)
    encoding = "utf-8-sig" if text_encoding.lower().replace("_", "-") in ("utf-8", "utf8") else text_encoding
    _refuse_binary(path, encoding)
    try:
        with open(path, encoding=encoding, newline="") as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                _check_line(path, number, line)
                yield line
    except UnicodeError as error:
        raise _encoding_error(path, text_encoding, error) from None
    except LookupError:
        problem = f"no text encoding is called {show(text_encoding)}"
        raise TableError(path, problem, "try utf-8 or latin-1") from None


def check_readable(path: Path) -> None:
    """Refuse what is not there, not a file, not ours to read, or empty."""
    try:
        with open(path, "rb") as file:
            first = file.read(1)
    except FileNotFoundError:
        raise TableError(path, "there is no such file", "check the name") from None
    except IsADirectoryError:
        raise TableError(path, "this is a folder", "give a file") from None
    except OSError as error:
        raise TableError(path, f"cannot be read ({error.strerror})", "check the file's permissions") from None
    if not first:
        raise TableError(path, "the file is empty", "give a file with a header and rows of data")


def _refuse_binary(path: Path, encoding: str) -> None:
    with open(path, "rb") as file:
        head = file.read(65536)
    for magic, kind in _BINARY.items():
        if head.startswith(magic):
            raise TableError(
                path, f"this is a {kind}, not text", "unpack or export it, or correct its extension"
            )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) and not encoding.lower().startswith("utf-16"):
        raise TableError(path, "the text is UTF-16", "say so (--encoding utf-16) or save it as UTF-8")
    if b"\0" in head and not encoding.lower().startswith(("utf-16", "utf-32")):
        raise TableError(
            path, "the file holds NUL bytes, so it is not a text table", "export it as CSV in UTF-8"
        )


def _check_line(path: Path, number: int, line: str) -> None:
    if len(line) > MAX_LINE:
        problem = f"line {number} is longer than {MAX_LINE // 2**20} million characters"
        raise TableError(path, problem, "check that this is a table with one row per line")
    if "\0" in line:
        raise TableError(
            path, f"line {number} holds NUL bytes", "the file is damaged: get or export it again"
        )


def _encoding_error(path: Path, text_encoding: str, error: UnicodeError) -> TableError:
    where = f" (byte 0x{error.object[error.start]:02x})" if isinstance(error, UnicodeDecodeError) else ""
    problem = f"the text is not {text_encoding}{where}"
    return TableError(
        path, problem, "name its encoding (--encoding latin-1 is a common one) or save it as UTF-8"
    )
