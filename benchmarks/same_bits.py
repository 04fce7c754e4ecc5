"""Does this tree compute what an earlier commit computes, to the bit?

    python benchmarks/same_bits.py --base REV [--only SUBSTRING]

Both run the cases of `cases.py`, each in a process of its own on one thread. Supports, statuses, iterations,
certificates, coefficients, objectives, fitted attributes, warnings and the kinds of exceptions must be equal;
numbers are compared as bytes. Entries and bytes read may become fewer, not more.

`intended.toml` lists, for one base, what was meant to change: in which cases, which parts of an answer, and
by how much. With that base differences are counted under these causes. The others are printed, and the exit
code is 1 if there is one.
"""

import argparse
import pickle
import re
import sys
import tempfile
import time
import tomllib
import warnings
from collections import Counter
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from trees import HERE, check_tree, start, unpacked

INTENDED = Path(__file__).with_name("intended.toml")
READS = ("entries_read", "bytes_read", "prepared_bytes", "stored_bytes", "entries_read_")
SHOWN = 8  # differences of one case that are printed
Leaves = dict[str, Any]


class Difference(NamedTuple):
    """A part of an answer that is not as it was; `size` by how much, where that can be told.

    `kind` is "digits" (floats, zeros at the same places; size relative to the largest), "order" (the same
    integers), "more" (was read; size as a ratio), "new", "gone", "raised" or "other".
    """

    path: str
    kind: str
    text: str
    size: float = 0.0

    @property
    def field(self) -> str:
        """The name of the part, such as `coef_`; "value" for what has none."""
        names = re.findall(r"[a-z]\w*", re.sub(r"[A-Z]\w*|history_|length", "", self.path))
        return names[0] if names else "value"


def main() -> int:
    """Compare, or be one of the two workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", metavar="REV", help="the commit to compare with")
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="run cases with this in their name")
    parser.add_argument("--run", metavar="FILE", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        return run(Path(given.run), given.only)
    if not given.base:
        parser.error("--base REV is needed")
    began = time.perf_counter()
    base, ours = results_of(unpacked(given.base), HERE, only=given.only)
    different, fewer = compare(base, ours)
    causes, rest = sort_out(different, intended(unpacked(given.base)))
    for name, found in rest.items():
        lines = [f"{part.path or 'result'}: {part.text}" for part in found]
        more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        print(name, *lines[:SHOWN], *more, sep="\n    ")
    for cause, count in causes.items():
        print(f"{count:4} {cause}")
    seconds = time.perf_counter() - began
    verdict = f"{len(rest)} not as intended" if rest else "all as intended"
    print(f"{len(ours)} cases, {len(different)} differ, {verdict}; {fewer} read less ({seconds:.0f} s)")
    return int(bool(rest) or not ours)


# -- the workers ----------------------------------------------------------------------------------------


def results_of(*trees: Path, only: str) -> list[dict[str, Leaves]]:
    """What the cases give in each tree."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(number) for number in range(len(trees))]
        workers = [
            start(tree, __file__, "--run", str(file), "--only", only) for tree, file in zip(trees, files)
        ]
        if any([worker.wait() for worker in workers]):
            raise SystemExit("a worker failed")
        return [pickle.loads(file.read_bytes()) for file in files]


def run(file: Path, only: str) -> int:
    """Run the cases with the package that is on the path, and write what they give."""
    import numba  # noqa: F401  (`auto` looks whether it is loaded)
    from cases import every_case

    check_tree()
    file.write_bytes(
        pickle.dumps({name: answer(case) for name, case in every_case().items() if only in name})
    )
    return 0


def answer(case: Any) -> Leaves:
    """What a case gives: leaves by their path."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = case()
        except Exception as error:
            value = {"raised": type(error).__name__}
    leaves: Leaves = {"warnings": sorted({warning.category.__name__ for warning in caught})}
    spell(value, "", leaves)
    return leaves


def spell(value: Any, path: str, leaves: Leaves) -> None:
    """Take a value apart into arrays, numbers and text that both processes can be asked for."""
    if hasattr(value, "history") and hasattr(value, "coef"):
        parts = {name: getattr(value, name) for name in vars(value) if name not in ("selector", "history")}
        spell(parts | summed_up(value.history), path, leaves)
    elif hasattr(value, "get_params"):
        spell(fitted(value), f"{path}.{type(value).__name__}", leaves)
    elif isinstance(value, dict):
        for name, part in value.items():
            spell(part, f"{path}.{name}", leaves)
    elif isinstance(value, (list, tuple)):
        leaves[f"{path}.length"] = len(value)
        for number, part in enumerate(value):
            spell(part, f"{path}[{number}]", leaves)
    elif sp.issparse(value):
        spell({"data": value.data, "indices": value.indices, "indptr": value.indptr}, path, leaves)
    elif isinstance(value, Enum):
        leaves[path] = value.name
    elif isinstance(value, (np.ndarray, float)):
        leaves[path] = np.asarray(value)
    else:
        leaves[path] = value.item() if isinstance(value, np.generic) else value


def fitted(model: Any) -> dict[str, Any]:
    """The public attributes that a fit leaves, with the history summed up."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    history = found.pop("history_", [])
    runs = history if history and isinstance(history[0], list) else [history]
    return found | {"history_": [summed_up(run) for run in runs]}


