"""Files that a command writes: checked before the work, all written after it, or none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from skpursuit._files import prepared
from skpursuit.cli.base import Refusal


def check_outputs(inputs: Iterable[Path], outputs: dict[str, Path | None]) -> None:
    """Refuse early what could not, or should not, be written at the end; outputs are by their options."""
    taken = list(inputs)
    for option, path in outputs.items():
        if path is None:
            continue
        if os.path.isdir(path) or not os.path.isdir(path.absolute().parent):
            what = "this is a folder" if os.path.isdir(path) else f"there is no folder {path.parent}"
            raise Refusal(f"{path}: {what}; give a file in a folder that exists ({option})")
        if any(_same(path, other) for other in taken):
            raise Refusal(f"{path}: this command has another use for that file; give another one ({option})")
        taken.append(path)


def _same(one: Path, other: Path) -> bool:
    """Whether two names are those of one plain file, which may not exist yet."""
    if os.path.exists(one) and os.path.exists(other):
        return os.path.isfile(one) and os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def write_all(files: Iterable[tuple[Path, str, str | bytes]]) -> None:
    """Write files, each given with its option and its content; none if one of them cannot be written."""
    with contextlib.ExitStack() as stack:
        ready = []
        for path, option, content in files:
            with _writing(path, option):
                ready.append((path, option, stack.enter_context(prepared(path, content))))
        for path, option, put in ready:
            with _writing(path, option):
                put()


@contextlib.contextmanager
def _writing(path: Path, option: str) -> Iterator[None]:
    """Turn a file that cannot be written into one line."""
    try:
        yield
    except OSError as error:
        raise Refusal(
            f"{path}: cannot be written ({error.strerror or error}); give another file ({option})"
        ) from None
