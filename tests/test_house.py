"""Limits on the shape of the library, so that it cannot slide back; docs/architecture.md says why.

Each limit is one constant. A limit may be lowered when the library has become simpler, and is never raised:
whoever needs room makes it. Those of lines were set once, by the third edition: the room for all the issues
that follow, together.
"""

import ast
import dataclasses
import importlib
import inspect
import sys
from pathlib import Path
from types import FunctionType
from typing import get_type_hints

import numpy as np
import pytest

import skpursuit
from skpursuit.data import Design
from skpursuit.data.tile import Tile
from skpursuit.selectors import Query
from tests.support.walk import STEPS, walked

ROOT = Path(__file__).parents[1]
PACKAGE = Path(skpursuit.__file__).parent
PROGRAMS = "apps"  # they use the library, and nothing of it imports them
NAMES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
LIBRARY = {
    name.as_posix(): ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    for name in NAMES
    if name.parts[0] != PROGRAMS
}
ENDS = ("max", "min", "tiny", "smallest_normal", "smallest_subnormal")  # of `numpy.finfo`

CALLS_ACROSS_FILES = {("squared", 3000, 6000): 24, ("logistic", 8000, 300): 60}  # of a step, on average
FILES_OF_A_DEFAULT_FIT = 30
QUERY_FIELDS = 9
DESIGN_METHODS = 16
TILE_METHODS = 12
PROBES = 8
EXTREMES = 4
ROOT_FILES = 10
#: The library is what is not apps/.
LINES = {"src/skpursuit": 23_000, "src/skpursuit/apps": 6_300, "tests": 19_500, "benchmarks": 5_500}


@pytest.mark.parametrize(("case", "most"), CALLS_ACROSS_FILES.items())
def test_a_step_is_a_short_walk(case, most):
    steps = walked(*case)
    assert sum(map(len, steps)) <= most * STEPS, [len(step) for step in steps]


def test_a_default_fit_passes_through_few_files():
    rng, entered = np.random.default_rng(0), set()
    X, home = rng.standard_normal((500, 200)), str(PACKAGE)
    y = X[:, :5].sum(axis=1) + rng.logistic(size=500) > 0
    skpursuit.PursuitClassifierCV().fit(X, y)  # what is made at the first use is made
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: entered.add(frame.f_code.co_filename))
    skpursuit.PursuitClassifierCV().fit(X, y)
    sys.setprofile(before)
    found = sorted(name.removeprefix(home) for name in entered if name.startswith(home))
    assert len(found) <= FILES_OF_A_DEFAULT_FIT, found


def test_a_query_is_plain_data():
    fields = dataclasses.fields(Query)
    assert len(fields) <= QUERY_FIELDS
    hints = get_type_hints(Query)
    assert not [field.name for field in fields if "Callable" in str(hints[field.name])]
    query = Query(np.ones(3))
    assert not [field.name for field in fields if isinstance(getattr(query, field.name), FunctionType)]


@pytest.mark.parametrize(("kind", "most"), [(Design, DESIGN_METHODS), (Tile, TILE_METHODS)])
def test_data_has_few_verbs(kind, most):
    """Methods with what is inherited; properties are not methods."""
    public = [name for name in dir(kind) if not name.startswith("_")]
    methods = [name for name in public if callable(inspect.getattr_static(kind, name))]
    assert len(methods) <= most, methods


def test_few_probes():
    """Abilities are declared: what a thing can do is not found out by looking at it."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in LIBRARY.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "hasattr") or ast.unparse(node) == "sys.modules"
    ]
    assert len(found) <= PROBES, found


def test_no_package_asks_for_the_classes_of_another():
    """Those are asked for what they can do; abstract bases and classes of one's own package may be named."""
    found = []
    for name, tree in LIBRARY.items():
        package = name.split("/")[0]
        foreign = {
            alias.asname or alias.name: getattr(importlib.import_module(node.module), alias.name, None)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("skpursuit.")
            for alias in node.names
            if node.module.split(".")[1] != package
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                asked = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                kinds = [foreign[one] for one in asked & set(foreign)]
                if any(inspect.isclass(kind) and not inspect.isabstract(kind) for kind in kinds):
                    found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert not found


def test_numbers_near_the_ends_of_the_float_range_stand_in_numerics():
    """Constants beyond 1e60 or below 1e-60, powers written out and the ends that `finfo` tells included."""
    found = [
        f"{name}:{node.lineno} {ast.unparse(node)}"
        for name, tree in LIBRARY.items()
        if not name.startswith("numerics/")
        for node in ast.walk(tree)
        if is_extreme(node)
    ]
    assert len(found) <= EXTREMES, found


def is_extreme(node):
    """Whether an expression is a number near an end of the float range."""
    if isinstance(node, ast.Attribute):
        return node.attr in ENDS and "finfo" in ast.unparse(node.value)
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    if not power and not isinstance(node, ast.Constant):
        return False
    try:
        value = eval(ast.unparse(node), {"__builtins__": {}})
    except NameError:  # a power of something that is not known here
        return False
    return isinstance(value, float) and value != 0 and not 1e-60 <= abs(value) <= 1e60


def test_few_files_at_the_root():
    files = sorted(path.name for path in PACKAGE.glob("*.py"))
    assert len(files) <= ROOT_FILES, files


@pytest.mark.parametrize(("folder", "most"), LINES.items())
def test_nothing_grows(folder, most):
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in (ROOT / folder).rglob("*.py")}
    programs = ROOT / "src/skpursuit" / PROGRAMS
    if folder == "src/skpursuit":
        lines = {path: count for path, count in lines.items() if programs not in path.parents}
    assert sum(lines.values()) <= most
