"""Text collections and recordings for the two experiments on real data.

None of the data comes with the package. `find_text` and `find_audio` look into the folder a user names;
without one, `make_text` and `make_music` generate data of the same shape. Those are not text and not music:
figures obtained on them say something about the methods' mechanics and nothing about such data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.io
from scipy.sparse import csr_array

from ..._files import FileError
from ..tables import ReadOptions, read_columns

LENGTH, TOPICAL, OWN = 100.0, 0.12, 60  # words of a document, the share from its class, words of a class
RATE, NOTES, SECONDS, NOTE_BLOCK = (
    16000,
    6.0,
    1.5,
    160,
)  # samples and notes a second; of a note: seconds, block


class DataError(FileError):
    """A data file or folder that cannot be used."""


@dataclass(frozen=True)
class TextCollection:
    """Word counts, documents by words, and the class of each document as an index into sorted names."""

    name: str
    X: csr_array
    y: np.ndarray
    classes: tuple[str, ...]
    generated: bool = False


@dataclass(frozen=True)
class AudioRecording:
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

    At ``least`` so many documents must have words in them.
    """
    path = Path(path)
    reader = _TEXT_READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(path, "not a known format of text collections", f"use {', '.join(_TEXT_READERS)}")
    try:
        X, labels = reader(path)
    except OSError as error:
        raise DataError(path, f"it cannot be read ({error.strerror})", "give another file") from None
    X = csr_array(X, dtype=np.float64)
    if labels.shape != (X.shape[0],):
        problem = f"{labels.size} labels for {X.shape[0]} documents"
        raise DataError(path, problem, "check that they belong together")
    if X.nnz == 0 or not np.isfinite(X.data).all() or X.data.min() < 0:
        raise DataError(path, "the counts are not finite numbers of at least 0", "give raw word counts")
    written = np.count_nonzero(X.sum(axis=1))
    if written < least:
        problem = f"too few documents: {written} with words, where at least {least} are needed"
        raise DataError(path, problem, "give a larger collection")
    classes, y = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise DataError(path, "all documents have the same label", "give a collection with classes")
    spelling = "{:g}" if classes.dtype.kind in "iuf" else "{}"
    return TextCollection(path.stem, X, y, tuple(map(spelling.format, classes.tolist())))


def _read_mat(path: Path) -> tuple[csr_array, np.ndarray]:
    content = path.read_bytes()
    if content.startswith(b"\x89HDF"):
        raise DataError(path, "this is a Matlab 7.3 file (HDF5)", "save it again with -v7")
    if not content.startswith(b"MATLAB"):
        return _read_cluto(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # which kind of sparse it is does not matter
            stored = scipy.io.loadmat(str(path), variable_names=("dtm", "classid"))
    except Exception:  # scipy raises whatever the damaged bytes lead to
        remedy = "it is damaged or cut off: get it again"
        raise DataError(path, "this Matlab file cannot be read", remedy) from None
    if "dtm" not in stored or "classid" not in stored:
        remedy = "store documents x words and their classes so"
        raise DataError(path, "there is no dtm and classid in it", remedy)
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
        remedy = "it must start with 'rows columns entries', then 'column count' pairs, one document a line"
        raise DataError(path, "this is not a whole CLUTO matrix", remedy) from None
    beside = (path.with_name(path.name + ".rclass"), path.with_suffix(".rclass"))
    for place in filter(Path.exists, beside):
        labels = place.read_bytes().decode("utf-8", "replace").splitlines()
        return X, np.array([label.strip() for label in labels if label.strip()])
    remedy = f"put {beside[0].name} in the same folder"
    raise DataError(path, "there are no class labels beside it", remedy)


def _read_columns(path: Path) -> tuple[csr_array, np.ndarray]:
    name = None if path.suffix.lower() in (".npz", ".arff") else "svmlight"
    columns = read_columns(path, ReadOptions(format=name))
    texts = [name for name, column in columns.raw.items() if column.is_text]
    named = [name for name in columns.all_names if name.lower() in ("class", "classid", "@@class@@")]
    target = "y" if columns.has_target else next(reversed(named or texts), None)
    if target is None:
        raise DataError(path, "no attribute holds the classes", "call it 'class', in an .npz file y")
    classes = columns.column(target)
    if classes.values.null_count:
        raise DataError(path, f"class {target!r} is missing in some rows", "remove such rows")
    if columns.matrix is not None:
        X = columns.matrix[:, [j for j, name in enumerate(columns.names) if name != target]]
    else:
        others = [column for name, column in columns.raw.items() if name not in (target, *texts)]
        X = csr_array(np.reshape([column.numbers()[0] for column in others], (len(others), len(classes))).T)
    return X, np.array(classes.to_pylist())


_TEXT_READERS: dict[str, Callable[[Path], tuple[csr_array, np.ndarray]]] = {
    ".mat": _read_mat,
    **dict.fromkeys((".npz", ".svm", ".svmlight", ".libsvm", ".arff"), _read_columns),
}


def find_audio(folder: str | Path, size: int = 1024) -> AudioRecording:
    """Load every recording in a folder, or in the folder ``audio`` inside it, cut into pieces."""
    recordings = [load_audio(path, size) for path in _find(folder, "audio", (".wav", ".flac", ".ogg"))]
    rates = sorted({recording.rate for recording in recordings})
    if len(rates) > 1:
        problem = f"the recordings have different sampling rates {rates}"
        raise DataError(folder, problem, "convert them to one rate")
    name = ", ".join(recording.name for recording in recordings)
    return AudioRecording(name, np.concatenate([recording.pieces for recording in recordings]), rates[0])


def load_audio(path: str | Path, size: int = 1024) -> AudioRecording:
    """Load one WAV, FLAC or OGG file as mono pieces of ``size`` samples; the rest is left out."""
    try:
        import soundfile
    except ImportError:
        remedy = "pip install 'skpursuit[audio]'"
        raise DataError(path, "reading sound needs soundfile, which is not installed", remedy) from None
    try:
        samples, rate = soundfile.read(str(path), dtype="float64", always_2d=True)
    except (soundfile.LibsndfileError, OSError):
        raise DataError(path, "this cannot be read as sound", "give a whole WAV, FLAC or OGG file") from None
    n_pieces = len(samples) // size
    if n_pieces == 0:
        raise DataError(path, f"it is shorter than one piece of {size} samples", "give a longer recording")
    pieces = samples[: n_pieces * size].mean(axis=1).reshape(n_pieces, size)
    return AudioRecording(Path(path).stem, pieces, int(rate))


def _find(folder: str | Path, inner: str, suffixes: tuple[str, ...]) -> list[Path]:
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(folder, "there is no such folder", "give a folder with data files (--data)")
    place = folder / inner if (folder / inner).is_dir() else folder
    found = sorted(path for path in place.iterdir() if path.suffix.lower() in suffixes)
    if not found:
        remedy = f"put files there that end in {', '.join(suffixes)}"
        raise DataError(place, f"it holds no {inner} files", remedy)
    return found


def make_text(n_documents: int, n_words: int, n_classes: int, random_state: int = 0) -> TextCollection:
    """Generate word counts with class structure.

    Words follow Zipf's law. Each class has up to 60 words of its own, and a document draws 12% of its words
    from those of its class. Lengths of documents are log-normal, as in the CLUTO collections.
    """
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_documents) % n_classes)
    lengths = rng.lognormal(np.log(LENGTH), 0.6, n_documents).astype(np.int64) + 5
    background = rng.permutation(1.0 / np.arange(10, n_words + 10))
    chances = np.tile((1 - TOPICAL) * background / background.sum(), (n_classes, 1))
    topics = rng.integers(n_words, size=(n_classes, OWN))
    chances[np.arange(n_classes)[:, None], topics] += TOPICAL / OWN
    counts = rng.multinomial(lengths, (chances / chances.sum(axis=1, keepdims=True))[y])
    classes = tuple(map(str, range(1, n_classes + 1)))
    X = csr_array(counts, dtype=np.float64)
    return TextCollection(f"generated {n_documents} x {n_words}", X, y, classes, generated=True)


