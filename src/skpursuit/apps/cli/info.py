"""``skpursuit info``: versions and machine. Results of the studies store them, too."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from importlib.metadata import distributions
from pathlib import Path

from skpursuit import __version__
from skpursuit.apps.cli.program import EXTRAS, Output, command

PACKAGES = ("skpursuit", "numpy", "scipy", "numba", "scikit-learn", "threadpoolctl")


def machine_info() -> dict[str, object]:
    """Describe this machine and the libraries in use."""
    import numpy as np
    from threadpoolctl import threadpool_info

    from skpursuit.kernels.codes import DEFAULT_ISA

    np.ones((2, 2)) @ np.ones((2, 2))  # loads BLAS, so that it can be named
    blas = {f"{b['internal_api']} {b['version']}" for b in threadpool_info() if b["user_api"] == "blas"}
    try:
        memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        memory = "unknown"
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": memory,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: installed_version(name) or "unknown" for name in PACKAGES},
        "blas": ", ".join(sorted(blas)) or "unknown",
        "products": f"{DEFAULT_ISA} (of bytes, by certified selection)",
    }


def installed_version(package: str) -> str | None:
    """The version of a package, None if it is not there."""
    return next((found.version for found in distributions(name=package)), None)


def _processor() -> str:
    found = None
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        found = re.search(r"^model name\s*:\s*(.+)$", text, re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


@command
def info(out: Output) -> None:
    """Show versions, machine, optional packages, solvers, selectors and losses: what a bug report needs."""
    from skpursuit.problem.losses import LOSSES
    from skpursuit.selectors import SELECTORS
    from skpursuit.solvers import SOLVERS

    extras = {
        name: installed_version(name) or f"missing, pip install 'skpursuit[{extra}]'"
        for name, extra in EXTRAS.items()
    }
    facts: dict[str, object] = {**machine_info(), **extras}
    for kind, names in (("solvers", SOLVERS), ("selectors", SELECTORS), ("losses", LOSSES)):
        facts[kind] = ", ".join(names)
    facts["skpursuit"] = __version__
    for name, value in facts.items():
        out.echo(f"{name:<16}{value}")
    out.echo_json(facts)
