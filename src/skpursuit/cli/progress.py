"""Progress for people: a bar on a terminal, a line every ten seconds elsewhere, nothing for what is quick."""

from __future__ import annotations

import sys
import threading
import time

import click

from skpursuit.cli.base import Output

SOON = 2.0  # seconds before anything is shown
EVERY = 10.0  # seconds between lines where there is no terminal


class Meter:
    """Shows what is being done and how long it will still take; a context manager.

    Parameters
    ----------
    out : Output
        Says whether anything is shown.
    soon, every : float
        Seconds before the first sign, and between lines.
    """

    def __init__(self, out: Output, soon: float = SOON, every: float = EVERY) -> None:
        self.quiet = out.quiet
        self.soon, self.every = soon, every
        self.words, self.share, self.began = "", 0.0, time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Meter:
        if not self.quiet:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def __call__(self, words: str, share: float) -> None:
        """Say what is being done, and the share of it that is."""
        if share < self.share or not self.words:
            self.began = time.monotonic()
        self.words, self.share = words, min(1.0, share)

    def line(self) -> str:
        """Say how far it is, in words."""
        elapsed = time.monotonic() - self.began
        text = f"{self.words}: {self.share:.0%}, {spell(elapsed)}"
        if 0.01 < self.share < 1:
            text += f", about {spell(elapsed * (1 - self.share) / self.share)} left"
        return text

    def _watch(self) -> None:
        if self._ended.wait(self.soon):
            return
        if sys.stderr.isatty():
            self._bar()
            return
        while not self._ended.wait(self.every - self.soon):
            click.echo(self.line(), err=True)
            self._ended.wait(self.soon)

    def _bar(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as progress:
            task, last = progress.add_task(self.words, total=1.0), 0.0
            while not self._ended.wait(0.2):
                if self.share < last:
                    progress.reset(task, total=1.0)
                last = self.share
                progress.update(task, description=self.words, completed=last)


def spell(seconds: float) -> str:
    """Spell a duration as people do."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
