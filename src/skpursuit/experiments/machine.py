"""What a run was made with: processor, system, versions."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

PACKAGES = ("skpursuit", "numpy", "scipy", "numba", "scikit-learn", "threadpoolctl")


def machine() -> dict[str, Any]:
    """Describe this machine and the libraries in use."""
    import numpy as np

    np.ones((2, 2)) @ np.ones((2, 2))  # loads BLAS, so that it can be named
    blas = {f"{b['internal_api']} {b['version']}" for b in threadpool_info() if b["user_api"] == "blas"}
    size = memory_size()
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": "unknown" if size is None else f"{size / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: installed(name) or "unknown" for name in PACKAGES},
        "blas": ", ".join(sorted(blas)) or "unknown",
    }


def installed(package: str) -> str | None:
    """The version of a package, None if it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    found = None
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def memory_size() -> int | None:
    """The bytes of memory of this machine, None if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
