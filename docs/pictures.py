"""Pictures of the pages, from measurements in docs/figures: `python docs/figures.py` draws them too."""

import csv
from collections import defaultdict
from pathlib import Path
from statistics import mean

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
OUT = HERE / "pictures"
INK, EXACT, OURS, OTHER = "#1f2933", "#9aa5b1", "#12965f", "#0072b2"
NAMES = {
    "exact": "exact (BLAS)",
    "auto": "auto, the default: proven equal",
    "quantized": "quantized",
    "halving": "halving",
}


def rows_of(name):
    """The rows of a table of measurements."""
    with open(HERE / name, encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def saved(figure, name):
    """Write a picture with the same bytes for the same numbers."""
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def speed_panel(axes, column, unit, ink):
    """Seconds or bytes of a pursuit by its number of atoms."""
    lines = defaultdict(list)
    for row in rows_of("figures/landing.csv"):
        one = int(row["problem"].removeprefix("k=")), float(row["ms"]) / 1e3, float(row["bytes"]) / 1e9
        lines[row["method"]].append(one)
    for name, colour in (("exact", EXACT), ("auto", OURS)):
        k = [one[0] for one in lines[name]]
        values = [one[column] for one in lines[name]]
        axes.plot(k, values, color=colour, lw=2.5, marker="o", ms=5, label=NAMES[name])
    top, low = lines["exact"][-1][column], lines["auto"][-1][column]
    arrow = {"arrowstyle": "->", "color": ink}
    axes.annotate("", (k[-1], low * 1.15), (k[-1], top / 1.15), arrowprops=arrow)
    middle, said = (top * low) ** 0.5, f"{top / low:.0f} times\nless"
    axes.text(k[-1] * 0.93, middle, said, ha="right", va="center", color=ink)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("atoms chosen, k", color=ink)
    axes.set_title(unit, color=ink, loc="left", fontsize=12)
    axes.set_xticks(k, [str(one) for one in k])
    axes.minorticks_off()
    axes.tick_params(colors=ink)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(ink)
    axes.patch.set_alpha(0)
    axes.legend(frameon=False, loc="upper left", labelcolor=ink)


def speed():
    """The picture of the front page, whole for the README and in parts for the site, light and dark."""
    panels = {"seconds": (1, "seconds"), "bytes": (2, "gigabytes of X read")}
    figure, pair = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    for axes, (column, unit) in zip(pair, panels.values()):
        speed_panel(axes, column, unit, INK)
    saved(figure, "speed")
    for name, (column, unit) in panels.items():
        for mode, ink in (("light", INK), ("dark", "#ced6dd")):
            figure, axes = plt.subplots(figsize=(4.8, 3.6), layout="constrained")
            figure.patch.set_alpha(0)
            speed_panel(axes, column, unit, ink)
            saved(figure, f"front_{name}_{mode}")


def families():
    """Share of the exact path's atoms that heuristic selectors find, by what the columns are like."""
    found = defaultdict(list)
    for row in rows_of("figures/families.csv"):
        found[row["design"], row["method"]].append(float(row["same_atoms"]))
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    methods = ["greedy", "uniform", "importance", "halving", "halving-doubling", "certified"]
    colours = ["#56b4e9", "#e69f00", "#cc79a7", "#0072b2", "#5b3f99", OURS]
    figure, axes = plt.subplots(figsize=(9.6, 3.9), layout="constrained")
    for i, (method, colour) in enumerate(zip(methods, colours)):
        values = [100 * mean(found[kind, method]) for kind in kinds]
        axes.bar([x + (i - 2.5) * 0.14 for x in range(len(kinds))], values, 0.13, color=colour, label=method)
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set(ylabel="atoms shared with the exact path, %", ylim=(0, 104))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, ncols=6, loc="upper center", bbox_to_anchor=(0.5, 1.13))
    saved(figure, "families")


def theory():
    """How often halving and successive reject find the best column, beside what is proven."""
    figure, axes = plt.subplots(figsize=(7.2, 3.7), layout="constrained")
    for method, colour, name in (
        ("halving-draws", OTHER, "successive halving"),
        ("reject", "#d9822b", "successive reject"),
    ):
        rows = [r for r in rows_of("figures/theory.csv") if (r["kind"], r["method"]) == ("success", method)]
        x = [float(row["x"]) for row in rows]
        axes.plot(
            x, [float(row["measured"]) for row in rows], color=colour, marker="o", label=f"{name}: found"
        )
        axes.plot(
            x, [float(row["bound"]) for row in rows], color=colour, ls=":", lw=2.5, label=f"{name}: proven"
        )
    axes.set(xscale="log", xlabel="pulls, in units of n d (1 is all of X)", ylabel="share of drawings")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center right")
    saved(figure, "theory")


def draw_all():
    """Every picture."""
    plt.rcdefaults()
    matplotlib.rcParams.update({"svg.hashsalt": "skpursuit", "svg.fonttype": "none", "font.size": 11})
    for draw in (speed, families, theory):
        draw()


if __name__ == "__main__":
    draw_all()
