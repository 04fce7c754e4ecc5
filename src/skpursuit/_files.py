"""Files: the error for a bad one, and writing that leaves the old or the new one, never half of it.

A file is written under another name beside its place and then renamed. A process that is killed meanwhile
leaves that other file behind, so whoever writes to the same place next removes it. It may belong to a process
that is alive and still writing: a writer holds a lock on its file until it is renamed, the system takes the
lock from a dead one, and a file that is locked stays. (Windows has no such locks, and refuses to remove a
file that is open.)
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class FileError(ValueError):
    """A file that cannot be used: one line that names it, what is wrong and the remedy."""

    def __init__(self, path: str | os.PathLike[str], problem: str, remedy: str):
        self.path, self.problem, self.remedy = os.fspath(path), problem, remedy
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
    remove_leftovers(target)
    with _temporary(target) as (file, temporary):
        with _naming(target):
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, target.stat().st_mode & 0o777)  # as the file that is replaced
        if fcntl is None:
            file.close()  # Windows renames no open file
        yield lambda: _replace(temporary, target)


def remove_leftovers(target: Path) -> None:
    """Remove what writers of this file or folder left beside it when they were killed."""
    with contextlib.suppress(OSError):  # a folder that cannot be listed: writing to it will tell
        ours = re.compile(re.escape(f".{target.name}.") + r"[0-9a-f]{16}\.tmp")
        for name in filter(ours.fullmatch, os.listdir(target.parent)):
            with contextlib.suppress(OSError), locked(target.parent / name):
                left = target.parent / name
                shutil.rmtree(left) if left.is_dir() else os.unlink(left)


def beside(target: Path) -> Path:
    """A new name for what is written before it is renamed to the target."""
    return target.parent / f".{target.name}.{secrets.token_hex(8)}.tmp"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or a folder; OSError if its writer has it."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A new, locked file beside the target, which is gone in the end unless it was renamed."""
    mode = 0o600 if target.exists() else 0o666
    while True:
        path = beside(target)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags, mode), "wb")
        if fcntl is not None:
            with contextlib.suppress(OSError):  # some network drives have no locks; then nobody gets one
                fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        if path.exists():  # or someone took it for a leftover before it was locked
            break
        file.close()
    try:
        yield file, path
    finally:
        with contextlib.suppress(OSError):  # the rest of what the disk had no room for
            file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _write_directly(path: str | os.PathLike[str], data: bytes) -> None:
    with _naming(path), open(path, "wb") as file:
        file.write(data)


@contextlib.contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Give errors of the system that name no file, such as a full disk, the name of the one being written."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _replace(temporary: Path, target: Path) -> None:
    """Rename a file, and make that survive a power cut where the system can."""
    os.replace(temporary, target)
    with contextlib.suppress(OSError):
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
