"""Damaged sources and stopped passes: one error that names the piece, nothing left behind."""

import io
import os
import signal
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skpursuit import OMP, as_design, minimize
from skpursuit.data.disk import file_store as recipes
from skpursuit.data.read_counter import CountedFile

from ..support.data import TwoBytes
from .test_on_files import problem, save

LIMIT = "4MB"


def bytes_below(folder):
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def dense(folder, X):
    return save(folder, X, range(170, 1700, 170))


def parquet(folder, X):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder.mkdir()
    for k, part in enumerate(np.array_split(X, 10)):
        pq.write_table(pa.table({f"x{j}": c for j, c in enumerate(part.T)}), folder / f"piece{k}.parquet")
    return folder


def cut_short(piece, make, monkeypatch):
    piece.write_bytes(piece.read_bytes()[:-2000])


def missing(piece, make, monkeypatch):
    piece.unlink()


def narrower(piece, make, monkeypatch):
    X = problem()[0]
    os.replace(next(make(piece.parent.parent / "other", X[:, :-1]).glob("piece7*")), piece)


def not_a_number(piece, make, monkeypatch):
    X = problem()[0]
    X[1275, 200] = np.nan
    os.replace(next(make(piece.parent.parent / "other", X).glob("piece7*")), piece)


def forbidden(piece, make, monkeypatch):
    def refuse(path, *more, real=io.open, **named):
        if str(path) == str(piece):
            raise PermissionError(13, "Permission denied")
        return real(path, *more, **named)

    def refuse_counted(file, path, reads, real=CountedFile.__init__):
        refuse(path, real=lambda path: real(file, path, reads))

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("io.open", refuse)
    monkeypatch.setattr(CountedFile, "__init__", refuse_counted)


DAMAGES = {
    cut_short: "piece7",
    missing: r"y has 1700 rows and X has 1530|checkpoint .* different X",
    narrower: "piece7.*(shape|columns)",
    not_a_number: r"NaN or infinity.*column 200.*piece7",
    forbidden: "piece7.*may not be read",
}


@pytest.mark.filterwarnings("ignore:.*row group")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("make", [dense, parquet])
def test_damage_is_named_and_leaves_nothing_behind(tmp_path, monkeypatch, make, damage):
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    X, y = problem()
    folder = make(tmp_path / "x", X)

    def fit():
        design = as_design(folder, memory_limit=LIMIT, codes=kept / "codes")
        return minimize(design, y, OMP(n_nonzero_coefs=4), TwoBytes(), checkpoint=kept / "run")

    kept.mkdir()
    fit()
    before = bytes_below(kept)
    damage(next(folder.glob("piece7*")), make, monkeypatch)
    with pytest.raises(ValueError, match=DAMAGES[damage]):
        fit()
    assert bytes_below(kept) == before
    assert not os.listdir(scratch)


# -- passes that are stopped, or told about ------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch):
    """Each read of the thread that reads ahead; the fifth presses Ctrl-C, and lasts until the run ends."""
    parquet = pytest.importorskip("pyarrow.parquet")
    made, ending = [], threading.Event()

    def watched(real):
        def read(*arguments, **named):
            if threading.current_thread() is not threading.main_thread():
                made.append(real)
                if len(made) == 5:
                    os.kill(os.getpid(), signal.SIGINT)
                    ending.wait(60)
            return real(*arguments, **named)

        return read

    def shutdown(self, *arguments, real=ThreadPoolExecutor.shutdown, **named):
        ending.set()
        real(self, *arguments, **named)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", shutdown)
    monkeypatch.setattr(recipes.os, "preadv", watched(os.preadv))
    monkeypatch.setattr(recipes, "READ_CHUNK_BYTES", 2**16)
    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", watched(parquet.ParquetFile.read_row_group))
    return made


def one_row_group(folder, X):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({f"x{j}": column for j, column in enumerate(X.T)}), folder / "x.parquet")
    return folder / "x.parquet"


def test_names_of_parquet_columns_that_are_no_text(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    path = one_row_group(tmp_path, np.ones((3, 2)))
    start, _, end = path.read_bytes().rpartition(b"x0")  # names are in the schema, and with each row group
    everywhere = path.read_bytes().replace(b"x0", b"\xf8\xf8")
    path.write_bytes(start + b"\xf8\xf8" + end)  # that of a row group is asked for by nobody
    assert as_design(path).columns(np.arange(2)).tolist() == [[1, 1, 1], [1, 1, 1]]
    path.write_bytes(everywhere)
    with pytest.raises(ValueError, match="it cannot be read as Parquet"):
        as_design(path)


READ_AHEAD = {"npy": lambda folder, X: save(folder / "x", X), "parquet": one_row_group}


@pytest.mark.filterwarnings("ignore:.*row group")
@pytest.mark.parametrize("kind", READ_AHEAD)
def test_an_interrupt_is_answered_while_x_is_read(tmp_path, reads, kind):
    X, y = problem(4100, 400, order="F")
    (tmp_path / kind).mkdir()
    path = READ_AHEAD[kind](tmp_path / kind, X)
    design = as_design(path, memory_limit="16MB", codes=tmp_path / "codes", check=False)
    with pytest.raises(KeyboardInterrupt):
        minimize(design, y, OMP(n_nonzero_coefs=9), "certified")
    assert len(reads) == 5
    for thread in threading.enumerate():
        if "reader" in thread.name:  # on its way out, or waiting for work that never comes
            thread.join(60)
            assert not thread.is_alive()
    assert not (tmp_path / "codes").exists() or not os.listdir(tmp_path / "codes")
