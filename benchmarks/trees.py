"""Two trees of the project side by side: the one this file is in, and that of an earlier commit.

A program that compares them runs itself once per tree, as a worker process whose PYTHONPATH says which
package it imports: the text it runs is the same, only the package differs. The earlier commit is unpacked
into a folder named after its sources, which stays, so that their kernels are compiled once.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
# One thread each, so that neither bits nor times depend on how many processors are free.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def unpacked(revision: str) -> Path:
    """The folder that holds `src` of a commit."""
    sources = _git("rev-parse", "--verify", f"{revision}:src").decode().strip()
    folder = Path(tempfile.gettempdir()) / f"skpursuit-tree-{sources}"
    if not folder.exists():
        fresh = Path(tempfile.mkdtemp(prefix="skpursuit-tree-"))
        with tarfile.open(fileobj=BytesIO(_git("archive", revision, "src"))) as archive:
            archive.extractall(fresh, filter="data")
        try:
            fresh.rename(folder)
        except OSError:  # another comparison was faster
            shutil.rmtree(fresh)
    return folder


def start(tree: Path, program: str, *arguments: str, **how: object) -> subprocess.Popen[str]:
    """A worker: the program with the package of that tree; `how` are arguments of `subprocess.Popen`."""
    environment = {**os.environ, **THREADS, "PYTHONPATH": str(tree / "src"), "SKPURSUIT_TREE": str(tree)}
    return subprocess.Popen([sys.executable, program, *arguments], env=environment, text=True, **how)


def check_tree() -> None:
    """Stop a worker that imports another package than the one it was started for."""
    import skpursuit

    wanted = Path(os.environ["SKPURSUIT_TREE"]) / "src"
    if not Path(skpursuit.__file__).resolve().is_relative_to(wanted.resolve()):
        raise SystemExit(f"skpursuit comes from {skpursuit.__file__}, not from {wanted}")


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(HERE), *arguments], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout
