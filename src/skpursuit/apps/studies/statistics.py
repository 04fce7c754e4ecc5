"""Statistics of result rows: means, speed ratios on the same problem, grades of the claims of paper.toml."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import Any

import numpy as np

from .methods import METHODS
from .results import Results, Row

ResultRows = Sequence[Row]
Claim = Mapping[str, Any]
PAPER = tomllib.loads(files(__package__).joinpath("paper.toml").read_text(encoding="utf-8"))
PROBLEM = ("n", "d", "k", "trial", "snr", "design", "first")
SPLIT = ("collection", "split")  # of text, where k is part of the answer


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
        rivals = {"blas": "exact", "rows": "rows", "rows_k": "rows-k"}
        speeds = {name: speed(rows, method, rival) for name, rival in rivals.items()}
        means = {name: mean(own, name) for name in columns}
        found.append({"method": method, **speeds, **means, "exact": {n: mean(exact, n) for n in columns}})
    return found


def curves(rows: Sequence[Row], x: str, y: str, scale: float = 1.0) -> list[Curve]:
    """One line per method through the middle of its rows, with a band of one standard error.

    The middle is the mean; of times the median, since one disturbed run would outweigh all others, with its
    standard error from the quartiles. Methods whose rows have no x are drawn level.
    """
    times = y == "seconds"
    middle: Any = np.median if times else np.mean
    drawn = []
    for method in methods_of(rows):
        own = [row for row in where(rows, method=method) if row.get(y) is not None]
        groups = {place: [scale * row[y] for row in where(own, **{x: place})] for place in values(own, x)}
        if own and not groups:
            level = scale * float(middle([row[y] for row in own]))
            groups = {place: [level] for place in values(rows, x)}
        spread = any(len(group) > 1 for group in groups.values())
        if groups:
            centre = [float(middle(group)) for group in groups.values()]
            width = [
                0.93 * np.subtract(*np.quantile(g, (0.75, 0.25))) if times else np.std(g)
                for g in groups.values()
            ]
            error = [float(w / max(1, len(g) - (not times)) ** 0.5) for w, g in zip(width, groups.values())]
            band = [[c - e for c, e in zip(centre, error)], [c + e for c, e in zip(centre, error)]]
            drawn.append(Curve(method, list(groups), centre, *(band if spread else ())))
    return drawn


def measurements(rows: ResultRows, check: Mapping[str, Any]) -> list[tuple[str, Any, float]]:
    """The numbers that a check is about: method, place (a value of the column `by`), value.

    Means of a column, less those of the method `against` on the same problems, or divided by them (`ratio`);
    of times the median of how many times faster.
    """
    found, column, by = [], check["column"], check.get("by", "")
    low, high = check.get("within", (-np.inf, np.inf))
    base = where(rows, method=check.get("against"))
    for method in check["methods"]:
        own = where(rows, method=method, **check.get("where", {}))
        places = values(own, by) if by else []
        places = [place for place in places if isinstance(place, str) or low <= place <= high]
        places = places[check.get("first", 0) : check.get("last", len(places))]
        for place in places or [None]:
            here = [row for row in own if place is None or row[by] == place]
            if column == "seconds":
                pace = ratios(here, base)
                value = median(pace) if pace else None
            else:
                problems, value = set(map(problem_of, here)), mean(here, column)
                other = mean([row for row in base if problem_of(row) in problems], column)
                if value is not None and "against" in check:
                    ratio = check.get("ratio")
                    value = None if other is None else value / (other or np.nan) if ratio else value - other
            if value is not None and np.isfinite(value):
                found.append((method, place, value))
    return found


PICKS: Mapping[str, Any] = {
    "min": min,
    "max": max,
    "rise": lambda found: found[-1] - found[0],
    "ratio": lambda found: found[-1] / found[0],
    "spread": lambda found: min(found) / max(found),
}


def grade_check(rows: ResultRows, check: Mapping[str, Any]) -> tuple[int, str] | None:
    """The grade of a check (2 holds, 1 partly, 0 not) and what was measured; None if nothing was."""
    found = measurements(rows, check)
    if not found:
        return None
    value, least = PICKS[check.get("pick", "min")]([v for _, _, v in found]), "at_least" in check
    whole, part = check["at_least" if least else "at_most"]
    grade = sum(value >= limit if least else value <= limit for limit in (whole, part))
    unit = "\u00d7" if check["column"] == "seconds" or check.get("ratio") else ""
    words = []
    for method in dict.fromkeys(method for method, _, _ in found):
        own = [(place, f"{v:.3g}{unit}") for m, place, v in found if m == method]
        words.append(f"{method} {', '.join(v if p is None else f'{v} at {p}' for p, v in own)}")
    against = f" against {check['against']}" if "against" in check else ""
    name = {"seconds": "times faster"}.get(check["column"], check["column"].replace("_", " "))
    by = f" by {check['by']}" if any(place is not None for _, place, _ in found) else ""
    return grade, f"{name}{against}{by}: {'; '.join(words)}"


def grade_claim(rows: ResultRows, claim: Claim) -> tuple[int, str] | None:
    """The worst grade of the checks of a claim, and what was measured; None if one could not be made."""
    if not claim.get("sweep"):
        rows = [row for row in rows if row.get("stability") in (None, 0.02, 20)]
        rows = [row for row in rows if row.get("budget") in (None, 0.2) or row["method"] == "reject"]
    graded = [grade_check(rows, check) for check in claim["checks"]]
    known = [one for one in graded if one is not None]
    if len(known) < len(graded) or not known:
        return None
    return min(grade for grade, _ in known), ". ".join(words for _, words in known)


def graded_claims(results: Mapping[str, Results]) -> list[dict[str, str]]:
    """Every claim of the paper in its order: what was measured at 3 and at 30 dB, the verdict, and why."""
    table = []
    for claim in PAPER["claims"]:
        one = results.get(claim["study"])
        rows, settings = (one.rows, one.settings) if one else ([], {})
        real = not settings.get("generated") and settings.get("sizes", "full") == "full"
        noisy = "snr" in (rows[0] if rows else {}) and claim["study"] != "theory"
        graded = [
            grade_claim(where(rows, snr=snr) if noisy else rows if snr == 3 else (), claim) for snr in (3, 30)
        ]
        grades = [one[0] if one else -1 for one in graded]
        verdict = "reproduced" if grades[0] == 2 else "reproduced at 30 dB" if grades[1] == 2 else ""
        verdict = verdict or ("partly" if max(grades) == 1 else "not reproduced")
        if max(grades) < 0 or not real:
            verdict = "not tested at this size" if claim.get("testable", True) else "not testable"
        at_3, at_30 = (one[1] if one else "" for one in graded)
        why = "" if verdict in ("reproduced", "not tested at this size") else claim.get("why", "")
        if why and "because" in claim:  # a reason that is measured, or else not given
            because = claim["because"]
            reason = grade_check(where(rows, snr=because.get("snr", 3)) if noisy else rows, because)
            why = f"{why} ({reason[1]})" if reason and reason[0] == 2 else "the reason is not known"
        said = {"claim": claim["says"], "where": claim["where"], "paper": claim["paper"]}
        table.append({**said, "measured": at_3, "measured_30db": at_30, "verdict": verdict, "why": why})
    return table


def claims_csv(claims: Sequence[Mapping[str, str]]) -> str:
    """The claims as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(claims[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(claims)
    return text.getvalue()
