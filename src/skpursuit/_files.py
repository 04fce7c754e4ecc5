"""Files: the error for a bad one, and writing that leaves the old or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import secrets
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
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(temporary, target.stat().st_mode & 0o777)  # as the file that is replaced
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
