"""Compiled inner loops: functions of arrays, nothing else.

Importing one of these modules loads Numba, which takes half a second. Whoever can do without asks
`imported_module` first, so that small problems never wait for a compiler.
"""

import sys
from typing import Any


def imported_module(name: str) -> Any:
    """The module of this name, if something has imported it already; else None."""
    return sys.modules.get(name)
