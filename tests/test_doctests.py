"""The examples in docstrings run, and docstrings name every parameter."""

import doctest
import importlib
import inspect
import pkgutil
import re

import skpursuit

RESULTS = {"Audit", "Proof", "Result", "Status", "Selection", "SparseCodes"}  # nobody makes them


def test_docstring_examples():
    attempted = 0
    for info in pkgutil.walk_packages(skpursuit.__path__, "skpursuit."):
        if info.name.endswith("__main__"):
            continue
        result = doctest.testmod(importlib.import_module(info.name))
        assert result.failed == 0, info.name
        attempted += result.attempted
    assert attempted > 5


def documented(thing):
    """Names in the section of parameters that `help` shows."""
    text = (inspect.getdoc(thing) or "").partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w[\w ]*\n---", text)[0]
    lines = [line.split(" : ")[0] for line in re.findall(r"^\S.*", section, re.MULTILINE)]
    return {name for line in lines for name in re.findall(r"\w+", line)}


def test_every_public_parameter_is_documented():
    missing, count = [], 0
    for name in sorted(set(skpursuit.__all__) - RESULTS):
        thing = getattr(skpursuit, name)
        fits = [thing.fit] if hasattr(thing, "fit") else []
        for one in [thing, *fits] if callable(thing) else ():
            names = set(inspect.signature(one).parameters) - {"self"}
            count += len(names)
            missing += [f"{name} {one.__name__}: {each}" for each in sorted(names - documented(one))]
    assert not missing
    assert count > 250
