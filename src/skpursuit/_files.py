"""Files: the error for a bad one, and writing that leaves the old or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path


class FileError(ValueError):
    """A file that cannot be used: one line that names it, what is wrong and the remedy."""

    def __init__(self, path: str | os.PathLike[str], problem: str, remedy: str):
        self.path = os.fspath(path)
        self.problem = problem
        self.remedy = remedy
        super().__init__(" ".join(f"{self.path}: {problem}; {remedy}".split()))

    def __reduce__(self) -> tuple:
        """Survive the way back from a worker process (the default passes only the message)."""
        return type(self), (self.path, self.problem, self.remedy)


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that a reader, a full disk or a kill at any moment never meets half of it."""
    with prepared(path, content) as put:
        put()


@contextlib.contextmanager
def prepared(path: str | os.PathLike[str], content: str | bytes) -> Iterator[Callable[[], None]]:
    """Have the content on the disk beside its place, so that putting it there can hardly fail.

    Parameters
    ----------
    path : path
        The file. A link is followed; what is no plain file (a pipe, ``/dev/null``) is written to as it is.
    content : str or bytes
        All of it.

    Yields
    ------
    callable
        Puts the file in its place; without that call there is nothing new at the end.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    if os.path.exists(path) and not os.path.isfile(path):
        yield lambda: _write_directly(path, data)
        return
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:
        _write_synced(temporary, data, 0o600 if target.exists() else 0o666)
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, target.stat().st_mode & 0o777)  # as the file that is replaced
        yield lambda: _replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _write_directly(path: str | os.PathLike[str], data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _write_synced(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _replace(temporary: Path, target: Path) -> None:
    os.replace(temporary, target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
