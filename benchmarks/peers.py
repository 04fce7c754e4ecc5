"""The field side by side: `make bench`, or python benchmarks/peers.py [--quick] [--only TEXT] [--page].

peers.toml is the grid. A row is solved by all its peers in one process, one thread each: a first run, of
which the answer and the peak of new memory are kept, then timed runs in turns, of which the best counts. All
rows again under the next setting of OpenBLAS: the better time stands beside ours of the same process.
Results go to docs/benchmarks.csv after every row; --page makes docs/benchmarks.md and its figure of them.
"""

from __future__ import annotations

from common import BALLAST, CPU, PROCESSOR, Function, memory_of  # isort: skip  # before NumPy

import argparse
import csv
import json
import os
import subprocess
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import peers_tasks
from children import ONE_THREAD, lines

HERE = Path(__file__).parent
GRID = tomllib.loads((HERE / "peers.toml").read_text(encoding="utf-8"))
SETTINGS, TASKS = GRID["settings"], GRID["tasks"]
PACKAGES = {"SPAMS": "spams-bin", "faiss": "faiss-cpu", "NumPy": "numpy"}
OURS = ("skpursuit", "drop-in", "prepared", "swaps", "gain")
ROW = ("task", "family", "n", "d", "k", "dtype")
COLUMNS = (*ROW, "peer", "version", "seconds", "first", "memory", "error", "recovery", "ours")
COLUMNS += ("coretype", "processor", "note")


def grid(quick: bool, only: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and row of every problem."""
    for row in GRID["rows"]:
        axes = [np.atleast_1d(row.get(name, standard)).tolist() for name, standard in
                (("k", 0), ("dtype", "float64"), ("family", ""))]  # fmt: skip
        for k, dtype, family in product(*axes):
            one = {**row, "k": k, "dtype": dtype, "family": family}
            if quick:
                one |= {name: max(row[name] // 5, 40) for name in ("n", "d", "count") if name in row}
                one["peers"] = [peer for peer in row["peers"] if peer not in SETTINGS["slow_start"]]
            name = ", ".join(str(one[key]) for key in ROW if one.get(key))
            if only in name and (not quick or k in row.get("quick", ())):
                yield name, one


def child(row: dict[str, Any]) -> None:
    """Solve a row by its peers; a line of JSON when a run begins, and when it is over."""

    def tell(peer: str, **given: Any) -> None:
        print(json.dumps({"peer": peer, **given}), flush=True)

    tell("")
    makers, worth = getattr(peers_tasks, row["task"])(row)
    functions: dict[str, Function] = {}
    for peer in row["peers"]:
        tell(peer)
        try:
            function = makers[peer]()
            tell(peer, version="" if peer in OURS else version(PACKAGES.get(peer, peer)))
            first, memory, answer = first_run(function)
            tell(peer, first=first, memory=memory, **worth(answer))
            functions[peer] = function
        except Exception as error:
            tell(peer, note=f"{type(error).__name__}: {error}"[:100])
    best = dict.fromkeys(functions, 0.0)
    for turn in range(row["repeats"]):
        for peer, function in functions.items():
            if best[peer] <= SETTINGS["slow"]:
                tell(peer)
                np.empty(BALLAST, np.uint8)[::4096] = 1  # common.py says why
                began = time.process_time()
                function()
                seconds = time.process_time() - began
                best[peer] = min(best[peer], seconds) if turn else seconds
                tell(peer, seconds=best[peer])


def first_run(function: Function) -> tuple[float, float, Any]:
    """Seconds, megabytes of new memory at the peak, and the answer."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = memory_of(os.getpid(), "VmRSS"), time.process_time()
    answer = function()
    return time.process_time() - began, memory_of(os.getpid(), "VmHWM") - before, answer


def measure(row: dict[str, Any], coretype: str, limit: float) -> dict[str, dict[str, Any]]:
    """What a row's peers took in one process; a peer that is late is left out of the next try."""
    environment = os.environ | ONE_THREAD | {"OPENBLAS_CORETYPE": coretype}
    results: dict[str, dict[str, Any]] = {}
    while True:
        command, peer = [sys.executable, __file__, "--child", json.dumps(row)], ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            for line in lines(process, limit):
                if line.startswith(b'{"peer"'):  # some libraries print
                    told = json.loads(line)
                    peer = told["peer"]
                    results.setdefault(peer, {}).update(told)
            late = process.poll() is None
            process.kill()
        if process.returncode == 0 or not peer:
            return {peer: found for peer, found in results.items() if peer}
        results[peer]["note"] = f">{limit:g} s" if late else f"the process ended with {process.returncode}"
        row = {**row, "peers": [one for one in row["peers"] if one != peer]}


def table(given: argparse.Namespace) -> None:
    """Measure the grid; every row is written once it is there."""
    kinds = [kind for kind in SETTINGS["coretypes"] if kind != "SkylakeX" or "avx512f" in CPU]
    limit, repeats = (20, 1) if given.quick else (given.limit, SETTINGS["repeats"])
    written: list[dict[str, Any]] = []
    if given.resume and given.out.exists():
        with given.out.open(encoding="utf-8", newline="") as stream:
            written = list(csv.DictReader(stream))
    known = {(one["coretype"], *(one[key] for key in ROW)) for one in written}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for kind in kinds[: 1 if given.quick else None]:
        for name, row in grid(given.quick, given.only):
            place = {key: str(row.get(key, "")) for key in ROW}
            if (kind, *place.values()) in known:
                continue
            print(f"{name} ({kind})", flush=True)
            found = measure(row | {"repeats": repeats}, kind, limit)
            place |= {"coretype": kind, "processor": PROCESSOR}
            place["ours"] = found.get("skpursuit", {}).get("seconds", "")
            for peer, one in found.items():
                one = {key: float(f"{v:.5g}") if isinstance(v, float) else v for key, v in one.items()}
                written.append(place | one)
                told = [f"{key} {one[key]}" for key in ("seconds", "error", "recovery", "note") if key in one]
                print(f"  {peer:<14}{', '.join(told)}", flush=True)
            with given.out.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\n")
                writer.writeheader()
                writer.writerows(written)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few rows, sizes a fifth, one run each")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows with this in their name")
    parser.add_argument("--limit", type=float, default=SETTINGS["limit"], help="seconds that a run may take")
    parser.add_argument("--resume", action="store_true", help="keep the rows that the CSV has")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "benchmarks.csv")
    parser.add_argument("--page", action="store_true", help="make the page of the CSV, and end")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        warnings.simplefilter("ignore")
        child(json.loads(given.child))
        return
    if not given.page:
        table(given)
    from peers_page import write

    write(given.out)


if __name__ == "__main__":
    main()
