"""Models with wrong content under a right checksum: python benchmarks/damage_model.py [--cases N] [--seed S].

Every case takes a model (or a schema, each fifth case) that the program wrote, changes the JSON in one to
three places (keys and items go, come twice or under another name, values become those of another type, far
too large or those of another place), computes the checksum anew and has `skpursuit predict` (`fit --schema`)
read it. It must refuse the file by one line that names it, or answer in finite numbers.
`--case N` repeats one.
"""

from __future__ import annotations

import argparse
import copy
import csv
import hashlib
import json
import re
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

ROWS = 60
VALUES = (
    None, True, False, 0, -1, 1, 2, 0.5, 1e300, 1.7e308, -1.7e308, 5e-324, float("nan"), float("inf"),
    float("-inf"), 2**53 + 1, 10**30, 10**400, "", "x", "nan", "1e999", "poisson", "multinomial",
    "\0", "\ud800", "$", "a" * 3000, [], {}, [[]], [1], ["a"], ["a", "a"], [0.5, float("nan")],
    {"a": 1}, {"0.5": 1e308}, {"0.1": 3, "0.9": -3},
)  # fmt: skip
MODELS = {
    "number": ("y", ()),
    "few": ("y", ("-k", 2)),
    "count": ("count", ("--loss", "poisson", "-k", 2)),
    "two": ("yes", ()),
    "three": ("band", ()),
}  # targets and options of the models


