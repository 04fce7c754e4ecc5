"""Damaged files: python benchmarks/damage.py FORMAT [--cases N] [--seed S]; `all` takes every format.

A format writes one good file and says how it is read to an answer. Every case damages a copy: bits, bytes and
stretches are changed, the file is cut off, pieces of it change places, numbers in it become others. Where a
format seals its content by checksums, every second case damages what is inside and seals it again. Reading
must give the answer of the good file, or refuse it by a ValueError (click's own error, in programs) that
names the file. Another answer is a fault where the seal was broken, and else if it is not finite. In models
the JSON is changed in one to three places instead (keys and items go, come twice or under another
name, values become those of another type, far too large or those of another place), and sealed again. Cases
run in a child process with little memory, so that a crash or a hang is one fault with a number: `--case N`
repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gzip
import hashlib
import io
import json
import os
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import openpyxl
import pyarrow.parquet
from children import OutOfTime, outcomes, time_limit

from skpursuit import OMP, Certified, Checkpoint, Status, as_design, minimize
from skpursuit.apps.cli import main as cli

SECONDS = 20.0  # of processor time, for one case
MEMORY = 6 * 2**30  # bytes of address space beyond what Python and its libraries take
ROWS, WIDE = 40, 5
#: Unseals the content of a file: returns a part of it, and what makes a whole file of a changed part.
Unseal = Callable[[bytes, np.random.Generator], tuple[bytes, Callable[[bytes], bytes]]]


@dataclass(frozen=True)
class Format:
    """One good file, and what it means."""

    path: Path  # the file that is damaged
    read: Callable[[], Any]  # its answer, which compares by ==
    sealed: bool = False  # whether checksums cover all that the answer depends on
    unseal: Unseal | None = None  # how to change the content under a right checksum
    damage: Callable[[bytes, np.random.Generator], bytes] | None = None  # the only kind, if there is one


# -- damage: functions of content and rng -----------------------------------------------------------------


def flip(content, rng):
    damaged = bytearray(content)
    for place in rng.integers(8 * len(content), size=rng.integers(1, 9)):
        damaged[place // 8] ^= 1 << place % 8
    return bytes(damaged)


def overwrite(content, rng):
    lo, hi = stretch(content, rng)
    filling = [rng.bytes(hi - lo), bytes(hi - lo), b"\xff" * (hi - lo), b'"' * (hi - lo)][rng.integers(4)]
    return content[:lo] + filling + content[hi:]


def cut(content, rng):
    return content[: rng.integers(len(content))]


def splice(content, rng):
    (lo, hi), place = stretch(content, rng), int(rng.integers(len(content)))
    return content[:place] + content[lo:hi] + content[place + (hi - lo) * int(rng.integers(2)) :]


def drop(content, rng):
    lo, hi = stretch(content, rng)
    return content[:lo] + content[hi:]


def renumber(content, rng):
    """Change a number that is written in digits."""
    found = list(re.finditer(rb"\d+", content))
    if not found:
        return recount(content, rng)
    match = found[rng.integers(len(found))]
    new = [b"0", b"-1", b"1" + match[0], b"9" * 18, b"1e400", b"", b"2"][rng.integers(7)]
    return content[: match.start()] + new + content[match.end() :]


def recount(content, rng):
    """Change a number that is written in bytes."""
    size = int(rng.choice([1, 2, 4, 8]))
    place = int(rng.integers(max(1, len(content) - size)))
    new = int(rng.choice([0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (4 * size)]))
    return content[:place] + new.to_bytes(size, "little") + content[place + size :]


def stretch(content, rng):
    lo = int(rng.integers(len(content)))
    return lo, min(len(content), lo + int(2 ** rng.uniform(0, 9)))


DAMAGES = (flip, overwrite, cut, splice, drop, renumber, recount)
VALUES = (
    None, True, False, 0, -1, 1, 2, 0.5, 1e300, 1.7e308, -1.7e308, 5e-324, float("nan"), float("inf"),
    float("-inf"), 2**53 + 1, 10**30, 10**400, "", "x", "nan", "1e999", "poisson", "multinomial",
    "\0", "\ud800", "$", "a" * 3000, [], {}, [[]], [1], ["a"], ["a", "a"], [0.5, float("nan")],
    {"a": 1}, {"0.5": 1e308}, {"0.1": 3, "0.9": -3},
)  # fmt: skip


def json_damage(content, rng):
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
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        key = keys[rng.integers(len(keys))]
    return parent, key


# -- formats: functions of a folder -----------------------------------------------------------------------


def numbers():
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((ROWS, WIDE)), 3)
    return X, np.round(X[:, 1] - 2 * X[:, 3] + 0.1 * rng.standard_normal(ROWS), 3)


def rows():
    X, y = numbers()
    town = np.where(X[:, 0] > 0, "Kiel", "Bonn").tolist()
    heads = [*(f"x{j}" for j in range(WIDE)), "town", "y"]
    return heads, [[*line, place, target] for line, place, target in zip(X.tolist(), town, y.tolist())]


def program(*given):
    """What `skpursuit` prints; its refusals are exceptions of click."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        cli.main(list(map(str, given)), standalone_mode=False)
    return printed.getvalue()