def summed_up(history: list[Any]) -> dict[str, Any]:
    """The records of a run as columns, without their seconds; what they read, in total."""
    return {
        "certificates": [record.certificate for record in history],
        "selected": [np.array(record.selected) for record in history],
        "objectives": np.array([record.objective for record in history]),
        "gaps": np.array([np.nan if record.gap is None else record.gap for record in history]),
        "entries_read": sum(record.entries_read for record in history),
        "bytes_read": sum(record.bytes_read for record in history),
    }


# -- the comparison -------------------------------------------------------------------------------------


def compare(base: dict[str, Leaves], ours: dict[str, Leaves]) -> tuple[dict[str, list[Difference]], int]:
    """The differences of each case that has some, and the number of cases that read less."""
    different = {name: differences(base[name], now) for name, now in ours.items()}
    fewer = 0
    for name, now in ours.items():
        before = base[name]
        fewer += any(path in before and before[path] > now[path] for path in now if is_read(path))
    return {name: found for name, found in different.items() if found}, fewer


def differences(before: Leaves, now: Leaves) -> list[Difference]:
    """Parts that differ, and how."""
    was, is_ = (leaves.get(".raised", "an answer") for leaves in (before, now))
    if was != is_:
        return [Difference("", "raised", f"{was} was, {is_} is")]
    found = []
    for path in [*before, *(path for path in now if path not in before)]:
        if path not in before or path not in now:
            kind = "new" if path in now else "gone"
            found.append(Difference(path, kind, f"is {kind}"))
        elif is_read(path):
            if now[path] > before[path]:
                size = now[path] / max(1, before[path])
                found.append(Difference(path, "more", f"{before[path]} was, {now[path]} is", size))
        elif not same(before[path], now[path]):
            found.append(described(path, before[path], now[path]))
    return found


def is_read(path: str) -> bool:
    """Whether the leaf counts what was read."""
    return path.rpartition(".")[2] in READS


def same(a: Any, b: Any) -> bool:
    """Whether two leaves are equal, arrays to the bit."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and (
            a.tolist() == b.tolist() if a.dtype.kind == "O" else a.tobytes() == b.tobytes()
        )
    return type(a) is type(b) and a == b


def described(path: str, a: Any, b: Any) -> Difference:
    """How two leaves differ."""
    text = f"{short(a)} was, {short(b)} is"
    arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    if not arrays or a.shape != b.shape or a.dtype != b.dtype:
        return Difference(path, "other", text)
    if a.dtype.kind == "i" and (np.sort(a) == np.sort(b)).all():
        return Difference(path, "order", text)
    if a.dtype.kind != "f" or ((a == 0) != (b == 0)).any() or (np.isfinite(a) != np.isfinite(b)).any():
        return Difference(path, "other", text)
    with np.errstate(all="ignore"):
        error = float(np.nanmax(np.abs(a - b)) / np.nanmax(np.abs(a)))
    other = np.count_nonzero(~((a == b) | (np.isnan(a) & np.isnan(b))))
    text = text if a.size == 1 else f"{other} of {a.size} numbers differ, by {error:.1e} of the largest"
    return Difference(path, "digits", text, error)


def short(value: Any) -> str:
    """A leaf on one line."""
    if isinstance(value, np.ndarray):
        text = np.array2string(value, threshold=8, floatmode="unique").replace("\n", "")
        return f"{value.dtype} {value.shape} {text}"
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


# -- what was meant -------------------------------------------------------------------------------------


def intended(base: Path) -> list[dict[str, Any]]:
    """The causes that are listed for a base, none for another one."""
    listed = tomllib.loads(INTENDED.read_text())
    return listed["cause"] if unpacked(listed["base"]) == base else []


def sort_out(
    different: dict[str, list[Difference]], causes: list[dict[str, Any]]
) -> tuple[Counter[str], dict[str, list[Difference]]]:
    """The number of cases in which a cause is seen, and the differences that none explains."""
    seen: Counter[str] = Counter({cause["why"]: 0 for cause in causes})
    rest: dict[str, list[Difference]] = {}
    for name, found in different.items():
        told = set()
        for part in found:
            why = [cause["why"] for cause in causes if explains(cause, name, part)]
            told.update(why[:1])
            if not why:
                rest.setdefault(name, []).append(part)
        seen.update(told)
    return seen, rest


def explains(cause: dict[str, Any], name: str, part: Difference) -> bool:
    """Whether the cause touches such cases, and may change this part of their answers in this way.

    `parts` has, by field or "*", what may differ: "any", a kind of difference, or a number: how large those
    of digits and ratios may be. `not` has patterns of cases that are not touched.
    """
    if not any(fnmatchcase(name, pattern) for pattern in cause["cases"]):
        return False
    if any(fnmatchcase(name, pattern) for pattern in cause.get("not", ())):
        return False
    allowed = cause["parts"].get(part.field, cause["parts"].get("*"))
    if isinstance(allowed, (int, float)):
        return part.kind in ("digits", "more") and part.size <= allowed
    return allowed in ("any", part.kind)


if __name__ == "__main__":
    sys.exit(main())
