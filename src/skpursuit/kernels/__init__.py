"""Compiled inner loops: functions of arrays, nothing else.

Importing one of these modules loads Numba, which takes half a second. Whoever can do without asks
`imported_module` first, so that small problems never wait for a compiler.
"""

import sys
from types import ModuleType


def imported_module(name: str) -> ModuleType | None:
    """The module of this name, if something has imported it already; else None."""
    return sys.modules.get(name)
