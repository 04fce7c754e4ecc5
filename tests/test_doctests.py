"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import skpursuit


def test_docstring_examples():
    attempted = 0
    for info in pkgutil.walk_packages(skpursuit.__path__, "skpursuit."):
        if info.name.endswith("__main__"):
            continue
        result = doctest.testmod(importlib.import_module(info.name))
        assert result.failed == 0, info.name
        attempted += result.attempted
    assert attempted > 5
