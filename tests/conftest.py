"""The environment of all tests."""

import os
from importlib.util import find_spec
from pathlib import Path

# scikit-learn's array API checks are skipped without it, and it is read when scipy is first imported.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

# Numba compiles a kernel again when its own file has changed, and not when one that it imports from has.
KERNELS = Path(find_spec("skpursuit").submodule_search_locations[0]) / "kernels"
NEWEST = max(path.stat().st_mtime for path in KERNELS.glob("*.py"))
for compiled in KERNELS.glob("__pycache__/*.nb[ic]"):
    if compiled.stat().st_mtime < NEWEST:
        compiled.unlink(missing_ok=True)
