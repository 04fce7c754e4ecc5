"""Numba compiles a kernel again when its own file has changed, whatever it was compiled with."""

import ast
from hashlib import sha256
from pathlib import Path

import pytest

import skpursuit.kernels

FOLDER = Path(skpursuit.kernels.__file__).parent
NAME = "COMPILED_WITH"


def used_by(name):
    """The files of kernels whose code is compiled into those of one file."""
    found, todo = set(), [name]
    while todo:
        for node in ast.walk(ast.parse((FOLDER / f"{todo.pop()}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skpursuit.kernels."):
                used = node.module.rsplit(".", 1)[1]
                todo += [used] if used not in found else []
                found.add(used)
    return sorted(found)


def digest(names):
    return sha256(b"".join((FOLDER / f"{name}.py").read_bytes() for name in names)).hexdigest()[:12]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_file_changes_with_those_it_is_compiled_with(path):
    used = used_by(path.stem) if "njit" in path.read_text() else []
    line = f'{NAME} = "{digest(used)}"'
    assert (line in path.read_text()) == bool(used), f"{path.name} wants the line {line}"


def test_what_is_used_is_found_through_others():
    assert used_by("bits") == ["counts", "vectors"]
    assert used_by("rows") == []
