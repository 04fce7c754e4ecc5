"""A small grid in a process of its own, for tests that kill it: grid_program.py FOLDER JOBS."""

import os
import sys
import time

from skpursuit.apps.studies.grid import Experiment, run_experiment


def work(cell):
    time.sleep(0.01)
    value = (cell["x"] * 7919 + cell["trial"] * 104729) % 1000 / 1000
    rows = [
        {"method": m, "score": value + i, "seconds": time.time()}
        for i, m in enumerate("abc"[: 1 + cell["x"] % 3])
    ]
    return [{**row, "pid": os.getpid()} for row in rows]


def experiment(cells=60):
    grid = [{"x": x, "trial": trial} for x in range(cells // 5) for trial in range(5)]
    return Experiment("toy", grid, work, ("x", "trial", "method", "score", "seconds", "pid"))


if __name__ == "__main__":
    run_experiment(experiment(cells=200), sys.argv[1], jobs=int(sys.argv[2]))
