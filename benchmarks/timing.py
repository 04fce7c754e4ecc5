"""Best times of several functions, interleaved in one process on one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
threadpool_limits(THREADS)  # of the BLAS already loaded; kernels follow it
# A virtual machine may give memory back to its host a second or two after it was freed, and then takes 2 ms a
# megabyte to get it again (0.1 otherwise). Who allocates would pay for how long the others took. BALLAST=0 in
# the environment leaves it at that.
BALLAST = int(os.environ.get("BALLAST", "600000000"))


def best_times(
    functions: dict[str, Callable[[], Any]], repeats: int = 3, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """CPU seconds of the fastest run of each function (others disturb them less); they take turns.

    Before each run memory is touched and freed again, so that it is the machine's own. Give
    `time.perf_counter` to compare numbers of threads.
    """
    threadpool_limits(THREADS)  # of a BLAS that was loaded since, scipy's for one
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            np.empty(BALLAST, np.uint8)[::4096] = 1
            began = clock()
            function()
            best[name] = min(best[name], clock() - began)
    return best
