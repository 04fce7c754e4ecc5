"""X in files: tiles are loaded one after the other, the next one while the last one is worked on.

Two buffers and one thread that reads are all that is in memory of X itself. Whatever is kept of it (codes,
columns, products) has its share of one memory limit. Files are read by `reads.CountedFile`, which counts.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from skpursuit.data.kept import ColumnCache, Kept
from skpursuit.data.options import Options
from skpursuit.data.progress import current
from skpursuit.data.reads import FileReads, Reads
from skpursuit.data.recipes import Recipe, Stamp, check_same, naming
from skpursuit.data.spill import HEADER, Spill, Spilled
from skpursuit.data.store import Arguments, Keep, Place, Prices, TileStore, call, no_arguments
from skpursuit.data.tile import Tile
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.threads import awaited
from skpursuit.numerics.tuning import FILE_BYTE

SAMPLED = 16  # tiles of which some bytes are part of the identity of X


class FileStore(TileStore):
    """X by the recipes of its tiles.

    Parameters
    ----------
    recipes : list of list of Recipe
        One list for each range of rows.
    options : Options
        With the memory limit, the count of bytes read, and where codes go that do not fit in the limit.
    names : list of str, optional
        Of the columns, where the source has them.
    """

    in_memory, on_disk = False, True

    def __init__(self, recipes: list[list[Recipe]], options: Options, names: list[str] | None = None) -> None:
        self.limit, codes = options.limit, options.codes
        self.recipes = [recipe for row in recipes for recipe in row]
        blanks: dict[Any, Tile] = {}  # one for each shape and size
        for recipe in self.recipes:
            if (recipe.shape, recipe.nbytes) not in blanks:
                blanks[recipe.shape, recipe.nbytes] = recipe.blank()
        super().__init__([[blanks[recipe.shape, recipe.nbytes] for recipe in row] for row in recipes])
        self.names, self.codes = names, codes
        self.options, self.file_reads = options, (options.reads, FileReads())
        self.codes_folder = None if codes is None or codes == "auto" else Path(codes)
        self._spills: dict[Keep, Spill] = {}
        self._buffers: list[np.ndarray] = []
        n, d = self.shape
        whole = sum(recipe.file_bytes for recipe in self.recipes)
        self.by_columns = all(recipe.by_columns for recipe in self.recipes)
        self.columns_are_dear = not self.by_columns
        line = (whole // d, whole) if self.by_columns else (whole, whole // n)
        self.prices = Prices(FILE_BYTE, *line)

    def new_kept(self) -> Kept:
        """Empty caches within the limit."""
        limit = self.limit
        return Kept(columns=ColumnCache(limit.columns), gram_columns=ColumnCache(limit.products))

    def has_room(self, nbytes: int) -> bool:
        in_memory = self.limit.granted + nbytes <= self.limit.limit
        if in_memory or self.codes is None:
            return in_memory
        if self.codes_folder is not None and any(self.codes_folder.glob(f"*/{HEADER}")):
            return True  # there are codes of an earlier fit
        folder = (self.codes_folder or Path(tempfile.gettempdir())).absolute()
        disk = next(path for path in (folder, *folder.parents) if path.exists())
        return shutil.disk_usage(disk).free > nbytes

    # -- passes over the files --------------------------------------------------------------------------

    def run(
        self, fn: str | Callable[..., Any], args: Arguments = no_arguments, keep: Keep | None = None
    ) -> Iterator[tuple[Place, Any]]:
        todo = [(place, given) for place in self.places if (given := args(place)) is not None]
        if keep is None:
            tiles = self._loaded([place for place, _ in todo])
            for (place, given), tile in zip(todo, tiles):
                yield place, call(fn, tile, given)
            return
        spill = self._spill(keep)
        missing = [place for place in self.places if place.number not in spill.held]
        if missing:
            for place, made in self._made(keep, spill, missing):
                given = args(place)
                if given is not None:
                    yield place, call(fn, made, given)
            return
        for place, given in todo:
            kept = spill.held[place.number]
            yield place, call(fn, kept, given)
            if isinstance(kept, Spilled):
                kept.release()

    def _spill(self, keep: Keep) -> Spill:
        """Where what this makes of the tiles is; codes of an earlier run are used."""
        if keep not in self._spills:
            tiles, reads = len(self.places), self.file_reads[1]
            spill = Spill(keep, self.identity, tiles, self.codes_folder, self.options, reads)
            spill.adopt()
            self._spills[keep] = spill
        return self._spills[keep]

    def _made(self, keep: Keep, spill: Spill, missing: list[Place]) -> Iterator[tuple[Place, Any]]:
        """What is made of the tiles, while they are loaded; it is kept when the caller has used it.

        What goes to disk is written by another thread, while the next tile is worked on.
        """
        kept: Future[None] | None = None
        done = False
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="skpursuit-writer") as writer:
                for place, tile in zip(missing, self._loaded(missing)):
                    made = keep(tile, place.number)
                    if self.surveying is not None:
                        self.surveying.add(place, tile.survey(*self.surveying.arguments(place)))
                    yield place, made
                    if kept is not None:
                        awaited(kept)
                    share = tile.shape[0] * tile.shape[1] / (self.shape[0] * self.shape[1])
                    kept = writer.submit(spill.put, place.number, made, share)
            if kept is not None:
                awaited(kept)
            spill.finish()
            done = True
        finally:
            if not done:  # an error or an interrupt: nothing is left behind
                self.forget(keep)

    def forget(self, keep: Keep) -> None:
        spill = self._spills.pop(keep, None)
        if spill is not None:
            spill.drop()

    def keep_codes_beside(self, path: Any) -> None:
        """Have the codes found again by a run that goes on from this checkpoint."""
        if self.codes == "auto" and not self._spills:
            self.codes_folder = Path(f"{path}.codes")

    def _loaded(self, places: list[Place]) -> Iterator[Tile]:
        """The tiles at these places, each as long as it is in hand: its buffer is used again."""
        recipes = [self.recipes[place.number] for place in places]
        stopped, done, total = False, 0, sum(recipe.file_bytes for recipe in recipes)
        buffers = [self._buffer(max((recipe.nbytes for recipe in recipes), default=0)) for _ in range(2)]
        with ThreadPoolExecutor(1, thread_name_prefix="skpursuit-reader") as reader:
            try:
                ahead = [reader.submit(r.load, b, lambda: stopped) for r, b in zip(recipes[:1], buffers)]
                for k, recipe in enumerate(recipes):
                    tile = awaited(ahead.pop())
                    done += recipe.file_bytes
                    current().note("read {:.1f} of {:.1f} GB", done / 1e9, total / 1e9)
                    for following in recipes[k + 1 : k + 2]:
                        ahead.append(reader.submit(following.load, buffers[(k + 1) % 2], lambda: stopped))
                    yield tile
            finally:  # an interrupt, an error, or a caller that has enough
                stopped = True
                self._buffers.extend(buffers)

    def _buffer(self, nbytes: int) -> np.ndarray:
        """Memory for a tile, that of an earlier one if there is some."""
        while self._buffers:
            buffer = self._buffers.pop()
            if len(buffer) >= nbytes:
                return buffer
        return np.empty(nbytes, np.uint8)

    def take(self, cols: Indices) -> Floats:
        if not self.by_columns:
            return super().take(cols)
        out = np.empty((len(cols), self.shape[0]))
        for j, places, local in self.split(cols, self.col_edges):
            below = slice(j, None, len(self.grid[0]))
            for place, recipe in zip(self.places[below], self.recipes[below]):
                out[places, place.rows] = recipe.take(local)
        return out

    def _where_not_finite(self, column: int) -> str:
        line = self.take(np.array([column]))[0]
        row = int(np.flatnonzero(~np.isfinite(line))[0])
        for place, recipe in zip(self.places, self.recipes):
            rows, cols = place.rows, place.cols
            if rows.start <= row < rows.stop and cols.start <= column < cols.stop:
                return f", row {row}, in {recipe.file_of(row - rows.start, column - cols.start)}"
        return ""

    def panel(self) -> int:
        """Columns that one pass over files by rows gathers: the cache has room for two such panels."""
        return 0 if self.by_columns else self.limit.columns * 3 // 8 // (8 * self.shape[0])

    def combined(self, cols: Indices, centre: Floats | None, coef: Floats) -> Floats:
        if not self.by_columns:
            return super().combined(cols, centre, coef)
        out = np.zeros((self.shape[0], *coef.shape[1:]))
        for at in range(len(cols)):  # each is read alone
            line = self.take(cols[at : at + 1])[0]
            out += np.multiply.outer(line if centre is None else line - centre[at], coef[at])
        return out

    def check_rows(self, what: str) -> None:
        n, d = self.shape
        row, whole = max(1, self.prices.row), n * d * self.dtype.itemsize
        raise ValueError(
            f"this selector reads {what} of X at random; X is on disk, where one costs {row:,} bytes, "
            f'and a thousand of them for each step would take long; use selector "certified", "gram" or '
            f'"auto", or a memory_limit of {2 * whole:,} bytes, with which X is read into memory'
        )

    # -- whether X is what it was -----------------------------------------------------------------------

    def files(self) -> dict[str, Stamp]:
        """The files, and what they were when the design was made."""
        return {path: stamp for recipe in self.recipes for path, stamp in recipe.files()}

    def watch(self) -> None:
        """Files are looked at whenever they are read."""

    def check_unchanged(self) -> None:
        for path, stamp in self.files().items():
            with naming(path):
                now = os.stat(path)
            check_same(path, stamp, now)

    def digest(self, digest: Any, reads: Reads) -> None:
        """Feed names, sizes and times of the files, and what was said of columns, to a digest.

        The limit and the tiles that follow from it are left out: a run may go on with another one.
        """
        for path, stamp in self.files().items():
            digest.update(repr((os.path.basename(path), stamp.size, stamp.mtime_ns)).encode())
        if self.origin is not None:
            options = self.origin[1]
            digest.update(repr((options.columns, options.exclude, options.axis)).encode())

    @cached_property
    def identity(self) -> str:
        """Hex digest of the files, the edges of tiles and some of what is in them, for codes."""
        digest = hashlib.sha256()
        self.digest(digest, Reads())
        digest.update(self.row_edges.tobytes() + self.col_edges.tobytes())
        for number in np.unique(np.linspace(0, len(self.places) - 1, SAMPLED).astype(int)).tolist():
            digest.update(self.recipes[number].sample())
        return digest.hexdigest()
