"""Numbered cases in child processes, so that a crash or a hang is one fault with a number, not the end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def outcomes(command: list[str], first: int, last: int, silence: float) -> Iterator[tuple[int, Any, str]]:
    """Number, outcome and "" of each case; None and what became of the process where a case ended it.

    The command gets `--work FIRST:LAST` and prints a line of JSON for each case. A child that dies, or says
    nothing for `silence` seconds, is replaced by one that begins behind its case.
    """
    while first < last:
        full = [*command, "--work", f"{first}:{last}"]
        with subprocess.Popen(full, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD) as child:
            try:
                for line in lines(child, silence):
                    yield first, json.loads(line), ""
                    first += 1
            finally:
                hung = child.poll() is None and first < last
                child.kill()
        if first < last:
            yield first, None, "the process hung" if hung else f"exit code {child.returncode}"
            first += 1


def lines(child: subprocess.Popen, silence: float) -> Iterator[bytes]:
    """Lines of a child, until it ends or is silent for too long."""
    buffer = b""
    while select.select([child.stdout], [], [], silence)[0]:
        chunk = os.read(child.stdout.fileno(), 65536)
        if not chunk:
            child.wait()
            return
        *whole, buffer = (buffer + chunk).split(b"\n")
        yield from whole


class OutOfTime(BaseException):
    """A case took too long."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End what is done meanwhile after so many seconds of processor time."""

    def late(*_: Any) -> None:
        raise OutOfTime(f"no answer after {seconds:g} seconds")

    signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
