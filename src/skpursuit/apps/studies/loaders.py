"""Text collections and recordings for the two studies on real data, from the user's folder.

Without one, `make_text` and `make_music` generate stand-ins, which say nothing about real text or music.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from ..tables.errors import TableProblem, attach_path


@dataclass(frozen=True)
class TextCollection:
    """Word counts, documents by words, and the class of each document as an index into sorted names."""

    name: str
    X: csr_array
    y: np.ndarray
    classes: tuple[str, ...]


@dataclass(frozen=True)
class AudioRecording:
    """Sound cut into pieces of equal length: ``pieces[i]`` holds consecutive samples, mono."""

    name: str
    pieces: np.ndarray
    rate: int


def find_text(folder: str | Path, least: int = 1) -> list[TextCollection]:
    """Load every collection in a folder, or in the folder ``text`` inside it, in the order of their names."""
    return [load_text(path, least) for path in _find(folder, "text", tuple(_TEXT_READERS))]


def load_text(path: str | Path, least: int = 1) -> TextCollection:
    """Load one collection: CLUTO or Matlab ``.mat``, or ``.svm`` (svmlight).

    At ``least`` so many documents must have words in them.
    """
    path = Path(path)
    reader = _TEXT_READERS.get(path.suffix.lower())
    with attach_path(path):
        if reader is None:
            raise TableProblem("collection format", known=", ".join(_TEXT_READERS))
        try:
            X, labels = reader(path)
        except OSError as error:
            raise TableProblem("other file", words=error.strerror) from None
        X = csr_array(X, dtype=np.float64)
        if labels.shape != (X.shape[0],):
            raise TableProblem("collection labels", labels=labels.size, documents=X.shape[0])
        if X.nnz == 0 or not np.isfinite(X.data).all() or X.data.min() < 0:
            raise TableProblem("word counts")
        if (written := np.count_nonzero(X.sum(axis=1))) < least:
            raise TableProblem("few documents", written=written, least=least)
        classes, y = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise TableProblem("one label")
    spelling = "{:g}" if classes.dtype.kind in "iuf" else "{}"
    return TextCollection(path.stem, X, y, tuple(map(spelling.format, classes.tolist())))


def _read_mat(path: Path) -> tuple[csr_array, np.ndarray]:
    content = path.read_bytes()
    if content.startswith(b"\x89HDF"):
        raise TableProblem("Matlab 7.3")
    if not content.startswith(b"MATLAB"):
        return _read_cluto(path)
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            stored = scipy.io.loadmat(str(path), variable_names=("dtm", "classid"))
    except Exception:  # scipy raises whatever the damaged bytes lead to
        raise TableProblem("Matlab") from None
    if "dtm" not in stored or "classid" not in stored:
        raise TableProblem("Matlab names")
    X, labels = csr_array(stored["dtm"]), np.asarray(stored["classid"]).ravel()
    return csr_array(X.T) if X.shape[0] != labels.size == X.shape[1] else X, labels


def _read_cluto(path: Path) -> tuple[csr_array, np.ndarray]:
    first, *lines = path.read_bytes().split(b"\n")
    try:
        n, d, stored = map(int, first.split())
        rows = [np.array(line.split(), dtype=np.float64) for line in lines]
        rows = rows[:n] if all(row.size == 0 for row in rows[n:]) else rows
        pairs = np.concatenate(rows).reshape(-1, 2)
        indptr = np.cumsum([0, *(row.size // 2 for row in rows)])
        X = csr_array((pairs[:, 1], pairs[:, 0].astype(np.int64) - 1, indptr), shape=(n, d))
        X.check_format(full_check=True)
        if X.nnz != stored:
            raise ValueError("the number of entries differs from that of the first line")
    except ValueError:
        raise TableProblem("CLUTO") from None
    beside = (path.with_name(path.name + ".rclass"), path.with_suffix(".rclass"))
    for place in filter(Path.exists, beside):
        labels = place.read_bytes().decode("utf-8", "replace").splitlines()
        return X, np.array([label.strip() for label in labels if label.strip()])
    raise TableProblem("no labels", name=beside[0].name)


def _read_svmlight(path: Path) -> tuple[csr_array, np.ndarray]:
    try:
        X, y = load_svmlight_file(str(path), dtype=np.float64)
    except (ValueError, OverflowError, MemoryError):
        raise TableProblem("svmlight") from None
    return csr_array(X), y


_TEXT_READERS: dict[str, Callable[[Path], tuple[csr_array, np.ndarray]]] = {
    ".mat": _read_mat,
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), _read_svmlight),
}


def find_audio(folder: str | Path, size: int = 1024) -> AudioRecording:
    """Load every recording in a folder, or in the folder ``audio`` inside it, cut into pieces."""
    recordings = [load_audio(path, size) for path in _find(folder, "audio", (".wav", ".flac", ".ogg"))]
    rates = sorted({recording.rate for recording in recordings})
    with attach_path(folder):
        if len(rates) > 1:
            raise TableProblem("sampling rates", rates=rates)
    name = ", ".join(recording.name for recording in recordings)
    return AudioRecording(name, np.concatenate([recording.pieces for recording in recordings]), rates[0])


def load_audio(path: str | Path, size: int = 1024) -> AudioRecording:
    """Load one WAV, FLAC or OGG file as mono pieces of ``size`` samples; the rest is left out."""
    with attach_path(path):
        try:
            import soundfile
        except ImportError:
            raise TableProblem("no soundfile") from None
        try:
            samples, rate = soundfile.read(str(path), dtype="float64", always_2d=True)
        except (soundfile.LibsndfileError, OSError):
            raise TableProblem("sound") from None
        if not (n_pieces := len(samples) // size):
            raise TableProblem("short sound", size=size)
    pieces = samples[: n_pieces * size].mean(axis=1).reshape(n_pieces, size)
    return AudioRecording(Path(path).stem, pieces, int(rate))


def _find(folder: str | Path, inner: str, suffixes: tuple[str, ...]) -> list[Path]:
    place = Path(folder) / inner if (Path(folder) / inner).is_dir() else Path(folder)
    with attach_path(place):
        if not place.is_dir():
            raise TableProblem("no data folder")
        if not (found := sorted(path for path in place.iterdir() if path.suffix.lower() in suffixes)):
            raise TableProblem("no data", inner=inner, known=", ".join(suffixes))
    return found


def make_text(n_documents: int, n_words: int, n_classes: int, random_state: int = 0) -> TextCollection:
    """Generate counts: words follow Zipf's law, and 12% of those of a document are topical in its class."""
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_documents) % n_classes)
    lengths = rng.lognormal(np.log(100.0), 0.6, n_documents).astype(np.int64) + 5
    background = rng.permutation(1.0 / np.arange(10, n_words + 10))
    frequencies = np.tile(0.88 * background / background.sum(), (n_classes, 1))
    topical = rng.integers(n_words, size=(n_classes, 60))
    frequencies[np.arange(n_classes)[:, None], topical] += 0.12 / 60
    frequencies /= frequencies.sum(axis=1, keepdims=True)
    X = csr_array(rng.multinomial(lengths, frequencies[y]), dtype=np.float64)
    classes = tuple(map(str, range(1, n_classes + 1)))
    return TextCollection(f"generated {n_documents} x {n_words}", X, y, classes)


def make_music(n_pieces: int, size: int = 1024, random_state: int = 0) -> AudioRecording:
    """Generate six notes a second, with harmonics that decay, and noise 60 dB below the peak, in pieces."""
    rng, rate = np.random.default_rng(random_state), 16000
    signal = np.zeros(n_pieces * size)
    seconds = np.arange(1.5 * rate) / rate  # of a note
    for start in rng.integers(signal.size, size=max(1, round(6 * signal.size / rate))):
        pitch = 82.4 * 2.0 ** (rng.integers(48) / 12)
        harmonics = np.arange(1, 1 + min(12, int(0.45 * rate / pitch)))
        decay = np.exp(-np.outer(rng.uniform(2, 4) * np.sqrt(harmonics), seconds))
        waves = np.sin(np.outer(2 * np.pi * pitch * harmonics, seconds))
        note = rng.uniform(0.2, 1.0) * (1.0 / harmonics**1.2) @ (decay * waves)
        np.add.at(signal, (start + np.arange(note.size)) % signal.size, note)  # the end goes on at the start
    signal *= 0.9 / np.abs(signal).max()
    signal += 0.0009 * rng.standard_normal(signal.size)
    return AudioRecording("generated notes", signal.reshape(n_pieces, size), rate)
