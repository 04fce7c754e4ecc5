"""Progress of a command: one line, rewritten on a terminal and repeated every ten seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import click

from .program import Output

PROGRESS_DELAY = 2.0  # seconds before progress is shown
PROGRESS_INTERVAL = 10.0  # seconds between its lines where there is no terminal


class ProgressBar:
    """Shows what is being done and how long it will still take; a context manager.

    It takes `soon` seconds before the first sign and, without a terminal, `every` so many between lines.
    Where nobody says the share that is done, the library's own count of folds and the like tells it.
    """

    def __init__(self, out: Output, soon: float = PROGRESS_DELAY, every: float = PROGRESS_INTERVAL) -> None:
        self.quiet = out.quiet
        self.soon, self.every = soon, every
        self.words, self.began = "", time.monotonic()
        self.known: float | None = None
        self.watch: Any = None  # that of the library, while it works
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> ProgressBar:
        if not self.quiet:
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Listen to what the library counts, and have it say nothing by itself."""
        from skpursuit.progress import monitoring

        with monitoring("", verbose=False) as self.watch:
            yield

    def __call__(self, words: str, share: float | None) -> None:
        """Say what is being done, and the share of it that is; None where the library counts it."""
        begins = words != self.words if share is None else self.known is None or share < self.known
        self.began = time.monotonic() if begins else self.began
        self.words, self.known = words, share

    def line(self) -> str:
        """Say how far it is, in words."""
        elapsed, share = time.monotonic() - self.began, self.known
        if share is None and self.watch is not None:
            share = self.watch.fraction_done
        far = f"{min(1.0, share):.0%}" if share is not None else self.watch.doing if self.watch else ""
        text = f"{self.words}: {far and far + ', '}{format_duration(elapsed)}"
        if share is not None and 0.01 < share < 1:
            text += f", about {format_duration(elapsed * (1 - share) / share)} left"
        return text

    def _show(self) -> None:
        terminal = sys.stderr.isatty()
        wait = self.soon if terminal else self.every
        while not self._ended.wait(wait):
            click.echo(f"\r\x1b[K{self.line()}" if terminal else self.line(), nl=not terminal, err=True)
            wait = 0.2 if terminal else self.every
        if terminal:
            click.echo("\r\x1b[K", nl=False, err=True)


def format_duration(seconds: float) -> str:
    """Spell a duration as people do."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
