"""Files: the error for a bad one, and writing that leaves the old or the new content, never half of it."""

import glob
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class FileError(ValueError):
    """A file that cannot be used: one line that names it, what is wrong and the remedy."""

    def __init__(self, path: str | os.PathLike[str], problem: str, remedy: str):
        self.path, self.problem, self.remedy = os.fspath(path), problem, remedy
        super().__init__(" ".join(f"{self.path}: {problem}; {remedy}".split()))

    def __reduce__(self) -> tuple:  # the default passes only the message back from another process
        return type(self), (self.path, self.problem, self.remedy)


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file so that a reader, a full disk or a kill at any moment never meets half of it."""
    with staged_write(path, content) as put:
        put()


@contextmanager
def staged_write(path: str | os.PathLike[str], content: str | bytes) -> Iterator[Callable[[], object]]:
    """Have the content on the disk beside its place; yields what puts it there, which can hardly fail."""
    target, data = Path(os.path.realpath(path)), content.encode() if isinstance(content, str) else content
    if target.exists() and not target.is_file():  # a pipe, /dev/null
        yield lambda: target.write_bytes(data)
        return
    with beside(target) as made:
        try:
            with open(made, "xb") as file:
                if target.exists():
                    made.chmod(target.stat().st_mode & 0o777)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # that of a full disk names no file
            raise OSError(error.errno, error.strerror or str(error), str(target)) from error
        yield lambda: os.replace(made, target)


@contextmanager
def beside(target: Path, abandoned: float = 3600.0) -> Iterator[Path]:
    """A new name beside a file or folder; what has it in the end, or was left by a killed writer, goes."""
    made = target.parent / f".{target.name}.{os.urandom(8).hex()}.tmp"
    try:
        yield made
    finally:
        for left in target.parent.glob(f".{glob.escape(target.name)}.{'[0-9a-f]' * 16}.tmp"):
            with suppress(OSError):
                if left == made or left.stat().st_mtime < time.time() - abandoned:
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
