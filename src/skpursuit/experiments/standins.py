"""Generated data with the shape of text collections and of music.

They let the experiments run without any download. They are not text and not music: figures obtained on them
say something about the methods' mechanics and nothing about those data.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from .loaders import Recording, TextCollection

LENGTH, TOPICAL, OWN = 100.0, 0.12, 60  # words of a document, the share from its class, words of a class
RATE, NOTES, SECONDS, BLOCK = 16000, 6.0, 1.5, 160  # samples and notes a second; of a note: seconds, block


def make_text(n_documents: int, n_words: int, n_classes: int, random_state: int = 0) -> TextCollection:
    """Generate word counts with class structure.

    Words follow Zipf's law. Each class has 60 words of its own, and a document draws 12% of its words from
    those of its class (neighbouring classes share a third of them). Lengths of documents are log-normal and
    classes are of unequal size, as in the CLUTO collections.
    """
    rng = np.random.default_rng(random_state)
    background = 1.0 / np.arange(10, n_words + 10)
    background = rng.permutation(background / background.sum())
    share = rng.dirichlet(np.full(n_classes, 8.0))
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n_documents - n_classes, p=share)])
    rng.shuffle(y)
    lengths = np.maximum(5, rng.lognormal(np.log(LENGTH), 0.6, n_documents)).astype(np.int64)
    words = np.empty(lengths.sum(), dtype=np.int64)
    documents = np.repeat(np.arange(n_documents), lengths)
    step = (2 * OWN) // 3
    pool = rng.choice(n_words, min(n_words, step * n_classes + OWN), replace=False)
    for label in range(n_classes):
        topic = np.zeros(n_words)
        topic[pool[(label * step + np.arange(OWN)) % pool.size]] = 1.0 / np.arange(3, OWN + 3)
        at = np.flatnonzero(y[documents] == label)
        p = (1 - TOPICAL) * background + TOPICAL * (topic / topic.sum())
        words[at] = rng.choice(n_words, at.size, p=p / p.sum())
    counts = coo_array((np.ones(words.size), (documents, words)), shape=(n_documents, n_words))
    classes = tuple(map(str, range(1, n_classes + 1)))
    return TextCollection(f"generated {n_documents} x {n_words}", csr_array(counts), y, classes, True)


def make_music(n_pieces: int = 512, size: int = 1024, random_state: int = 0) -> Recording:
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
    return Recording("generated notes", signal.reshape(n_pieces, size), RATE, generated=True)


def _note(frequency: float, rng: np.random.Generator) -> np.ndarray:
    n_blocks = int(SECONDS * RATE) // BLOCK
    note = np.zeros(n_blocks * BLOCK)
    loudness = 10.0 ** rng.uniform(-1.0, 0.0)
    for h in range(1, 13):
        partial = h * frequency * np.sqrt(1 + 4e-4 * h * h)
        if partial > 0.45 * RATE:
            break
        decay = (2.0 + 0.8 * h) * (frequency / 220.0) ** 0.5
        turn = (-decay + 2j * np.pi * partial) / RATE
        start = h**-1.2 * np.exp(1j * rng.uniform(0, 2 * np.pi))
        # exp(turn * t) with t = BLOCK * a + b, as a product: a few hundred exponentials instead of 24 000.
        coarse, fine = np.exp(turn * BLOCK * np.arange(n_blocks)), np.exp(turn * np.arange(BLOCK))
        note += np.outer(start * coarse, fine).imag.ravel()
    attack = np.minimum(1.0, np.arange(note.size) / (0.005 * RATE))
    return loudness * attack * note
