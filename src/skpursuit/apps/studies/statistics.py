"""Statistics of result rows: means, speed ratios on the same problem, grades of the paper's claims.

The claims are in paper.toml. Each names a function of this module that returns a value, which is graded, and
a text, or None if the rows do not bear on the claim.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import Any

import numpy as np

from .methods import METHODS
from .results import Row

ResultRows = Sequence[Row]
Claim = Mapping[str, Any]
ClaimValue = tuple[float, str] | None
PAPER = tomllib.loads(files(__package__).joinpath("paper.toml").read_text(encoding="utf-8"))
PROBLEM = ("n", "d", "k", "trial", "first")
SPLIT = ("collection", "split")  # of text, where k is part of the answer
VERDICTS = (("not reproduced", "bad"), ("partly", ""), ("reproduced", "good"))


@dataclass(frozen=True)
class Curve:
    """One line of a figure: a method, its points, and the spread around them where there are several rows."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def at(self, x: float) -> float | None:
        """Return the height at a place, None where there is no point."""
        return dict(zip(self.x, self.y)).get(x)


def methods_of(rows: Iterable[Row]) -> list[str]:
    """The methods that occur, in the order of `METHODS`, those that are not there at the end."""
    found = dict.fromkeys(row["method"] for row in rows)
    return [*(m for m in METHODS if m in found), *(m for m in found if m not in METHODS)]


