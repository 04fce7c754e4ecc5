"""Code in a fresh interpreter: what it imports, compiles and limits is its own."""

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from skpursuit.apps.cli import main

ROOT = Path(__file__).parents[2]


def run_python(*arguments, timeout=600, **environment):
    """Run the interpreter with these arguments and variables; what it printed, or AssertionError with why."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=ROOT,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def run_code(code, **given):
    """Run lines of code; arguments and result as those of `run_python`."""
    return run_python("-c", code, **given)


def invoke(*arguments, code=0, **more):
    """What `skpursuit` does with these arguments, in this process; it must end with this code."""
    done = CliRunner().invoke(main, list(map(str, arguments)), **more)
    assert done.exit_code == code, done.output
    return done
