"""Hostile cases against references: python benchmarks/hostile.py [--cases N] [--seed S] [--family F].

Every case is drawn from its own seed: a degenerate family of X and y, the form in which X is handed over, and
a program of public names (a selection, a solver, an estimator, an argument that must be refused), whose
answer is compared with a reference in long double (hostile_cases/). Cases run in a child process, so that a
crash or a hang is one failure with a seed, not the end; `--case SEED` repeats one in this process. Prints
cases and failures by family, program and check, with the command that repeats one; exit code 1 if any failed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from hostile_cases.refusals import judge_refusal
from hostile_cases.tables import FAMILIES, draw_table

PER_SEED = 10_000_000  # case seeds that belong to one --seed
CASE_SECONDS = 20.0  # of processor time; twenty times as long on the clock, for a busy machine
HERE = Path(__file__).resolve()


def programs():
    """Every program and its share of the cases."""
    from hostile_cases import faces, faults, files, frank_wolfe, programs, refusals, selections

    modules = (selections, programs, frank_wolfe, faces, refusals, faults, files)
    return {function: share for module in modules for function, share in module.PROGRAMS.items()}


def run_case(seed, family=None, program=None):
    """One case: its family, program, the call it made, and failures as (check, message)."""
    rng = np.random.default_rng([seed, 17])
    weights = programs()
    names = list(weights)
    drawn = rng.choice(len(names), p=np.array(list(weights.values())) / sum(weights.values()))
    function = names[drawn] if program is None else {f.__name__: f for f in names}[program]
    drawn_family = str(rng.choice(list(FAMILIES)))
    table = draw_table(rng, family or drawn_family)
    try:
        wrong = function(rng, table)
        if table.notes.get("refuse"):
            wrong = [("accepted", f"{table.notes['refuse']} was accepted without a word")]
    except OutOfTime as late:
        wrong = [("time", f"no answer after {CASE_SECONDS:g} seconds [{where(late)}]")]
    except Exception as error:
        wrong = judge_refusal(error, table, where(error))
    return {
        "seed": seed,
        "family": table.family,
        "program": function.__name__,
        "call": table.notes.get("call", ""),
        "wrong": [(check, str(message)) for check, message in wrong],
    }


def where(error):
    """The innermost places of the library and of this program that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "skpursuit" in f.filename or "hostile" in f.filename]
    return ", ".join(f"{Path(f.filename).name}:{f.lineno}" for f in ours[-3:])


class OutOfTime(BaseException):
    """A case took too long."""


def out_of_time(*_):
    raise OutOfTime


def child(first, last, family, program):
    """Run cases first, ..., last - 1 and print one line of JSON for each."""
    warnings.simplefilter("error")
    signal.signal(signal.SIGVTALRM, out_of_time)
    for seed in range(first, last):
        signal.setitimer(signal.ITIMER_VIRTUAL, CASE_SECONDS)
        outcome = run_case(seed, family, program)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        print(json.dumps(outcome), flush=True)


def child_command(first, last, family, program):
    """What runs these cases."""
    command = [sys.executable, str(HERE), "--child", f"{first}:{last}"]
    command += ["--family", family] if family else []
    return command + (["--program", program] if program else [])


def outcomes(first, last, family, program):
    """Outcomes of all cases; a child that dies or hangs is replaced by one that starts after its case."""
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    while first < last:
        command = child_command(first, last, family, program)
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=one_thread) as process:
            try:
                for outcome in lines(process):
                    yield outcome
                    first = outcome["seed"] + 1
            finally:
                process.kill()
        if first < last:
            code = process.returncode
            told = "hung" if code == -signal.SIGKILL else f"ended with exit code {code}"
            wrong = [("crash", f"the process {told}")]
            yield {
                "seed": first,
                "family": family or "?",
                "program": program or "?",
                "call": "",
                "wrong": wrong,
            }
            first += 1


def lines(process):
    """Lines of a child, until it ends or is silent for too long."""
    buffer = b""
    while True:
        ready, _, _ = select.select([process.stdout], [], [], 60 + 20 * CASE_SECONDS)
        chunk = os.read(process.stdout.fileno(), 65536) if ready else b""
        if not chunk:
            return
        *whole, buffer = (buffer + chunk).split(b"\n")
        for line in whole:
            yield json.loads(line)


def command_of(outcome, arguments):
    family = f" --family {arguments.family}" if arguments.family else ""
    program = f" --program {arguments.program}" if arguments.program else ""
    return f"python benchmarks/hostile.py --case {outcome['seed']}{family}{program}"


def report(failures, cases, seconds, arguments):
    """Counts by family, program and check, and one command for each."""
    print(f"{cases} cases, {len(failures)} failures, {seconds:.0f} s")
    groups = {}
    for outcome in failures:
        for check in {check for check, _ in outcome["wrong"]}:
            groups.setdefault((outcome["program"], check), []).append(outcome)
    for (program, check), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        families = Counter(outcome["family"] for outcome in members).most_common(6)
        print(f"\n{program}: {check}, {len(members)}; " + ", ".join(f"{name} {c}" for name, c in families))
        first = members[0]
        print(f"  {dict(first['wrong'])[check]}\n  {first['call']}\n  {command_of(first, arguments)}")


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=sorted(FAMILIES))
    parser.add_argument("--program", choices=sorted(f.__name__ for f in programs()))
    parser.add_argument("--case", type=int, help="repeat one case, in this process")
    parser.add_argument("--log", help="file for one line of JSON per failure")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv=None):
    arguments = parse(argv)
    if arguments.child:
        child(*(int(end) for end in arguments.child.split(":")), arguments.family, arguments.program)
        return 0
    if arguments.case is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome = run_case(arguments.case, arguments.family, arguments.program)
        print(json.dumps(outcome, indent=1))
        return 1 if outcome["wrong"] else 0
    began, failures, done = time.perf_counter(), [], 0
    first = arguments.seed * PER_SEED
    log = open(arguments.log, "w") if arguments.log else None  # noqa: SIM115
    for outcome in outcomes(first, first + arguments.cases, arguments.family, arguments.program):
        done += 1
        if outcome["wrong"]:
            failures.append(outcome)
            if log:
                print(json.dumps(outcome), file=log, flush=True)
        if done % 1000 == 0:
            print(f"{done} cases, {len(failures)} failures", file=sys.stderr, flush=True)
    report(failures, done, time.perf_counter() - began, arguments)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
