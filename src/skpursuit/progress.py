"""What a long call is doing, and when it must end.

`fit` and its like open a `ProgressMonitor` (`monitoring`), which everything below them finds by
`current_monitor()`: loops note what they do, count where they know their length, and stop when the time is
over. After two seconds a thread writes the last note to the standard error stream. A monitor inside another
ends with it at the latest, and the outer one says what is noted there, or counted where it does not count.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from multiprocessing import parent_process

QUIET_SECONDS = 2.0  # before anything is written; each pause is twice as long as the last


class ProgressMonitor:
    """What a call is doing, and until when it may; one for all its threads."""

    def __init__(self, title: str = "", time_limit: float | None = None) -> None:
        self.title, self.began, self.stopped = title, time.perf_counter(), False
        self.end = None if time_limit is None else self.began + time_limit
        self.notes: list[object] = ["working"]  # a format and its values
        self.counts: list[float] = []  # parts of the work that are done, and about how many there are

    def set_message(self, doing: str, *values: object) -> None:
        """Remember what is being done, as a format and its values."""
        self.notes[:] = doing, *values

    def set_total(self, parts: float) -> None:
        """Begin to count parts of the work, of which there are about so many."""
        self.counts[:] = 0.0, parts

    def advance_by(self, parts: float = 1.0) -> None:
        """Add parts that are done; nothing where none are expected."""
        if self.counts:
            self.counts[0] += parts

    @property
    def fraction_done(self) -> float | None:
        """About how much of the work is done, None where nobody counts."""
        counts = tuple(self.counts)  # which another thread may clear
        return min(0.99, counts[0] / max(1.0, counts[1])) if counts else None

    def out_of_time(self) -> bool:
        """Whether there is no time left; whoever asks stops then."""
        late = self.end is not None and time.perf_counter() >= self.end
        self.stopped |= late
        return late

    @contextmanager
    def time_share(self, share: float | None) -> Iterator[None]:
        """Give this thread a share of the time that is left, or with None as much as it takes."""
        inner, now = copy(self), time.perf_counter()
        if self.end is not None:
            inner.end = None if share is None else now + share * (self.end - now)
        token = _current.set(inner)
        try:
            yield
        finally:
            _current.reset(token)
            self.stopped |= inner.stopped

    def __str__(self) -> str:
        spent, share = time.perf_counter() - self.began, self.fraction_done
        left = f", about {spent * (1 - share) / share:.0f} s left" if share else ""
        return f"{self.title}: {str(self.notes[0]).format(*self.notes[1:])} ({spent:.0f} s{left})"


NO_MONITOR = ProgressMonitor()  # of calls outside of any monitor
_current: ContextVar[ProgressMonitor] = ContextVar("monitor", default=NO_MONITOR)
current_monitor = _current.get  # the monitor of the call that this is part of


@contextmanager
def monitoring(
    title: str, verbose: bool | int | str = False, time_limit: float | None = None
) -> Iterator[ProgressMonitor]:
    """Open a monitor that reports if `verbose`, and warns at the end if the time limit has stopped something.

    `verbose` "auto" reports in a terminal or a notebook, where no call around this one reports already.
    """
    monitor, outer, done = ProgressMonitor(title, time_limit), current_monitor(), threading.Event()
    if outer is not NO_MONITOR:
        monitor.notes, monitor.counts = outer.notes, monitor.counts if outer.counts else outer.counts
    inherits = outer.end is not None and (monitor.end is None or outer.end <= monitor.end)
    monitor.end = outer.end if inherits else monitor.end
    if isinstance(verbose, str):  # someone looks at the stream of the main thread of the main process
        main = threading.current_thread() is threading.main_thread() and parent_process() is None
        seen = type(sys.stderr).__module__.startswith("ipykernel") or (sys.stderr and sys.stderr.isatty())
        verbose = bool(outer is NO_MONITOR and main and seen)

    def report() -> None:
        """Write the last note until the call is done, in lines that come more and more rarely."""
        pause = QUIET_SECONDS
        while not done.wait(pause):
            sys.stderr.write(f"{monitor}\n")
            sys.stderr.flush()
            pause *= 2

    if verbose:
        threading.Thread(target=report, daemon=True).start()
    token = _current.set(monitor)
    try:
        yield monitor
    finally:
        done.set()
        _current.reset(token)
        monitor.counts.clear()
    if inherits:
        outer.stopped |= monitor.stopped
    elif monitor.stopped:
        from sklearn.exceptions import ConvergenceWarning

        from skpursuit.parameters import warn_user  # NumPy too is not imported for a monitor alone

        words = f"{title}: stopped by time_limit={time_limit:g}; raise it for a better result"
        warn_user(words, ConvergenceWarning)
