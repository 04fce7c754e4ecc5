"""The report: all results of a folder on one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .claims import claims_section
from .loaders import DataError
from .page_real import audio_section, text_section
from .page_toy import (
    budget_section,
    cosamp_section,
    fw_section,
    losses,
    omp_section,
    scaling_section,
    sizes,
)
from .parts import Facts, Page, Section, Table
from .results import read_results
from .store import Row, Study
from .summary import mean, pick, shared, speed

TOY: dict[str, Callable[[Sequence[Row]], Section]] = {
    "omp": omp_section,
    "cosamp": cosamp_section,
    "fw": fw_section,
    "budget": budget_section,
    "scaling": scaling_section,
}
REAL: dict[str, Callable[[Sequence[Row], dict[str, Any]], Section]] = {
    "audio": audio_section,
    "text": text_section,
}
SMALL = (
    "These are small problems, made to run in minutes. Small X is where BLAS wins: it lies in the cache, and "
    "reading less of it saves little. For the sizes of the paper: `skpursuit reproduce all --full`."
)
TITLES = {"omp": "OMP", "cosamp": "CoSaMP", "fw": "Frank-Wolfe", "budget": "Budget", "scaling": "Scaling"}


def make_page(folder: str | Path) -> Page:
    """Read what is in a folder and arrange it.

    Raises
    ------
    FileError
        If there are no results, or they cannot be read.
    """
    folder = Path(folder)
    remedy = "run `skpursuit reproduce` first, or name its folder"
    if not folder.is_dir():
        raise DataError(folder, "there is no such folder", remedy)
    results = {name: one for name in (*TOY, *REAL) if (one := read_results(folder, name))}
    if not results:
        raise DataError(folder, "there are no results in it", remedy)
    found = {name: one.rows for name, one in results.items()}
    claims = claims_section(found)
    sections = [] if claims is None else [claims]
    sections += [TOY[name](found[name]) for name in TOY if name in found]
    sections += [REAL[name](found[name], results[name].settings) for name in REAL if name in found]
    sections += [_losing(found), _machine(results)]
    return Page(
        "Sparse selection by reading a fraction of the data",
        [
            "The experiments of Rakotomamonjy, Koço and Ralaivola on greedy, randomised and bandit "
            "selection, run again with "
            "`skpursuit`. Every experiment shows what is recovered, how long it takes, and how much of X "
            "is read, "
            "against two exact baselines: BLAS, which is what everyone uses, and the paper's own loop over "
            "rows.",
            f"These are {_kind(results)} sizes. All runs use one thread; times are processor seconds and "
            "include all preparations, such as norms and codes.",
        ],
        SMALL if _kind(results) == "small" else "",
        _highlights(found),
        sections,
        "Made by `skpursuit report`. Every figure can be opened to its numbers; the rows are in the CSV "
        "files beside this page.",
    )


def _kind(results: dict[str, Study]) -> str:
    kinds = {one.settings.get("sizes") for one in results.values()} - {None}
    return "the paper's" if kinds == {"full"} else "small" if kinds == {"small"} else "mixed"


def _highlights(found: dict[str, list[Row]]) -> list[tuple[str, str]]:
    """The few numbers to see first: OMP on the largest X."""
    rows = found.get("omp")
    if not rows:
        return []
    n, d = sizes(rows)[-1]
    here = shared(pick(rows, n=n, d=d))
    tiles = []
    for method, name in (
        ("certified", "`certified`, the atoms of exact, proven"),
        ("halving", "`halving`, in energy order"),
    ):
        own = pick(here, method=method)
        ratio, same = speed(own, pick(here, method="exact")), mean(own, "same_atoms")
        if ratio is not None and same is not None:
            tiles.append((f"{ratio:.1f}×", f"the speed of BLAS: {name}, OMP at {n} x {d}"))
            tiles.append((f"{100 * same:.1f}%", f"of exact's atoms found by `{method}`"))
    return tiles


def _losing(found: dict[str, list[Row]]) -> Section:
    rows = [line for name in TOY if name in found for line in losses(TITLES[name], found[name])]
    rows += [
        line
        for name, title in (("audio", "Sound"), ("text", "Text"))
        if name in found
        for line in losses(title, found[name])
    ]
    text = [
        "BLAS reads X at the speed of memory. A method that reads a fifth of X wins only while what it "
        "does beside reading costs "
        "less than the other four fifths, so small X, sparse X and single-entry pulls lose. The table "
        "lists every method "
        "that was more than 5% slower than exact selection by BLAS (or by the sparse product) on some "
        "problem.",
    ]
    if not rows:
        return Section("Where a method loses to BLAS", ["Nowhere in these results."])
    table = Table(
        "Slower than exact by BLAS",
        "Problems on which the method was slower, and its speed on the worst one: 0.5 takes twice as long.",
        ("Method", "problems", "worst speed against BLAS"),
        rows,
    )
    return Section("Where a method loses to BLAS", text, [table])


def _machine(results: dict[str, Study]) -> Section:
    known: list[dict[str, Any]] = []
    for one in results.values():
        known += [made for made in one.about if made not in known]
    facts = [
        Facts(f"Machine {i}" if len(known) > 1 else "Machine", made) for i, made in enumerate(known, start=1)
    ]
    counts = {
        TITLES.get(name, name): f"{len(one.rows)} rows, {_trials(one.rows)}" for name, one in results.items()
    }
    seeds = Facts(
        "Seeds",
        {
            "toy problems": "X, w and noise of a trial t are drawn from SeedSequence([n, d, k, t]); "
            "selectors use the seed t",
            "sound": "atoms begin with seed 5; a piece's selectors use its number",
            "text": "split s permutes documents by the seed [77, s]; selectors use the seed s",
        },
    )
    text = [
        "Times on a machine that does other work beside are upper bounds; ratios within a row suffer less."
    ]
    return Section("Machine, versions, seeds", text, [*facts, seeds, Facts("Rows", counts)])


def _trials(rows: Sequence[Row]) -> str:
    for name, word in (("trial", "trials"), ("split", "splits")):
        values = {row[name] for row in rows if row.get(name) is not None}
        if values:
            return f"{len(values)} {word}"
    return "one pass over the pieces"
