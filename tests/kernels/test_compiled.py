"""Numba compiles a kernel again when its own file has changed, whatever it was compiled with."""

import ast
import re
from hashlib import sha256
from pathlib import Path

import pytest

import skpursuit.kernels

FOLDER = Path(skpursuit.kernels.__file__).parent
NAME = "COMPILED_WITH"


def imported(name):
    """The files of kernels that one of them imports from."""
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
        if not isinstance(node, ast.ImportFrom):
            continue
        module = "." * node.level + (node.module or "")
        if module in (".", "skpursuit.kernels"):
            yield from (alias.name for alias in node.names)
        elif module.startswith((".", "skpursuit.kernels.")):
            yield module.rsplit(".", 1)[1]


def used_by(name):
    """The files of kernels whose code is compiled into those of one file."""
    found, todo = set(), [name]
    while todo:
        new = {used for used in imported(todo.pop()) if used != "threads"} - found
        found |= new
        todo += new
    return sorted(found)


def digest(names):
    return sha256(b"".join((FOLDER / f"{name}.py").read_text().encode() for name in names)).hexdigest()[:12]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_file_changes_with_those_it_is_compiled_with(path):
    used = used_by(path.stem) if re.search("njit|@entry", path.read_text()) else []
    line = f'{NAME} = "{digest(used)}"'
    assert (line in path.read_text()) == bool(used), f"{path.name} wants the line {line}"


def test_what_is_used_is_found_through_others():
    assert used_by("columns") == ["rows", "vectors"]
    assert used_by("rows") == []
