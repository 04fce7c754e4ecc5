"""Checkpoints: a state and its history in one file, written atomically, never pickled.

The factor of a fit, which is as large as the columns of the support, is left out. It is made again from those
columns when a run goes on (`fit/growing.py`).
"""

import hashlib
import io
import json
import os
import tempfile
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from skpursuit._atomic_files import write_atomically
from skpursuit.numerics.arrays import are_columns
from skpursuit.parameters import check_count, check_number, check_path
from skpursuit.problem.problem import Problem
from skpursuit.problem.state import Record, SparseUpdate, State, Status
from skpursuit.selectors.base import BoundSelector

FILE_PREFIX = b"skpursuit checkpoint "
MAGIC = FILE_PREFIX + b"6\n"  # raised where a state, or what a parameter means, has changed


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run is saved.

    Parameters
    ----------
    path : str or Path
        The file. If it exists the run goes on from it, to the same bits as if it had never stopped.
    interval : float
        Seconds between saves; a run is also saved on Ctrl-C and when it ends.
    """

    path: str | os.PathLike[str]
    interval: float = 60.0

    def __post_init__(self) -> None:
        check_path("checkpoint path", self.path)
        check_number("interval", self.interval, "[0, inf]")


@dataclass
class Snapshot:
    """What a checkpoint holds: a state without its factor, and how the run came to it."""

    state: State
    history: list[Record]
    seed: int
    fingerprints: dict[str, str]


def check_writable(path: Path) -> None:
    """Refuse a path that cannot hold a checkpoint, or holds something else, before any work is done."""
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint {path}: the folder {path.parent} does not exist; make it first")
    if path.is_dir():
        raise ValueError(f"checkpoint {path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise ValueError(f"checkpoint {path} is a device or a pipe; name a plain file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        reason = f"the folder {path.parent} cannot be written to ({error.strerror})"
        raise ValueError(f"checkpoint {path}: {reason}; name a file in another one") from None
    if path.exists():
        load_snapshot(path)


def save_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot so that the file is either the old one or the new one, whole."""
    state = snapshot.state
    arrays = {f"state.{f.name}": np.asarray(getattr(state, f.name)) for f in fields(state)[:5]}
    move = {} if state.last_update is None else state.last_update._asdict()
    groups = {"memory": state.memory, "selector": state.selector_memory, "move": move}
    for group, members in groups.items():
        arrays |= {f"{group}.{name}": np.asarray(value) for name, value in members.items()}
    header = {
        "status": state.status.name if state.status else None,
        "history": [asdict(record) for record in snapshot.history],
        "seed": snapshot.seed,
        "fingerprints": snapshot.fingerprints,
    }
    body = io.BytesIO()
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(body, allow_pickle=False, **arrays)
    content = body.getvalue()
    digest = hashlib.sha256(content).hexdigest().encode() + b"\n"
    write_atomically(path, MAGIC + digest + content)


def load_snapshot(path: Path) -> Snapshot:
    """Read a snapshot; ValueError when the file is not one, is cut short, or was changed."""
    content = path.read_bytes()
    if not content.startswith(MAGIC):
        number = content[len(FILE_PREFIX) :].partition(b"\n")[0][:8].decode("ascii", "replace")
        what = f"has format {number} and " if content.startswith(FILE_PREFIX) else ""
        raise ValueError(f"{path} {what}is not a checkpoint of this version; name another file or delete it")
    digest, _, body = content[len(MAGIC) :].partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError(f"{path} is damaged: its checksum does not match; delete it to start again")
    try:
        return _parsed(body)
    except Exception as error:  # numpy and zipfile raise whatever the bytes lead to
        raise ValueError(f"{path} does not hold a run ({error}); delete it to start again") from None


