"""Sparse models, found by reading a fraction of the data."""

import logging
import re
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())

# The stub has every public name and the module it lives in. Modules load on first use: importing stays light.
with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as _stub:
    _HOME = {name: home for home, name in re.findall(r"^from (\S+) import (\w+)", _stub.read(), re.MULTILINE)}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'skpursuit' has no attribute {name!r}")
    home = _HOME[name]
    value = import_module(f"{home}.{name}") if home == __name__ else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
