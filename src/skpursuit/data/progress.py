"""What a long call is doing, and when it must end.

`fit` and its like open a `Watch` (`watching`), which everything below them finds by `current()`: loops note
what they do (`note`, which costs next to nothing) and stop when the time is over (`Watch.over`). A call that
takes longer than two seconds then says what it is doing: a thread of the watch writes the last note to the
standard error stream, by rich where that is installed, so that a long product or a compiler is not silent
either. Loops that know their length count (`expect`, `count`), which gives an estimate of the time left. A
pass over X on disk counts its bytes (`Meter`) and notes them. A watch inside another ends with it at the
latest, and what is noted there, or counted where the outer one does not, the outer one says.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from copy import copy
from multiprocessing import parent_process
from typing import Any, NamedTuple

PATIENCE = 2.0  # seconds before anything is told
OFTEN = 0.5  # seconds between two reports


class Watch:
    """What a call is doing, and until when it may; one for all its threads.

    Parameters
    ----------
    title : str
        What was called.
    time_limit : float, optional
        Seconds until `over` is true.
    """

    def __init__(self, title: str = "", time_limit: float | None = None) -> None:
        self.title, self.began, self.stopped = title, time.perf_counter(), False
        self.end = None if time_limit is None else self.began + time_limit
        self.notes: list[Any] = ["working"]
        self.counts: list[float] = []  # parts of the work that are done, and about how many there are

    def expect(self, parts: float) -> None:
        """Begin to count parts of the work, of which there are about so many."""
        self.counts[:] = 0.0, parts

    def count(self, parts: float = 1.0) -> None:
        """Add parts that are done; nothing where none are expected."""
        if self.counts:
            self.counts[0] += parts

    @property
    def share(self) -> float | None:
        """About how much of the work is done, None where nobody counts."""
        counts = tuple(self.counts)  # which another thread may clear
        return min(0.99, counts[0] / max(1.0, counts[1])) if counts else None

    def note(self, doing: str, *values: Any) -> None:
        """Remember what is being done, as a format and its values."""
        self.notes[:] = doing, *values

    def over(self) -> bool:
        """Whether there is no time left; whoever asks stops then."""
        if self.end is None or time.perf_counter() < self.end:
            return False
        self.stopped = True
        return True

    @contextmanager
    def part(self, share: float | None) -> Iterator[None]:
        """Give this thread a share of the time that is left, or with None as much as it takes."""
        inner = copy(self)
        if self.end is not None:
            now = time.perf_counter()
            inner.end = None if share is None else now + share * (self.end - now)
        token = _current.set(inner)
        try:
            yield
        finally:
            _current.reset(token)
            self.stopped |= inner.stopped

    @property
    def doing(self) -> str:
        """The last note."""
        words, *values = self.notes
        return str(words.format(*values))

    def __str__(self) -> str:
        spent, share = time.perf_counter() - self.began, self.share
        left = f", about {spent * (1 - share) / share:.0f} s left" if share else ""
        return f"{self.title}: {self.doing} ({spent:.0f} s{left})"


NOBODY = Watch()  # calls outside of any watch
_current: ContextVar[Watch] = ContextVar("watch")


def current() -> Watch:
    """The watch of the call that this is part of."""
    return _current.get(NOBODY)


@contextmanager
def watching(title: str, verbose: Any = False, time_limit: float | None = None) -> Iterator[Watch]:
    """Open a watch that speaks if `verbose`, and warns at the end if the time limit has stopped something.

    `verbose` "auto" speaks where somebody looks: in a terminal or a notebook, and not in a worker process. A
    call that this one is part of speaks for both.
    """
    watch, outer = Watch(title, time_limit), current()
    if outer is not NOBODY:
        watch.notes = outer.notes
        watch.note("working")
        watch.counts = watch.counts if outer.counts else outer.counts
    inherits = outer.end is not None and (watch.end is None or outer.end <= watch.end)
    if inherits:
        watch.end = outer.end
    speaks = outer is NOBODY and _looked_at() if isinstance(verbose, str) else verbose
    token = _current.set(watch)
    try:
        with _spoken(watch) if speaks else nullcontext():
            yield watch
    finally:
        _current.reset(token)
        watch.counts.clear()
    if inherits:
        outer.stopped |= watch.stopped
    elif watch.stopped:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"{title}: stopped by time_limit={time_limit:g}; raise it for a better result",
            ConvergenceWarning,
            stacklevel=4,
        )


@contextmanager
def _spoken(watch: Watch) -> Iterator[None]:
    """Let another thread write what a watch says."""
    done = threading.Event()
    speaker = threading.Thread(target=_speak, args=(watch, done), daemon=True)
    speaker.start()
    try:
        yield
    finally:
        done.set()
        speaker.join(OFTEN)  # it gives the cursor back


def _looked_at() -> bool:
    in_main = threading.current_thread() is threading.main_thread() and parent_process() is None
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return in_main and (in_notebook or (sys.stderr is not None and sys.stderr.isatty()))


def _speak(watch: Watch, done: threading.Event) -> None:
    """Write what a watch says, from the third second on until it is done."""
    if done.wait(PATIENCE):
        return
    status = _rich_status(str(watch))
    if status is not None:
        with status:
            while not done.wait(OFTEN):
                status.update(str(watch))
        return
    pause, overwrite = OFTEN, sys.stderr.isatty()
    while True:
        sys.stderr.write(f"\r{watch!s:<78}" if overwrite else f"{watch}\n")
        sys.stderr.flush()
        pause = OFTEN if overwrite else 2 * pause
        if done.wait(pause):
            break
    if overwrite:
        sys.stderr.write("\n")


def _rich_status(text: str) -> Any:
    """A line of rich, or None where it is not installed or the stream cannot show it."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console(stderr=True, markup=False)
    return console.status(text) if console.is_terminal or console.is_jupyter else None


class Progress(NamedTuple):
    """A report about one pass over X.

    Attributes
    ----------
    done, total : int
        Bytes that were read in this pass, and that it will read.
    seconds : float
        Since it began.
    """

    done: int
    total: int
    seconds: float

    @property
    def speed(self) -> float:
        """Bytes a second."""
        return self.done / self.seconds

    @property
    def left(self) -> float:
        """Estimated seconds to the end of this pass."""
        return (self.total - self.done) / self.speed

    def __str__(self) -> str:
        done, total = self.done / 1e9, self.total / 1e9
        return (
            f"read {done:.1f} of {total:.1f} GB, {self.speed / 1e9:.2f} GB/s, pass ends in {self.left:.0f} s"
        )


Listener = Callable[[Progress], object]


class Meter:
    """Notes how far a pass is, and tells a listener from its third second on."""

    def __init__(self, total: int, listener: Listener | None) -> None:
        self.total, self.listener, self.done = total, listener, 0
        self.began = self.told = time.perf_counter()

    def add(self, nbytes: int) -> None:
        """Count what was read."""
        self.done += nbytes
        now = time.perf_counter()
        progress = Progress(self.done, self.total, now - self.began)
        current().note("{}", progress)
        late = now - self.began >= PATIENCE and now - self.told >= OFTEN
        last = self.done == self.total and self.told > self.began
        if self.listener is not None and (late or last):
            self.told = now
            self.listener(progress)