def fitted(path, *more):
    """Read a table by the program, as people do."""

    def read():
        told = json.loads(program("fit", path, "-k", 2, "--json", *more), parse_constant=not_finite)
        return {name: told[name] for name in ("features", "intercept", "path", "classes")}

    return read


def pursued(X, y, k, *more, **given):
    """The answer of a pursuit; one that went on from a checkpoint may say that its numbers are wrong."""
    result = minimize(X, y, OMP(k), *more, **given)
    if result.status is Status.INCONSISTENT and "checkpoint" in given:
        raise ValueError(f"{given['checkpoint'].path}: the run says that its numbers do not go together")
    return result.support.tolist(), result.coef.tolist(), float(result.objective)


def not_finite(name):
    raise ArithmeticError(f"the answer holds {name}")


def joined(lines):
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def csv(folder):
    path, (heads, lines) = folder / "t.csv", rows()
    path.write_text(joined([heads, *lines]))
    return Format(path, fitted(path, "--target", "y"))


def csv_gz(folder):
    path = folder / "t.csv.gz"
    path.write_bytes(gzip.compress(csv(folder).path.read_bytes(), mtime=0))
    return Format(path, fitted(path, "--target", "y"), sealed=True)


def xlsx(folder):
    book, path = openpyxl.Workbook(), folder / "t.xlsx"
    for line in (rows()[0], *rows()[1]):
        book.active.append(line)
    book.save(path)
    return Format(path, fitted(path, "--target", "y"), sealed=True, unseal=zip_member("sheet1", "workbook"))


def ods(folder):
    urn, path, (heads, lines) = "urn:oasis:names:tc:opendocument:xmlns", folder / "t.ods", rows()
    space = " ".join(f'xmlns:{name}="{urn}:{name}:1.0"' for name in ("office", "table", "text"))

    def cell(value):
        kind = 'string"' if isinstance(value, str) else f'float" office:value="{value}"'
        text = f"<text:p>{value}</text:p>" if isinstance(value, str) else ""
        return f'<table:table-cell office:value-type="{kind}>{text}</table:table-cell>'

    body = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in (heads, *lines))
    for tag in ('table:table table:name="s"', "office:spreadsheet", "office:body"):
        body = f"<{tag}>{body}</{tag.split()[0]}>"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{urn}:manifest:1.0"/>')
        archive.writestr("content.xml", f"<office:document-content {space}>{body}</office:document-content>")
    return Format(path, fitted(path, "--target", "y"), sealed=True, unseal=zip_member("content"))


def npy(folder):
    path = folder / "t.npy"
    np.save(path, numbers()[0])
    return Format(path, lambda: pursued(str(path), numbers()[1], 2))


def parquet_file(folder):
    path, (heads, lines) = folder / "t.parquet", rows()
    table = pyarrow.table(dict(zip(heads, zip(*lines))))
    pyarrow.parquet.write_table(table, path, row_group_size=16, write_page_checksum=True)
    return path


