"""Files that are written atomically: leftovers of killed writers, living writers, full disks."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from skpursuit import OMP, Checkpoint, minimize
from skpursuit import _atomic_files as _files
from tests.support.failing import fails

X = np.random.default_rng(0).standard_normal((40, 30))
Y = X[:, 3] + 0.1 * X[:, 7]

KILLED = """
import os, signal, sys
from skpursuit._atomic_files import staged_write
with staged_write(sys.argv[1], "half"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_a_writer(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


def test_the_next_run_removes_what_killed_ones_left(tmp_path):
    path, other = tmp_path / "run.ckpt", tmp_path / "other.ckpt"
    for target in (path, path, other):
        kill_a_writer(target)
    assert len(list(tmp_path.iterdir())) == 3  # another writer may be alive
    mine = tmp_path / ".run.ckpt.notes.tmp"
    mine.write_text("not a leftover")
    for file in tmp_path.iterdir():
        os.utime(file, (1, 1))
    minimize(X, Y, OMP(2), checkpoint=path)
    left = sorted(file.name for file in tmp_path.iterdir())
    assert [name for name in left if "run" in name] == [mine.name, "run.ckpt"]
    assert len(left) == 3  # the other checkpoint's own is still there


def test_a_living_writer_keeps_its_file(tmp_path):
    path = tmp_path / "file"
    with _files.staged_write(path, "first") as put:
        _files.write_atomically(path, "second")
        assert path.read_text() == "second"
        assert len(list(tmp_path.iterdir())) == 2
        put()
    with _files.staged_write(path, "third"):  # which is not put
        assert len(list(tmp_path.iterdir())) == 2
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*run\.ckpt") as caught:
        minimize(X, Y, OMP(2), checkpoint=path)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


TOO_LARGE = """
import resource, sys
from skpursuit._atomic_files import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
write_atomically(sys.argv[1], b"x" * 10**6)
"""


def test_a_write_that_fails_halfway_names_the_file_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-c", TOO_LARGE, str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert f"File too large: '{tmp_path / 'file'}'" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_devices():
    fails("No space left on device", _files.write_atomically, "/dev/full", "x", error=OSError)
    fails("name a plain file", minimize, X, Y, OMP(2), checkpoint="/dev/zero")


def test_paths_that_are_none():
    for make in (Checkpoint, lambda path: minimize(X, Y, OMP(2), checkpoint=path)):
        fails("checkpoint path holds a NUL", make, "run\0.ckpt")
        fails("checkpoint path must be", make, b"run.ckpt", error=TypeError)
