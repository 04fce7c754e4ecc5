"""Hostile cases against references: python benchmarks/hostile.py [--cases N] [--seed S] [--family F].

Every case is drawn from its own seed: a degenerate family of X and y, the form in which X is handed over, and
a program of public names (a selection, a solver, an estimator), whose answer is compared with a reference in
long double (hostile_cases/). A refusal must be a sentence that names an argument, and is right at extreme
scales only. Cases run in a child process; `--case SEED` repeats one in this process. Prints cases and
failures by family, program and check, with the command that repeats one; exit code 1 if any failed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from children import OutOfTime, outcomes, time_limit
from hostile_cases import faces, faults, programs, selections
from hostile_cases.tables import FAMILIES, draw_table

PER_SEED = 10_000_000  # case seeds that belong to one --seed
CASE_SECONDS = 20.0  # of processor time; twenty times as long on the clock, for a busy machine
SILENCE = 60 + 20 * CASE_SECONDS
#: Every program and its share of the cases.
PROGRAMS = {
    function: share
    for module in (selections, programs, faces, faults)
    for function, share in module.PROGRAMS.items()
}
ARGUMENTS = """
    X y sample_weight weights n_nonzero_coefs max_nonzero_coefs selector solver loss always_include radius
    tol rtol ridge constraint positive batch_size step_size delta Gram Xy norms_squared dictionary
    signals n_splits cv scoring max_iter fit_intercept scale lazy shared_support checkpoint
    callback random_state stop eps time_limit variant budget fraction rows max_recomputed line_search
    precompute memory_limit logistic Poisson CoSaMP Frank-Wolfe ErrorBound gram samples
"""
NAMED = re.compile(r"\b(" + "|".join(ARGUMENTS.split()) + r")\b")
ACCIDENTS = ("zero-size", "broadcast", "not iterable", "unsupported operand", "embedded null")


def run_case(seed, family=None, program=None):
    """One case: its family, program, the call it made, and failures as (check, message)."""
    rng = np.random.default_rng([seed, 17])
    drawn = rng.choice(len(PROGRAMS), p=np.array(list(PROGRAMS.values())) / sum(PROGRAMS.values()))
    named = {function.__name__: function for function in PROGRAMS}
    program = program or list(named)[drawn]
    drawn_family = str(rng.choice(list(FAMILIES)))
    table = draw_table(rng, family or drawn_family)
    try:
        with time_limit(CASE_SECONDS):
            wrong = named[program](rng, table)
        if table.notes.get("refuse"):
            wrong = [("accepted", f"{table.notes['refuse']} was accepted without a word")]
    except OutOfTime as late:
        wrong = [("time", f"{late} [{where(late)}]")]
    except Exception as error:
        wrong = judge_refusal(error, table)
    wrong = [(check, str(message)) for check, message in wrong]
    call = table.notes.get("call", "")
    return {"seed": seed, "family": table.family, "program": program, "call": call, "wrong": wrong}


def judge_refusal(error, table):
    """What is wrong with an exception, as a list of (check, message)."""
    kind, text = type(error).__name__, str(error)
    told = f"{kind}: {text[:200]} [{where(error)}]"
    if not isinstance(error, (ValueError, TypeError)) or kind == "LinAlgError":
        return [("raised", told)]
    if len(text.split()) < 4 or not NAMED.search(text) or any(part in text for part in ACCIDENTS):
        return [("unclear", told)]
    allowed = table.notes.get("refuse") or table.notes.get("may refuse") or table.extreme
    return [] if allowed else [("refused", told)]


def where(error):
    """The innermost places of the library and of this program that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "skpursuit" in f.filename or "hostile" in f.filename]
    return ", ".join(f"{Path(f.filename).name}:{f.lineno}" for f in ours[-3:])


def work(first, last, family, program):
    """Run cases first, ..., last - 1, print one line of JSON for each, and say whether one failed."""
    failed = False
    warnings.simplefilter("error")
    for seed in range(first, last):
        outcome = run_case(seed, family, program)
        print(json.dumps(outcome), flush=True)
        failed |= bool(outcome["wrong"])
    return int(failed)


def report(failures, chosen):
    """Counts by family, program and check, and one command for each."""
    groups = {}
    for outcome in failures:
        for check in {check for check, _ in outcome["wrong"]}:
            groups.setdefault((outcome["program"], check), []).append(outcome)
    for (program, check), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        families = Counter(outcome["family"] for outcome in members).most_common(6)
        print(f"\n{program}: {check}, {len(members)}; " + ", ".join(f"{name} {c}" for name, c in families))
        first = members[0]
        print(f"  {dict(first['wrong'])[check]}\n  {first['call']}")
        print(" ".join(["  python benchmarks/hostile.py --case", str(first["seed"]), *chosen]))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=sorted(FAMILIES))
    parser.add_argument("--program", choices=sorted(function.__name__ for function in PROGRAMS))
    parser.add_argument("--case", type=int, help="repeat one case, in this process")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.work or given.case is not None:
        first, last = map(int, (given.work or f"{given.case}:{given.case + 1}").split(":"))
        return work(first, last, given.family, given.program)
    chosen = [f"--{name}={value}" for name in ("family", "program") if (value := getattr(given, name))]
    command = [sys.executable, str(Path(__file__).resolve()), *chosen]
    began, failures, done, first = time.perf_counter(), [], 0, given.seed * PER_SEED
    unknown = {"family": given.family or "?", "program": given.program or "?", "call": ""}
    for seed, outcome, end in outcomes(command, first, first + given.cases, SILENCE):
        done += 1
        if end or outcome["wrong"]:
            failures.append(outcome or unknown | {"seed": seed, "wrong": [("crash", end)]})
        if done % 1000 == 0:
            print(f"{done} cases, {len(failures)} failures", file=sys.stderr, flush=True)
    print(f"{done} cases, {len(failures)} failures, {time.perf_counter() - began:.0f} s")
    report(failures, chosen)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
