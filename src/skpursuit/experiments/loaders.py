"""Text collections and recordings for the two experiments on real data.

None of the data comes with the package. `find_text` and `find_audio` look into the folder a user names;
without one, the experiments use the generated data of `standins` and say so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
from scipy.sparse import csr_array

from .._files import FileError
from ..tables import Columns, ReadOptions, read_columns
from ..tables.source import check_readable, open_lines


class DataError(FileError):
    """A data file or folder that cannot be used."""


@dataclass(frozen=True)
class TextCollection:
    """Documents by words.

    Attributes
    ----------
    name : str
        What the collection is called.
    X : csr_array of shape (n_documents, n_words)
        Word counts.
    y : ndarray of int
        The class of each document, 0 to K-1, an index into ``classes``.
    classes : tuple of str
        Names of the classes, sorted (as numbers where they are numbers).
    generated : bool
        Whether this is a stand-in and not real text.
    """

    name: str
    X: csr_array
    y: np.ndarray
    classes: tuple[str, ...]
    generated: bool = False


@dataclass(frozen=True)
class Recording:
    """Sound cut into pieces of equal length: ``pieces[i]`` holds consecutive samples, mono."""

    name: str
    pieces: np.ndarray
    rate: int
    generated: bool = False


def find_text(folder: str | Path, least: int = 1) -> list[TextCollection]:
    """Load every collection in a folder, or in the folder ``text`` inside it, in the order of their names."""
    return [load_text(path, least) for path in _find(folder, "text", tuple(_TEXT_READERS))]


def load_text(path: str | Path, least: int = 1) -> TextCollection:
    """Load one collection: CLUTO or Matlab ``.mat``, ``.arff``, ``.svm`` (svmlight) or ``.npz``.

    Parameters
    ----------
    path : path
        The file.
    least : int
        How many documents must have words in them.
    """
    path = Path(path)
    check_readable(path)
    reader = _TEXT_READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(path, "not a known format of text collections", f"use {', '.join(_TEXT_READERS)}")
    X, labels = reader(path)
    X = csr_array(X, dtype=np.float64)
    if labels.shape != (X.shape[0],):
        raise DataError(
            path, f"{labels.size} labels for {X.shape[0]} documents", "check that they belong together"
        )
    if X.nnz == 0 or not np.isfinite(X.data).all() or X.data.min() < 0:
        raise DataError(path, "the counts are not finite numbers of at least 0", "give raw word counts")
    written = np.count_nonzero(X.sum(axis=1))
    if written < least:
        problem = f"too few documents: {written} with words, where at least {least} are needed"
        raise DataError(path, problem, "give a larger collection")
    classes, y = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DataError(path, "all documents have the same label", "give a collection with classes")
    return TextCollection(
        path.stem, X, y, tuple(f"{c:g}" if classes.dtype.kind in "iuf" else str(c) for c in classes)
    )


def _read_mat(path: Path) -> tuple[csr_array, np.ndarray]:
    with open(path, "rb") as file:
        head = file.read(8)
    if head.startswith(b"\x89HDF"):
        raise DataError(path, "this is a Matlab 7.3 file (HDF5)", "save it again with -v7")
    return _read_matlab(path) if head.startswith(b"MATLAB") else _read_cluto(path)


def _read_matlab(path: Path) -> tuple[csr_array, np.ndarray]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # which kind of sparse it is does not matter
            stored = scipy.io.loadmat(str(path), variable_names=("dtm", "classid"))
    except Exception:  # scipy raises whatever the damaged bytes lead to
        raise DataError(
            path, "this Matlab file cannot be read", "it is damaged or cut off: get it again"
        ) from None
    if "dtm" not in stored or "classid" not in stored:
        raise DataError(
            path, "there is no dtm and classid in it", "store documents x words and their classes so"
        )
    X, labels = csr_array(stored["dtm"]), np.asarray(stored["classid"]).ravel()
    if X.shape[0] != labels.size == X.shape[1]:
        X = csr_array(X.T)
    return X, labels


def _read_cluto(path: Path) -> tuple[csr_array, np.ndarray]:
    lines = open_lines(path)
    try:
        n, d, stored = map(int, next(lines).split())
        rows = [np.array(line.split(), dtype=np.float64) for line in lines]
        rows = rows[:n] if all(row.size == 0 for row in rows[n:]) else rows
        pairs = np.concatenate(rows).reshape(-1, 2)
        indptr = np.cumsum([0, *(row.size // 2 for row in rows)])
        X = csr_array((pairs[:, 1], pairs[:, 0].astype(np.int64) - 1, indptr), shape=(n, d))
        X.check_format(full_check=True)
        if X.nnz != stored:
            raise ValueError("the number of entries differs from that of the first line")
    except (ValueError, StopIteration):
        remedy = (
            "it must start with 'rows columns entries', then one line of 'column count' pairs per document"
        )
        raise DataError(path, "this is not a whole CLUTO matrix", remedy) from None
    return X, _read_rclass(path)


def _read_rclass(path: Path) -> np.ndarray:
    candidates = (path.with_name(path.name + ".rclass"), path.with_suffix(".rclass"))
    found = next((candidate for candidate in candidates if candidate.exists()), None)
    if found is None:
        raise DataError(
            path, "there are no class labels beside it", f"put {candidates[0].name} in the same folder"
        )
    return np.array([line.strip() for line in open_lines(found) if line.strip()])


def _read_columns(path: Path) -> tuple[csr_array, np.ndarray]:
    name = "svmlight" if path.suffix.lower() != ".npz" else "npz"
    columns = read_columns(path, ReadOptions(format=name))
    if columns.target is None:
        raise DataError(path, "there are no class labels in it", "store them as y")
    return csr_array(columns.matrix), columns.target


def _read_arff(path: Path) -> tuple[csr_array, np.ndarray]:
    columns = read_columns(path)
    target = _class_attribute(columns)
    if target is None:
        raise DataError(path, "no attribute holds the classes", "call a nominal attribute 'class'")
    keep = [j for j, name in enumerate(columns.names) if name != target]
    if target in columns.raw:
        labels = columns.raw[target]
        if labels.null_count:
            raise DataError(path, f"class {target!r} is missing in some rows", "remove such rows")
        return csr_array(columns.matrix)[:, keep], np.array(labels.to_pylist())
    return csr_array(columns.matrix)[:, keep], columns.numbers(target)


def _class_attribute(columns: Columns) -> str | None:
    named = [name for name in columns.all_names if name.lower() in ("class", "classid", "@@class@@")]
    candidates = named or list(columns.raw)
    return candidates[-1] if candidates else None


_TEXT_READERS: dict[str, Callable[[Path], tuple[csr_array, np.ndarray]]] = {
    ".mat": _read_mat,
    ".npz": _read_columns,
    ".svm": _read_columns,
    ".svmlight": _read_columns,
    ".libsvm": _read_columns,
    ".arff": _read_arff,
}
_AUDIO = (".wav", ".flac", ".ogg")


def find_audio(folder: str | Path, size: int = 1024) -> Recording:
    """Load every recording in a folder, or in the folder ``audio`` inside it, cut into pieces."""
    recordings = [load_audio(path, size) for path in _find(folder, "audio", _AUDIO)]
    rates = sorted({recording.rate for recording in recordings})
    if len(rates) > 1:
        raise DataError(
            folder, f"the recordings have different sampling rates {rates}", "convert them to one rate"
        )
    name = ", ".join(recording.name for recording in recordings)
    return Recording(name, np.concatenate([recording.pieces for recording in recordings]), rates[0])


def load_audio(path: str | Path, size: int = 1024) -> Recording:
    """Load one WAV, FLAC or OGG file as mono pieces of ``size`` samples; the rest is left out."""
    path = Path(path)
    check_readable(path)
    try:
        import soundfile
    except ImportError:
        remedy = "pip install 'skpursuit[audio]'"
        raise DataError(path, "reading sound needs soundfile, which is not installed", remedy) from None
    try:
        samples, rate = soundfile.read(str(path), dtype="float64", always_2d=True)
    except soundfile.LibsndfileError:
        raise DataError(path, "this cannot be read as sound", "give a whole WAV, FLAC or OGG file") from None
    mono = samples.mean(axis=1)
    n_pieces = len(mono) // size
    if n_pieces == 0:
        raise DataError(path, f"it is shorter than one piece of {size} samples", "give a longer recording")
    return Recording(path.stem, mono[: n_pieces * size].reshape(n_pieces, size), int(rate))


def _find(folder: str | Path, inner: str, suffixes: tuple[str, ...]) -> list[Path]:
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(folder, "there is no such folder", "give a folder with data files (--data)")
    place = folder / inner if (folder / inner).is_dir() else folder
    found = sorted(path for path in place.iterdir() if path.suffix.lower() in suffixes)
    if not found:
        raise DataError(
            place, f"it holds no {inner} files", f"put files there that end in {', '.join(suffixes)}"
        )
    return found