def parquet_table(folder):
    path = parquet_file(folder)
    return Format(path, fitted(path, "--target", "y"))


def parquet(folder):
    path = parquet_file(folder)
    return Format(path, lambda: pursued(as_design(str(path), exclude=["town", "y"]), numbers()[1], 2))


def checkpoint(folder):
    path, (X, y) = folder / "run", numbers()
    pursued(X, y, 4, checkpoint=Checkpoint(path), callback=lambda record: record.iteration == 2)

    def unseal(content, rng):
        head, _, body = content.partition(b"\n")

        def seal(body):
            return head + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n" + body

        part, put = zip_member("npy")(body.partition(b"\n")[2], rng)
        return part, lambda changed: seal(put(changed))

    read = lambda: pursued(X, y, 4, checkpoint=Checkpoint(path))  # noqa: E731
    return Format(path, read, sealed=True, unseal=unseal)


def codes(folder, chosen="*/3.codes"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 300))
    y = X[:, 7] - X[:, 90] + 0.1 * rng.standard_normal(1200)
    np.save(folder / "X.npy", X)

    def read():
        design = as_design(str(folder / "X.npy"), memory_limit="2MB", codes=str(folder / "codes"))
        return pursued(design, y, 3, Certified())

    read()
    return Format(next((folder / "codes").glob(chosen)), read, sealed=True)


def codes_index(folder):
    return codes(folder, "*/*.json")


def model(folder, target, *options):
    """A model that the program wrote, and how it predicts."""
    rng, n = np.random.default_rng(0), 60
    size, town, day = rng.normal(50, 9, n).round(2), rng.choice(["Kiel", "Bonn", "Ulm"], n), np.arange(n)
    level = size / 10 + 2 * (town == "Ulm") + day / 30 + rng.normal(0, 0.3, n)
    columns = {
        "size": [f"{v} m" if i % 9 else "" for i, v in enumerate(size)],
        "town": [v if i % 11 else "" for i, v in enumerate(town)],
        "day": [str(np.datetime64("2024-01-01") + int(i)) for i in day],
        "new": np.where((rng.random(n) < 0.5), "yes", "no"),
        "y": level.round(3),
        "count": rng.poisson(level),
        "yes": np.where(level > np.median(level), "up", "down"),
        "band": np.digitize(level, np.quantile(level, [1 / 3, 2 / 3])),
    }
    path, table = folder / "model.json", folder / "t.csv"
    table.write_text(joined([columns, *zip(*columns.values())]))
    drop = [f"--drop={other}" for other in ("y", "count", "yes", "band") if other != target]
    program("fit", table, "--target", target, *drop, *options, "--out", path)
    reads = ["predict", path, table]

    def read():
        told = json.loads(program(*reads, "--json"), parse_constant=not_finite)
        plain = program(*reads)
        if b'"nan"' not in path.read_bytes() and re.search(r"(?i)\b(?:nan|inf|infinity)\b", plain):
            raise ArithmeticError("the answer holds a number that is not finite")
        return told

    return Format(path, read, damage=json_damage)


#: Targets and options of the models.
MODELS = {
    "model_number": ("y",),
    "model_few": ("y", "-k", 2),
    "model_count": ("count", "--loss", "poisson", "-k", 2),
    "model_two": ("yes",),
    "model_three": ("band",),
}


def zip_member(*names):
    """Take a member of a zip archive whose name holds one of these words."""

    def unseal(content, rng):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        chosen = [name for name in parts if any(word in name for word in names)]
        name = chosen[rng.integers(len(chosen))]

        def seal(changed):
            whole = io.BytesIO()
            with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
                for other, part in (parts | {name: changed}).items():
                    archive.writestr(other, part)
            return whole.getvalue()

        return parts[name], seal

    return unseal


FORMATS: dict[str, Callable[[Path], Format]] = {
    function.__name__: function
    for function in (
        csv, csv_gz, xlsx, ods, npy, parquet_table, parquet,
        checkpoint, codes, codes_index,
    )
}  # fmt: skip
FORMATS |= {
    name: partial(lambda folder, given: model(folder, *given), given=given) for name, given in MODELS.items()
}


# -- one case ---------------------------------------------------------------------------------------------


def run_case(form, good, answer, seed):
    """Damage the file of a format and read it: the damage, what came of it, and a fault if it is one."""
    rng = np.random.default_rng(seed)
    damage = form.damage or DAMAGES[rng.integers(len(DAMAGES))]
    inside = form.unseal is not None and rng.random() < 0.5
    content, seal = form.unseal(good, rng) if inside else (good, bytes)
    form.path.write_bytes(seal(damage(content, rng)))
    what = damage.__name__ + " inside" * inside
    try:
        with time_limit(SECONDS):
            found = form.read()
    except (Exception, OutOfTime) as error:
        told = f"{type(error).__name__}: {' '.join(getattr(error, 'message', str(error)).split())}"
        place = traceback.extract_tb(error.__traceback__)[-1]
        fault = "" if is_sentence(error, form.path) else f"{told[:300]} [{place.filename}:{place.lineno}]"
        return what, "refused", fault
    if found == answer:
        return what, "same", ""
    if form.sealed and not inside:
        return what, "silent", f"another answer, without a word: {str(found)[:200]}"
    with contextlib.suppress(ValueError):
        json.dumps(found, allow_nan=False)
        return what, "other", ""
    return what, "other", f"an answer that is not finite: {str(found)[:200]}"


def is_sentence(error, path):
    """Whether an error is one of ours that names the file, or click's; refused numbers of X need no file."""
    told, place = getattr(error, "message", str(error)), str(path.parent)
    if isinstance(error, click.ClickException):
        return place in told and (path.suffix != ".json" or all("; " in line for line in told.splitlines()))
    named = place in told or re.match(r"X contains NaN|column \d+ of X is of size|y has \d+ rows and X", told)
    return isinstance(error, ValueError) and bool(named)


def files_below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def restore(folder, files):
    """Put good files back: a run may write beside the one that it reads, or over it."""
    now = files_below(folder)
    for path in set(now) - set(files):
        path.unlink()
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if now.get(path) != content:
            path.write_bytes(content)


def work(name, cases):
    """Run cases in this process, a line of JSON for each."""
    warnings.simplefilter("error")  # a warning of NumPy is a fault too
    warnings.filterwarnings(
        "default", ".*: the target is ", UserWarning
    )  # a word about a header that was damaged
    with tempfile.TemporaryDirectory() as folder:
        form = FORMATS[name](Path(folder))
        files = files_below(Path(folder))
        answer = form.read()
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY,) * 2)
        for case in cases:
            restore(Path(folder), files)
            told = run_case(form, files[form.path], answer, case)
            print(json.dumps(told), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("format", choices=[*FORMATS, "all"])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="repeat one in this process")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work or given.case is not None:
        lo, hi = map(int, (given.work or f"{given.case}:{given.case + 1}").split(":"))
        work(given.format, range(lo, hi))
        return 0
    faults, first = 0, given.seed * 10**6
    for name in FORMATS if given.format == "all" else [given.format]:
        began, bad, counts = time.monotonic(), 0, Counter()
        with tempfile.TemporaryDirectory() as folder:
            FORMATS[name](Path(folder)).read()  # the good file can be read, or this ends here
        command = [sys.executable, __file__, name]
        for case, told, end in outcomes(command, first, first + given.cases, 60 + 3 * SECONDS):
            what, came, fault = told or ("?", "died", end)
            counts[came] += 1
            if fault:
                bad += 1
                print(f"  case {case}, {what}: {fault}", flush=True)
        told = ", ".join(f"{counts[came]} {came}" for came in ("refused", "same", "other", "silent", "died"))
        seconds = time.monotonic() - began
        print(f"{name}: {given.cases} cases, {told}; {bad} faults; {seconds:.0f} s", flush=True)
        faults += bad
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
