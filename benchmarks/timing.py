"""Best times of several functions, interleaved in one process on one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
threadpool_limits(THREADS)  # of the BLAS already loaded; kernels follow it


def best_times(
    functions: dict[str, Callable[[], Any]], repeats: int = 3, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """CPU seconds of the fastest run of each function (others disturb them less); they take turns.

    Give `time.perf_counter` to compare numbers of threads.
    """
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            began = clock()
            function()
            best[name] = min(best[name], clock() - began)
    return best
