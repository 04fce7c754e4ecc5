"""Generated data with the shape of text collections and of music.

They let the experiments run without any download. They are not text and not music: figures obtained on them
say something about the methods' mechanics and nothing about those data.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from .loaders import Recording, TextCollection


def make_text(
    n_documents: int = 2000,
    n_words: int = 8000,
    n_classes: int = 6,
    *,
    words_per_document: float = 100.0,
    topical_share: float = 0.12,
    random_state: int | np.random.Generator = 0,
) -> TextCollection:
    """Generate word counts with class structure.

    Words follow Zipf's law. Each class has 60 words of its own, and a document draws ``topical_share`` of its
    words from those of its class (neighbouring classes share a third of them). Lengths of documents are
    log-normal and classes are of unequal size, as in the CLUTO collections.
    """
    rng = np.random.default_rng(random_state)
    background = 1.0 / np.arange(10, n_words + 10)
    background = rng.permutation(background / background.sum())
    share = rng.dirichlet(np.full(n_classes, 8.0))
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n_documents - n_classes, p=share)])
    rng.shuffle(y)
    lengths = np.maximum(5, rng.lognormal(np.log(words_per_document), 0.6, n_documents)).astype(np.int64)
    words = np.empty(lengths.sum(), dtype=np.int64)
    documents = np.repeat(np.arange(n_documents), lengths)
    topics = _topics(n_classes, n_words, rng)
    for label in range(n_classes):
        at = np.flatnonzero(y[documents] == label)
        p = (1 - topical_share) * background + topical_share * topics[label]
        words[at] = rng.choice(n_words, at.size, p=p / p.sum())
    counts = coo_array((np.ones(words.size), (documents, words)), shape=(n_documents, n_words))
    name = f"generated {n_documents} x {n_words}"
    return TextCollection(
        name, csr_array(counts), y, tuple(map(str, range(1, n_classes + 1))), generated=True
    )


def _topics(n_classes: int, n_words: int, rng: np.random.Generator, own: int = 60) -> np.ndarray:
    """Return one distribution per class over its own words, a third of which the next class shares."""
    step = (2 * own) // 3
    pool = rng.choice(n_words, min(n_words, step * n_classes + own), replace=False)
    topics = np.zeros((n_classes, n_words))
    for label in range(n_classes):
        chosen = pool[(label * step + np.arange(own)) % pool.size]
        topics[label, chosen] = 1.0 / np.arange(3, own + 3)
    return topics / topics.sum(axis=1, keepdims=True)


def make_music(
    n_pieces: int = 512,
    size: int = 1024,
    *,
    rate: int = 16000,
    notes_per_second: float = 6.0,
    random_state: int | np.random.Generator = 0,
) -> Recording:
    """Generate a signal of decaying harmonic notes, cut into pieces as a recording is.

    Notes of a diatonic scale over four octaves begin at random times; each has up to twelve harmonics that
    decay exponentially, the higher the faster, and are slightly stretched as those of piano strings are. A
    little white noise (60 dB below the peak) is added.
    """
    rng = np.random.default_rng(random_state)
    n_samples = n_pieces * size
    n_notes = max(1, round(notes_per_second * n_samples / rate))
    signal = np.zeros(n_samples)
    scale = np.array([0, 2, 4, 5, 7, 9, 11])
    for _ in range(n_notes):
        pitch = 40 + 12 * rng.integers(4) + rng.choice(scale)
        start = int(rng.integers(-rate // 2, n_samples))
        note = _note(440.0 * 2.0 ** ((pitch - 69) / 12), rate, rng)
        first, last = max(0, start), min(n_samples, start + note.size)
        signal[first:last] += note[first - start : last - start]
    signal *= 0.9 / np.abs(signal).max()
    signal += 0.0009 * rng.standard_normal(n_samples)
    return Recording("generated notes", signal.reshape(n_pieces, size), rate, generated=True)


def _note(frequency: float, rate: int, rng: np.random.Generator, seconds: float = 1.5) -> np.ndarray:
    n_blocks, block = int(seconds * rate) // 160, 160
    note = np.zeros(n_blocks * block)
    loudness = 10.0 ** rng.uniform(-1.0, 0.0)
    for h in range(1, 13):
        partial = h * frequency * np.sqrt(1 + 4e-4 * h * h)
        if partial > 0.45 * rate:
            break
        decay = (2.0 + 0.8 * h) * (frequency / 220.0) ** 0.5
        turn = (-decay + 2j * np.pi * partial) / rate
        start = h**-1.2 * np.exp(1j * rng.uniform(0, 2 * np.pi))
        # exp(turn * t) with t = block * a + b, as a product: a few hundred exponentials instead of 24 000.
        coarse, fine = np.exp(turn * block * np.arange(n_blocks)), np.exp(turn * np.arange(block))
        note += np.outer(start * coarse, fine).imag.ravel()
    attack = np.minimum(1.0, np.arange(note.size) / (0.005 * rate))
    return loudness * attack * note