def _parsed(body: bytes) -> Snapshot:
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        header = json.loads(file["header"].tobytes())
        arrays = {name: file[name] for name in file.files if name != "header"}
    for name, part in arrays.items():
        if not isinstance(part, np.ndarray):
            raise ValueError(f"{name} is not an array")
        remembered = name.startswith(("memory.", "selector.", "move."))
        if remembered and (part.dtype.kind not in "biuf" or np.isnan(part).any()):
            raise ValueError(f"{name} does not consist of numbers")

    def group(kind: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(kind): part for name, part in arrays.items() if name.startswith(kind)}

    plain, move = group("state."), group("move.")
    state = State(
        support=plain["support"],
        coef=plain["coef"],
        z=plain["z"],
        objective=float(plain["objective"]),
        dropped=plain["dropped"],
        memory=group("memory."),
        status=Status[header["status"]] if header["status"] else None,
        last_update=SparseUpdate(float(move["factor"]), move["columns"], move["amounts"]) if move else None,
        selector_memory=group("selector."),
    )
    history = [Record(**record | {"selected": tuple(record["selected"])}) for record in header["history"]]
    if [record.iteration for record in history] != list(range(len(history))):
        raise ValueError("its iterations are not in order")
    check_count("seed", header["seed"], optional=False, least=0)
    return Snapshot(state, history, header["seed"], dict(header["fingerprints"]))


def restore_state(path: Path, saved: Snapshot, first: State, problem: Problem, bound: BoundSelector) -> State:
    """The state of a snapshot, whole again, for a run that began with the state `first`.

    Refuses a state that no run with this selector on its design can have.
    """
    state, design, targets = saved.state, problem.design, first.coef.shape[1:]
    columns, move = [state.support, state.dropped], state.last_update
    values = [(state.coef, (np.size(state.support), *targets)), (state.z, first.z.shape)]
    if move is not None:
        columns.append(move.columns)
        values += [(move.amounts, (np.size(move.columns), *targets)), (np.array(move.factor), ())]
    known = all(are_columns(part, design.shape[1]) for part in columns)
    known &= all(part.shape == shape and part.dtype.kind == "f" for part, shape in values)
    known = known and all(np.isfinite(part).all() for part, _ in values) and not np.isnan(state.objective)
    known = known and len(np.unique(state.support)) == len(state.support)
    known &= all(_form(state.memory.get(name)) == _form(value) for name, value in first.memory.items())
    known &= bound.selector.accepts_memory(design, state.selector_memory, targets)
    factor = None
    if known and first.factor is not None:
        factor = first.factor.first(0).add_columns(problem, state.support)
    if not known or (factor is None) != (first.factor is None):
        raise ValueError(f"{path} does not hold a run on this X and y; delete it to start again")
    return replace(state, factor=factor)


def _form(value: np.ndarray | None) -> tuple[object, ...]:
    """What stays the same when a memory grows along its first axis."""
    return () if value is None else (value.dtype.kind, value.ndim, value.shape[1:])


def check_fingerprints(path: Path, saved: dict[str, str], now: dict[str, str]) -> None:
    """Refuse to go on with other data or parameters."""
    for name in [*now, *(name for name in saved if name not in now)]:
        if saved.get(name) != now.get(name):
            raise ValueError(
                f"checkpoint {path} was made with a different {name}; give the same one or delete the file"
            )


def fingerprint(value: object, depth: int = 4) -> str:
    """Digest of an array, or the text of a component, which may hold others up to a depth."""
    if isinstance(value, np.ndarray):
        return hashlib.sha256(repr(value.shape).encode() + np.ascontiguousarray(value).tobytes()).hexdigest()
    text = repr(value)
    if " at 0x" not in text:
        return text
    # An address, which is another one in each process: the name and what it holds instead.
    name = getattr(value, "__qualname__", type(value).__qualname__)
    code = getattr(value, "__code__", None)
    if code is not None:
        constants = [repr(constant) for constant in code.co_consts if " at 0x" not in repr(constant)]
        return f"{name} {hashlib.sha256(code.co_code).hexdigest()} {code.co_names} {constants}"
    inside = getattr(value, "__dict__", {}) if depth else {}
    return f"{name}({ {key: fingerprint(part, depth - 1) for key, part in inside.items()} })"
