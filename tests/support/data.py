"""How tests make designs, and what they ask of them that is no verb of a design."""

from collections import namedtuple

import numpy as np

from skpursuit import Certified, as_design
from skpursuit.data import caches as grams
from skpursuit.data.dense_tile import DenseTile
from skpursuit.data.design import Design
from skpursuit.data.disk.file_store import FileStore
from skpursuit.data.disk.npy_source import npy_array, recipes_of
from skpursuit.data.options import DesignOptions
from skpursuit.data.store import TileStore

Reads = namedtuple("Reads", "entries bytes prepared_entries")


class TwoBytes(Certified):
    """Certified selection with a second byte from the start, as long runs have it."""

    def _fine(self, design, expect):
        return True


# -- designs --------------------------------------------------------------------------------------------


def view(X, centre=None, scale=None, root=None):
    """root (X - centre) / scale, the parts left out being zero or one."""
    design = as_design(X)
    return design.with_view(design.view.compose(centre=centre, scale=scale, root=root))


def some_rows(X, rows):
    """A design of some rows of X."""
    design = as_design(X)
    return design.with_view(design.view.compose(rows=rows))


def with_intercept(X):
    """X and a constant column after its last one."""
    design = as_design(X)
    return design.with_view(design.view.compose(constant=True))


def cut(X, rows=(), cols=()):
    """X as a list of lists of arrays, cut before these rows and columns, where that leaves none empty."""
    rows, cols = (
        sorted({edge for edge in edges if 0 < edge < size}) for edges, size in zip((rows, cols), X.shape)
    )
    return [np.split(part, cols, axis=1) for part in np.split(X, rows)]


def tiled(X, rows=(), cols=()):
    """A design of tiles that begin at these rows and columns, which need be no multiples of 512."""
    design = Design(TileStore([[DenseTile(part) for part in row] for row in cut(X, rows, cols)]))
    design.store.start_change_detection()
    return design


def on_disk(X, path, tile_bytes=2**16):
    """A design of a `.npy` file, which is never in memory as a whole."""
    np.save(path, X)
    options = DesignOptions("1GB")
    recipes = recipes_of([npy_array(str(path), options.reads)], np.arange(X.shape[1]), tile_bytes)
    return Design(FileStore(recipes, options))


def unchecked(X, row_norms=None):
    """A dense design that may hold NaN; given norms of rows are not read from X."""
    design = Design(TileStore([[DenseTile(X)]]))
    if row_norms is not None:
        design.store.caches.norms[1, 2] = row_norms
    return design


def dense(design):
    """The matrix that a design stands for, in the highest precision there is."""
    return design.for_run().columns(np.arange(design.shape[1]), cache=False).T.astype(np.longdouble)


# -- verbs ----------------------------------------------------------------------------------------------


def product(design, r, cols=None):
    return design.product(r) if cols is None else design.dots(np.asarray(cols), r)


def gram_column(design, j):
    """Products of all columns with one."""
    return grams.gram_column(design, j, lambda count: np.empty(0, dtype=np.intp))


def gram_matrix(design):
    return grams.gram_matrix(design)


# -- what was read and is kept ----------------------------------------------------------------------------


def reads(design):
    """What a design has counted so far."""
    return Reads(design.reads.entries, design.reads.bytes, design.reads.prepared_entries)


def read_by(design, verb, *arguments):
    """What one call of a verb is counted as."""
    before = reads(design)
    verb(*arguments)
    return Reads(*(now - then for now, then in zip(reads(design), before)))


def codes(design, fine=False):
    """The codes of an X in one tile, made if they are not there, with a second byte or without."""
    return design.codes(fine).panels.only


def kept_gram_columns(design):
    """The cache of single columns of X^T X."""
    return design.caches.gram_columns


class Touched(np.ndarray):
    """An array that counts the entries every indexing of it hands out."""

    def __getitem__(self, key):
        part = np.asarray(self)[key]
        self.log.append(part.size)
        return part


class Instrumented(Design):
    """A dense design, cut before these rows and columns, that knows which entries were handed out."""

    def __init__(self, X, rows=(), cols=()):
        self.log, grid = [], [[DenseTile(part) for part in row] for row in cut(X, rows, cols)]
        for tile in (tile for row in grid for tile in row):
            tile.X = tile.X.view(Touched)
            tile.X.log = self.log
        super().__init__(TileStore(grid))

    def touched(self):
        """Entries handed out since the last call."""
        total = sum(self.log)
        self.log.clear()
        return total