# -- damage: functions of content and rng, as in damage.py -------------------------------------------------


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one to three places of a JSON document; a model gets the checksum of its new content."""
    document = json.loads(content)
    is_model = "sha256" in document
    holder = {"root": document["model"] if is_model else document}
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        change(holder, rng)
    if is_model:
        document["model"] = holder["root"]
        text = json.dumps(document["model"], sort_keys=True, separators=(",", ":"))
        document["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(document if is_model else holder["root"]).encode()


def change(holder, rng):
    """Change one place of a document, in place."""
    parent, key = place(holder, rng)
    value = parent[key]
    how = rng.choice(["value", "value", "value", "delete", "repeat", "rename", "other", "wrap", "shorten"])
    if how == "delete" and parent is not holder:
        del parent[key]
    elif how == "repeat" and isinstance(parent, list):
        parent.insert(int(rng.integers(len(parent) + 1)), copy.deepcopy(value))
    elif how in ("repeat", "rename") and isinstance(parent, dict) and parent is not holder:
        name = ["", "x", f"{key} ", "nan", "1e999", "kind", "\ud800"][rng.integers(7)]
        parent[name] = copy.deepcopy(value) if how == "repeat" else parent.pop(key)
    elif how == "other":
        other, at = place(holder, rng)
        parent[key] = copy.deepcopy(other[at])
    elif how == "wrap":
        parent[key] = [[value], {"a": value}, str(value), [value, value]][rng.integers(4)]
    elif how == "shorten" and isinstance(value, list | str):
        parent[key] = value[: len(value) // 2]
    else:
        alike = [one for one in VALUES if isinstance(one, type(value)) and one is not None]
        values = alike if alike and rng.random() < 0.6 else VALUES
        parent[key] = copy.deepcopy(values[rng.integers(len(values))])


def place(holder, rng):
    """Return a container and the key of one of its values; near the root as often as deep down."""
    parent, key = holder, "root"
    while isinstance(parent[key], dict | list) and parent[key] and (parent is holder or rng.random() < 0.8):
        parent = parent[key]
        key = (
            list(parent)[rng.integers(len(parent))]
            if isinstance(parent, dict)
            else int(rng.integers(len(parent)))
        )
    return parent, key


# -- cases -------------------------------------------------------------------------------------------------


def prepare(folder: Path) -> list[Path]:
    """Write a table, models of it and a schema; return the files to damage."""
    rng = np.random.default_rng(0)
    size, town, day = (
        rng.normal(50, 9, ROWS).round(2),
        rng.choice(["Kiel", "Bonn", "Ulm"], ROWS),
        np.arange(ROWS),
    )
    level = size / 10 + 2 * (town == "Ulm") + day / 30 + rng.normal(0, 0.3, ROWS)
    columns = {
        "size": [f"{v} m" if i % 9 else "" for i, v in enumerate(size)],
        "town": [v if i % 11 else "" for i, v in enumerate(town)],
        "day": [str(np.datetime64("2024-01-01") + int(i)) for i in day],
        "new": np.where((rng.random(ROWS) < 0.5), "yes", "no"),
        "y": level.round(3),
        "count": rng.poisson(level),
        "yes": np.where(level > np.median(level), "up", "down"),
        "band": np.digitize(level, np.quantile(level, [1 / 3, 2 / 3])),
    }
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values())])
    schema = folder / "schema.json"
    for name, (target, options) in MODELS.items():
        drop = [f"--drop={other}" for other in ("y", "count", "yes", "band") if other != target]
        files = ["--out", folder / f"{name}.json", "--save-schema", schema, "--png", "/dev/null"]
        done = run("fit", folder / "t.csv", "--target", target, *drop, *options, *files)
        assert done.exit_code == 0, done.output
    return [*(folder / f"{name}.json" for name in MODELS), schema]


def cases(files: list[Path], count: int, seed: int):
    """Yield numbers of cases, the file that each damages, and the damaged content."""
    for case in range(seed * 10**6, seed * 10**6 + count):
        rng = np.random.default_rng(case)
        path = files[-1] if case % 5 == 4 else files[rng.integers(len(files) - 1)]
        yield case, path, damage(path.read_bytes(), rng)


def check(path: Path, content: bytes, folder: Path) -> tuple[str, str]:
    """Have the program read a damaged file: what came of it, and a fault if it is one."""
    damaged = folder / f"damaged-{path.name}"
    damaged.write_bytes(content)
    # Where a name is "nan", only JSON tells it from a number.
    as_json = ["--json"] if len(content) % 2 or b'"nan"' in content else []
    if path.name == "schema.json":
        done = run("fit", folder / "t.csv", "--target", "y", "-k", 1, "--schema", damaged, *as_json)
    else:
        done = run("predict", damaged, folder / "t.csv", *as_json)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        last = traceback.extract_tb(done.exc_info[2])[-1]
        return "traceback", f"{done.exception!r:.200} [{last.filename}:{last.lineno}]"
    if done.exit_code == 0:
        spelled = r"\b(?:NaN|Infinity)\b" if as_json else r"(?i)\b(?:nan|inf|infinity)\b"
        found = re.search(spelled, done.stdout)
        return "answer", f"prints {found[0]}" if found else ""
    lines = done.stderr.splitlines()
    good = done.exit_code == 2 and lines and all(re.match(r"Error: .+; .+", line) for line in lines)
    return "refused", "" if good else f"exit code {done.exit_code}: {done.output[-300:]!r}"


def run(*arguments):
    from click.testing import CliRunner

    from skpursuit.apps.cli import main

    return CliRunner().invoke(main, list(map(str, arguments)))


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="repeat one, and print what is read")
    given = parser.parse_args(arguments)
    warnings.simplefilter("error")  # a warning of NumPy is a fault too
    counts, faults = Counter(), 0
    with tempfile.TemporaryDirectory() as name:
        files = prepare(Path(name))
        if given.case is not None:
            given.seed, given.cases = divmod(given.case, 10**6)
            chosen = (one for one in cases(files, given.cases + 1, given.seed) if one[0] == given.case)
        else:
            chosen = cases(files, given.cases, given.seed)
        for case, path, content in chosen:
            came, fault = check(path, content, Path(name))
            counts[came] += 1
            faults += bool(fault)
            if fault or given.case is not None:
                print(f"  case {case}, {path.name}: {came} {fault}", flush=True)
            if given.case is not None:
                print(json.dumps(json.loads(content), indent=1))
    told = ", ".join(f"{number} {came}" for came, number in sorted(counts.items()))
    print(f"model: {sum(counts.values())} cases, {told}; {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