def make_music(n_pieces: int = 512, size: int = 1024, random_state: int = 0) -> AudioRecording:
    """Generate a signal of decaying harmonic notes, cut into pieces as a recording is.

    Notes of a diatonic scale over four octaves begin at random times; each has up to twelve harmonics that
    decay exponentially, the higher the faster, and are slightly stretched as those of piano strings are. A
    little white noise (60 dB below the peak) is added.
    """
    rng = np.random.default_rng(random_state)
    signal = np.zeros(n_pieces * size)
    scale = np.array([0, 2, 4, 5, 7, 9, 11])
    for _ in range(max(1, round(NOTES * signal.size / RATE))):
        pitch = 40 + 12 * rng.integers(4) + rng.choice(scale)
        start = int(rng.integers(-RATE // 2, signal.size))
        note = _note(440.0 * 2.0 ** ((pitch - 69) / 12), rng)
        first, last = max(0, start), min(signal.size, start + note.size)
        signal[first:last] += note[first - start : last - start]
    signal *= 0.9 / np.abs(signal).max()
    signal += 0.0009 * rng.standard_normal(signal.size)
    return AudioRecording("generated notes", signal.reshape(n_pieces, size), RATE, generated=True)


def _note(frequency: float, rng: np.random.Generator) -> np.ndarray:
    loudness = 10.0 ** rng.uniform(-1.0, 0.0)
    h = np.arange(1, 13)
    h = h[h * frequency * np.sqrt(1 + 4e-4 * h * h) <= 0.45 * RATE]
    decay = (2.0 + 0.8 * h) * (frequency / 220.0) ** 0.5
    turn = (-decay + 2j * np.pi * h * frequency * np.sqrt(1 + 4e-4 * h * h)) / RATE
    start = h**-1.2 * np.exp(1j * rng.uniform(0, 2 * np.pi, h.size))
    # exp(turn * t) with t = BLOCK * a + b, as a product: a few hundred exponentials instead of 24 000.
    blocks = np.arange(0, int(SECONDS * RATE), NOTE_BLOCK)
    note = (
        (start * np.exp(np.outer(blocks, turn))) @ np.exp(np.outer(turn, np.arange(NOTE_BLOCK)))
    ).imag.ravel()
    return loudness * np.minimum(1.0, np.arange(note.size) / (0.005 * RATE)) * note
