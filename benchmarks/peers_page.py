"""docs/benchmarks.md and its figure, from docs/benchmarks.csv: tables by task, and where we are slower."""

from __future__ import annotations

import csv
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from peers import COLUMNS, GRID, OURS, ROW, SETTINGS, TASKS, grid

CLOSE = 1.05  # times as long as the fastest is as fast
GOOD = 0.01  # of the best error or recovery is as good
PREPARED = "prepared"  # has its preparation before the clock starts, as no other has: shown, never counted
HEAD = ("library", "ms", "ratio", "first", "MB", "error", "recovery", "")
NUMBERS = COLUMNS[COLUMNS.index("seconds") : COLUMNS.index("coretype")]
Line = dict[str, Any]


def problems(path: Path) -> list[tuple[str, list[Line]]]:
    """Name and lines of each problem of the CSV: of each library the line under its best setting."""
    with path.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    found: dict[tuple[str, ...], dict[str, Line]] = {}
    for line in lines:
        one = line | {key: float(line[key]) if line[key] else np.nan for key in NUMBERS}
        one["ratio"] = one["seconds"] / one["ours"]  # in the same process
        peers = found.setdefault(tuple(line[key] for key in ROW), {})
        if line["peer"] not in peers or one["seconds"] < peers[line["peer"]]["seconds"]:
            peers[line["peer"]] = one
    named = []
    for (_, family, n, d, k, dtype), peers in found.items():
        parts = [family if family != dtype else "", f"{n} x {d}" if n else "", f"k = {k}" if k != "0" else ""]
        named.append((", ".join(part for part in (*parts, dtype) if part), judged(list(peers.values()))))
    return sorted(named, key=lambda one: list(TASKS).index(one[1][0]["task"]))


def judged(lines: list[Line]) -> list[Line]:
    """Each with whether its error or its recovery is within a hundredth of the best of the problem."""
    low = min((one["error"] for one in lines if one["error"] == one["error"]), default=np.nan)
    high = max((one["recovery"] for one in lines if one["recovery"] == one["recovery"]), default=np.nan)
    for one in lines:
        one["good"] = one["error"] <= (1 + GOOD) * low + 1e-5 or one["recovery"] >= (1 - GOOD) * high
    return lines


def verdict(lines: list[Line]) -> tuple[bool, str]:
    """Whether we are as fast as the fastest of those that are as good as the best, and who that is."""
    good = [one for one in lines if one["good"] and one["peer"] != PREPARED and one["ratio"] == one["ratio"]]
    fastest = min(good, key=lambda one: one["ratio"], default={"ratio": 0.0, "peer": ""})
    ours = [one["ratio"] for one in good if one["peer"] in OURS]
    return min(ours, default=np.inf) <= CLOSE * fastest["ratio"], fastest["peer"]


def figure(found: list[tuple[str, list[Line]]], path: Path) -> None:
    """A row for each problem, a dot for each library: times as long as ours."""
    shown = [(name, lines) for name, lines in found if lines[0]["task"] != "dictionary"]
    peers = sorted({one["peer"] for _, lines in shown for one in lines if one["peer"] not in OURS})
    colors = {peer: f"C{index}" for index, peer in enumerate(peers)}
    with plt.rc_context({"svg.hashsalt": "peers", "font.size": 8}):
        picture, axes = plt.subplots(figsize=(7.2, 0.22 * len(shown) + 1.2), layout="constrained")
        for row, (_, lines) in enumerate(shown):
            for one in lines:
                if color := colors.get(one["peer"]):
                    axes.scatter(one["ratio"], row, 22, color if one["good"] else "none", edgecolors=color)
        for peer, color in colors.items():
            axes.scatter([], [], 22, color, label=peer)
        axes.axvline(1.0, color="0.5", linewidth=0.8)
        axes.set(xscale="log", xlabel="times as long as skpursuit (hollow: a worse answer)")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_yticks(range(len(shown)), [f"{lines[0]['task']}: {name}" for name, lines in shown])
        axes.invert_yaxis()
        picture.legend(loc="outside upper center", ncols=5, frameon=False)
        picture.savefig(path, metadata={"Date": None})
        plt.close(picture)


def cells(line: Line, fastest: str) -> str:
    """A line of a table."""
    numbers = [(1e3 * line["seconds"], ".3g"), (line["ratio"], ".2f"), (1e3 * line["first"], ".3g")]
    numbers += [(line["memory"], ".0f"), (line["error"], ".3g"), (line["recovery"], ".3f")]
    peer = f"**{line['peer']}**" if line["peer"] == fastest else line["peer"]
    told = [f"{v:{form if v < 100 else '.0f'}}" if v == v else "" for v, form in numbers]
    note = line["note"].removeprefix(f"{line['k']} columns").removeprefix(", ")
    notes = [note, line["coretype"] if line["coretype"] != SETTINGS["coretypes"][0] else ""]
    return f"| {' | '.join([peer, *told, ', '.join(filter(None, notes))])} |"


def write(path: Path) -> None:
    """Write the page and the figure beside the CSV."""
    found = problems(path)
    lines = [line for _, group in found for line in group]
    verdicts = [(group[0]["task"], name, *verdict(group)) for name, group in found]
    versions = sorted({f"{line['peer']} {line['version']}" for line in lines if line["version"]})
    known = {"processor": lines[0]["processor"], "versions": ", ".join(versions), **SETTINGS}
    kinds = ", ".join(sorted({line["coretype"] for line in lines}))
    known |= {"kinds": kinds, "won": sum(one[2] for one in verdicts), "rows": len(verdicts)}
    text = [GRID["page"].format(**known).strip(), ""]
    there = {tuple(line[key] for key in ROW) for line in lines}
    rows = {tuple(str(row.get(key, "")) for key in ROW): name for name, row in grid(False, "")}
    missing = "; ".join(name for place, name in rows.items() if place not in there)
    text += [f"Not measured: {missing}.", ""] if missing else []
    for task, group in groupby(found, key=lambda one: one[1][0]["task"]):
        text += [f"## {TASKS[task]['title']}", "", TASKS[task]["what"], ""]
        text += [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
        for name, own in group:
            text.append(f"| *{name}*" + " |" * len(HEAD))
            text += [cells(line, verdict(own)[1]) for line in own]
        text.append("")
    text += ["## Where another library is faster", ""]
    for task, name, won, peer in verdicts:
        reasons = TASKS[task].get("reasons", {}) | {"": "The reason is not known."}
        why = next(reason for part, reason in reasons.items() if part in f"{name}, {peer}")
        text += [] if won else [f"- {TASKS[task]['title']}, {name}: {peer}. {why}"]
    path.with_suffix(".md").write_text("\n".join(text) + "\n", encoding="utf-8")
    figure(found, path.with_suffix(".svg"))
    print(f"{known['won']} of {known['rows']} rows; {path.with_suffix('.md')}")
