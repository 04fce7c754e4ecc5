"""A program that finds out which pages a verb reads: python -m tests.data.guarded CASE... prints JSON.

X lies in memory of its own. For every page of it a child process takes away the right to read that page
and calls the verb: if that kills the child, the verb reads the page. Nothing else tells what a compiled
kernel reads and then throws away.
"""

import ctypes
import json
import mmap
import os
import resource
import signal
import sys

import numpy as np
import scipy.sparse as sp

from skpursuit import as_design

from ..support.data import add_rows, norms, read_by, read_rows_from, stored_rows

PAGE = mmap.PAGESIZE
LINES, PER_LINE = 6, 4  # X has so many lines (rows or columns), each of so many pages
SOME = np.array([0, 2, 3])  # of the lines


class Memory:
    """Pages that can be closed."""

    def __init__(self, pages, dtype):
        self.pages = pages
        self.mapped = mmap.mmap(-1, pages * PAGE)
        self.array = np.frombuffer(self.mapped, dtype=dtype)
        self.array[:] = np.arange(self.array.size) % 7 + 1

    def closed(self, page):
        libc = ctypes.CDLL(None, use_errno=True)
        start = ctypes.c_void_p(self.array.ctypes.data + page * PAGE)
        if libc.mprotect(start, ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def read_by(self, verb):
        """Pages without which the verb cannot do."""
        verb()  # whatever is compiled or kept is so by now
        return [page for page in range(self.pages) if self._kills(page, verb)]

    def _kills(self, page, verb):
        child = os.fork()
        if child == 0:
            self.closed(page)
            verb()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status and os.WTERMSIG(status) not in (signal.SIGSEGV, signal.SIGBUS):
            raise RuntimeError(f"the child ended with {status}")
        return status != 0


def lines(dtype):
    memory = Memory(LINES * PER_LINE, dtype)
    return memory, memory.array.reshape(LINES, -1)


def dense(layout):
    """The memory of X, the design, and the number of entries of X in a page."""
    dtype = np.float32 if "float32" in layout else np.float64
    memory, X = lines(dtype)
    page = PAGE // X.itemsize
    if "strided" in layout:
        return memory, as_design(X[:, ::2]), page // 2
    if layout.startswith("F copy"):
        # All columns of an F-ordered X are read from a copy by rows.
        design = as_design(np.asfortranarray(X))
        read_rows_from(design, X)
        return memory, design, page
    return memory, as_design(X.T if layout.startswith("F") else X), page


def sparse(layout, part):
    """Rows of one page each; `part` is "data" or "indices"."""
    width = PAGE // 8
    memory = Memory(LINES, np.float64 if part == "data" else np.int64)
    indices = np.tile(np.arange(width) * 2, LINES)
    X = sp.csr_array(
        (np.ones(LINES * width), indices, np.arange(LINES + 1) * width), shape=(LINES, 2 * width)
    )
    design = as_design(X if layout == "csr" else X.tocsc())
    norms(design, 1)
    csr = stored_rows(design)
    csr.indptr, csr.indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
    memory.array[:] = getattr(csr, part)
    setattr(csr, part, memory.array)
    return memory, design, width


def columns(choice, design, page):
    """One column in the second and the fourth page of a row, or as many as make whole rows pay."""
    if choice == "all":
        return None
    if choice == "few":
        return np.array([page + 5, 3 * page + 7])
    return np.arange(0, design.shape[1], 4)


def examine(layout, choice, part):
    if layout in ("csr", "csc"):
        memory, design, page = sparse(layout, part)
        cols = {"all": None, "few": np.array([4, 8]), "unstored": np.array([1, 3])}[choice]
    else:
        memory, design, page = dense(layout)
        by_column = layout.startswith("F") and "copy" not in layout
        cols = SOME + 1 if by_column else columns(choice, design, page)
    out = np.zeros(design.shape[1] if cols is None else len(cols))
    counted = read_by(design, add_rows, SOME, np.ones(len(SOME)), out, cols)
    pages = memory.read_by(lambda: add_rows(design, SOME, np.ones(len(SOME)), out, cols))
    return {"entries": counted.entries, "bytes": counted.bytes, "pages": pages, "page": page}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # All lines at the end: children must not have any of them in their buffers.
    found = [examine(*case.split("/")) for case in sys.argv[1:]]
    sys.stdout.writelines(json.dumps(case) + "\n" for case in found)
