"""Claim by claim: what the paper says, what was measured here, and whether it was reproduced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .parts import Cell, Section, Table
from .store import Row
from .summary import mean, pick, places, shared, speed, weighted

Rows = Sequence[Row]
Verdict = tuple[str, int] | None  # what was measured, and how far it bears the claim out: 0 not, 1 partly, 2
TONES = (("not reproduced", "bad"), ("partly", ""), ("reproduced", "good"))


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and the function that tests it on the rows of a study."""

    study: str
    says: str
    test: Callable[[Rows], Verdict]


def _times(
    method: str, baseline: str, whole: float, part: float, same: float = 0.0
) -> Callable[[Rows], Verdict]:
    """Test that a method is some times as fast as a baseline, perhaps with the atoms of exact."""

    def test(rows: Rows) -> Verdict:
        own = pick(rows, method=method)
        ratio = speed(own, pick(rows, method=baseline))
        if ratio is None:
            return None
        words, grade = f"{ratio:.3g} times", 2 if ratio >= whole else 1 if ratio >= part else 0
        atoms = mean(own, "same_atoms")
        if same and atoms is not None:
            words += f", {100 * atoms:.3g}% of exact's atoms"
            grade = min(grade, 2 if atoms >= same else 1)
        return words, grade

    return test


def _loses_support(rows: Rows) -> Verdict:
    k = max(places(rows, "k"), default=None)
    found = [mean(pick(rows, method=m, k=k), "f_measure") for m in ("exact", "uniform")]
    if k is None or found[0] is None or found[1] is None:
        return None
    lost = found[0] - found[1]
    return (
        f"F {found[0]:.3g} by exact, {found[1]:.3g} by uniform sampling at k = {k:g}",
        2 if lost > 0.05 else int(lost > 0.01),
    )


def _bound_reads_more(rows: Rows) -> Verdict:
    bound, greedy = (mean(pick(rows, method=m), "share_read") for m in ("bound", "greedy"))
    if not bound or not greedy:
        return None
    ratio = bound / greedy
    return f"{ratio:.3g} times as much of X", 2 if ratio > 2.5 else int(ratio > 1.2)


def _budgets_work(rows: Rows) -> Verdict:
    exact = mean(pick(rows, method="exact"), "f_measure")
    shares = [b for b in places(pick(rows, method="halving"), "budget") if 0.05 <= b <= 0.7]
    if exact is None or not shares:
        return None
    found = {b: mean(pick(rows, method="halving", budget=b), "f_measure") or 0.0 for b in shares}
    good = [b for b, f in found.items() if f >= exact - 0.02]
    words = f"{len(good)} of {len(shares)} budgets from 0.05 to 0.7 have the F of exact"
    return words, 2 if len(good) == len(shares) else int(bool(good))


def _same_trend(rows: Rows) -> Verdict:
    ratios = []
    for n, d, k in sorted({(row["n"], row["d"], row["k"]) for row in rows}):
        here = pick(rows, n=n, d=d, k=k)
        ratio = speed(pick(here, method="halving"), pick(here, method="rows"))
        ratios += [] if ratio is None else [ratio]
    if len(ratios) < 2:
        return None
    spread = max(ratios) / min(ratios)
    return f"{min(ratios):.3g} to {max(ratios):.3g} times over all sizes", 2 if spread < 4 else int(
        spread < 10
    )


def _sound(rows: Rows) -> Verdict:
    own, exact = pick(rows, method="halving"), pick(rows, method="exact")
    errors, ratio = (weighted(own, "error"), weighted(exact, "error")), speed(own, pick(rows, method="rows"))
    if errors[0] is None or errors[1] is None or ratio is None:
        return None
    near = errors[0] <= errors[1] + 0.01
    return f"error {errors[0]:.3f} (exact {errors[1]:.3f}), {ratio:.3g} times", int(near) + int(ratio >= 2)


def _words(rows: Rows) -> Verdict:
    own, exact = pick(rows, method="halving"), pick(rows, method="exact")
    accuracy, ratio = (mean(own, "accuracy"), mean(exact, "accuracy")), speed(own, pick(rows, method="rows"))
    if accuracy[0] is None or accuracy[1] is None or ratio is None:
        return None
    near = accuracy[0] >= accuracy[1] - 0.015
    words = f"accuracy {100 * accuracy[0]:.1f}% (exact {100 * accuracy[1]:.1f}%), {ratio:.3g} times"
    return words, (2 if ratio >= 30 else 1 if ratio >= 3 else 0) if near else 0


def _at_default(test: Callable[[Rows], Verdict]) -> Callable[[Rows], Verdict]:
    """Test a claim at the budget that the paper recommends."""
    return lambda rows: test([row for row in rows if row.get("budget") in (None, 0.2)])


def _default(rows: Rows) -> Rows:
    """Leave out the sweeps over N_s, which belong to no claim."""
    return [row for row in rows if row.get("stability") in (None, 0.02, 20)]


CLAIMS = (
    Claim(
        "omp",
        "OMP: halving gains a little over the loop over rows",
        _times("halving", "rows", 1.05, 0.95, 0.95),
    ),
    Claim("omp", "OMP: random sampling loses support as k grows", _loses_support),
    Claim(
        "cosamp",
        "CoSaMP: 10 to 100 times as fast as exact with k iterations",
        _times("halving", "rows-k", 10, 3),
    ),
    Claim("cosamp", "CoSaMP: faster than the stochastic rival", _times("halving", "stoch", 1.05, 0.95)),
    Claim(
        "fw",
        "Frank-Wolfe: halving about ten times as fast",
        _at_default(_times("halving", "rows", 5, 1.5, 0.9)),
    ),
    Claim("fw", "Frank-Wolfe: greedy about twice as fast", _times("greedy", "rows", 1.6, 1.1, 0.9)),
    Claim("fw", "Frank-Wolfe: the error bound reads about five times more than stability", _bound_reads_more),
    Claim("budget", "Halving works with budgets from 0.05 to 0.7", _budgets_work),
    Claim("scaling", "All methods follow the same trend in d and n, a constant factor apart", _same_trend),
    Claim("audio", "Sound: halving has the error of exact, three times as fast", _sound),
    Claim("text", "Text: halving at least thirty times as fast at nearly the same accuracy", _words),
)


def claims_section(found: Mapping[str, Rows]) -> Section | None:
    """The table of all claims that the results speak to; None if there are none."""
    rows: list[list[str | Cell]] = []
    for claim in CLAIMS:
        verdict = claim.test(_default(shared(found.get(claim.study, ()))))
        if verdict is not None:
            words, tone = TONES[verdict[1]]
            rows.append([claim.says, Cell(words, tone), verdict[0]])
    if not rows:
        return None
    caption = (
        "Times are against the paper's own baseline, the loop over rows; against BLAS see the sections below."
    )
    table = Table("Claim by claim", caption, ("The paper says", "verdict", "measured here"), rows, words=True)
    return Section("What was reproduced", [], [table])