def where(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """Rows with given values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def values(rows: Iterable[Row], name: str) -> list[Any]:
    """The values of a column that occur, ascending."""
    return sorted({row[name] for row in rows if row.get(name) is not None})


def distinct_values(rows: ResultRows, *names: str) -> list[tuple[Any, ...]]:
    """The values that some columns have together, ascending."""
    return sorted({tuple(row[name] for name in names) for row in rows})


def mean(rows: Iterable[Row], name: str) -> float | None:
    """The mean of a column, None if it is empty; rows of sound are means over a count of pieces."""
    known = [row for row in rows if row.get(name) is not None]
    weights = [row.get("count", 1) for row in known]
    return float(np.average([row[name] for row in known], weights=weights)) if known else None


def standard_deviation(rows: ResultRows, name: str) -> float:
    """The standard deviation of a column."""
    return float(np.std([row[name] for row in rows]))


def ratios(rows: Sequence[Row], baseline: Sequence[Row]) -> list[float]:
    """How many times faster each row is than the baseline's row of the same problem.

    Times of 0 are left out: some systems count in steps that are longer than a small problem takes.
    """
    base = {problem_of(row): row["seconds"] for row in baseline if row["seconds"]}
    return [
        base[problem_of(row)] / row["seconds"] for row in rows if row["seconds"] and problem_of(row) in base
    ]


def speed(rows: Sequence[Row], method: str, baseline: str) -> float | None:
    """How many times faster a method is than another one: the median over problems."""
    found = ratios(where(rows, method=method), where(rows, method=baseline))
    return median(found) if found else None


def common_problems(rows: Sequence[Row], rare: str = "reject") -> list[Row]:
    """Rows of the problems that all methods have been run on, so that their means can be compared.

    A run that was stopped leaves some methods with more problems than others. Methods that are run on few
    problems by design (`rare`) do not count. Without any such problem all rows are returned.
    """
    needed = {row["method"] for row in rows} - {rare}
    done: dict[Any, set[str]] = {}
    for row in rows:
        done.setdefault(problem_of(row), set()).add(row["method"])
    return [row for row in rows if needed <= done[problem_of(row)]] or list(rows)


def problem_of(row: Row) -> tuple[Any, ...]:
    """What tells the problem of a row from others."""
    return tuple(row.get(name) for name in (SPLIT if "collection" in row else PROBLEM))


def compared(rows: ResultRows, *columns: str) -> list[dict[str, Any]]:
    """The means of some columns for each method, and its speed against both exact baselines.

    ``exact`` holds the means of exact selection on the problems that the method was run on.
    """
    found = []
    for method in methods_of(rows):
        own = where(rows, method=method)
        places = set(map(problem_of, own))
        exact = [row for row in where(rows, method="exact") if problem_of(row) in places]
        speeds = {"blas": speed(rows, method, "exact"), "rows": speed(rows, method, "rows")}
        means = {name: mean(own, name) for name in columns}
        found.append({"method": method, **speeds, **means, "exact": {n: mean(exact, n) for n in columns}})
    return found


def curves(rows: Sequence[Row], x: str, y: str, scale: float = 1.0) -> list[Curve]:
    """One line per method through the middle of its rows, with a band from the lowest to the highest.

    The middle is the mean; of times the median, since one disturbed run would outweigh all others. Methods
    whose rows have no x are drawn level.
    """
    middle = np.median if y == "seconds" else np.mean
    drawn = []
    for method in methods_of(rows):
        own = [row for row in where(rows, method=method) if row.get(y) is not None]
        groups = {place: [scale * row[y] for row in where(own, **{x: place})] for place in values(own, x)}
        if own and not groups:
            level = scale * float(middle([row[y] for row in own]))
            groups = {place: [level] for place in values(rows, x)}
        spread = any(len(group) > 1 for group in groups.values())
        if groups:
            each = [[float(of(group)) for group in groups.values()] for of in (middle, min, max)]
            drawn.append(Curve(method, list(groups), each[0], *(each[1:] if spread else ())))
    return drawn


def speed_ratio(rows: ResultRows, claim: Claim) -> ClaimValue:
    """How many times faster a method is than a baseline."""
    ratio = speed(rows, claim["method"], claim["baseline"])
    return None if ratio is None else (ratio, f"{ratio:.3g} times")


def contrast(rows: ResultRows, claim: Claim) -> ClaimValue:
    """How the means of two methods differ at the largest k, by their ratio or their difference."""
    k = max(values(rows, "k"), default=None)
    first, second = (mean(where(rows, method=m, k=k), claim["column"]) for m in claim["methods"])
    if first is None or second is None or (claim["by"] == "ratio" and not second):
        return None
    value = first / second if claim["by"] == "ratio" else first - second
    return value, claim["words"].format(first=first, second=second, value=value, k=k)


def budgets(rows: ResultRows, claim: Claim) -> ClaimValue:
    """The share of budgets with which halving has the F of exact."""
    exact = mean(where(rows, method="exact"), "f_measure")
    tried = [b for b in values(where(rows, method="halving"), "budget") if 0.05 <= b <= 0.7]
    if exact is None or not tried:
        return None
    found = [mean(where(rows, method="halving", budget=b), "f_measure") or 0.0 for b in tried]
    good = sum(f >= exact - 0.02 for f in found)
    return good / len(tried), f"{good} of {len(tried)} budgets from 0.05 to 0.7 have the F of exact"


def steadiness(rows: ResultRows, claim: Claim) -> ClaimValue:
    """The least speed-up of halving over all sizes, as a share of the greatest."""
    places = distinct_values(rows, "n", "d", "k")
    speeds = [speed(where(rows, n=n, d=d, k=k), "halving", "rows") for n, d, k in places]
    known = [ratio for ratio in speeds if ratio is not None]
    if len(known) < 2:
        return None
    return min(known) / max(known), f"{min(known):.3g} to {max(known):.3g} times over all sizes"


TESTS = {test.__name__: test for test in (speed_ratio, contrast, budgets, steadiness)}


def grade_claim(rows: ResultRows, claim: Claim) -> dict[str, str] | None:
    """The verdict on a claim, its tone, and what was measured."""
    found = TESTS[claim["test"]](rows, claim)
    if found is None:
        return None
    value, words = found
    grade = 2 if value >= claim["whole"] else int(value >= claim["part"])
    if "keeps" in claim:
        own, exact = (mean(where(rows, method=m), claim["keeps"]) or 0.0 for m in (claim["method"], "exact"))
        worse = (exact - own) * claim.get("sign", 1)
        grade = (
            max(grade, claim.get("at_least", 0))
            if worse <= claim["slack"]
            else min(grade, claim.get("at_most", 1))
        )
        words += claim["words"].format(own=own, exact=exact)
    verdict, tone = VERDICTS[grade]
    return {"says": claim["says"], "verdict": verdict, "tone": tone, "measured": words}


def graded_claims(found: Mapping[str, ResultRows]) -> list[dict[str, str]]:
    """The claims that the results speak to, each with its verdict; sweeps belong to no claim."""
    verdicts = []
    for claim in PAPER["claims"]:
        rows = [row for row in found.get(claim["study"], ()) if row.get("stability") in (None, 0.02, 20)]
        if claim["study"] != "budget":
            rows = [row for row in rows if row.get("budget") in (None, 0.2)]
        verdicts.append(grade_claim(common_problems(rows), claim))
    return [verdict for verdict in verdicts if verdict is not None]
