"""Codes of many signals over one dictionary.

Signals are coded in blocks whose size follows from the shapes alone: one matrix product gives the
correlations of a whole block, a kernel codes its signals one by one, and threads share the blocks, so that
their number changes no bit. The signals share Gram rows of the atoms: all of them where they fit the memory
limit, else those that a block asks for. This is one of the two loops that docs/architecture.md allows beside
`minimize`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from skpursuit.kernels.batch_types import PENDING, Block, Dictionary, Limits, SparseCodes
from skpursuit.numerics.finite import FLOAT64_MAX
from skpursuit.numerics.threads import run_tasks
from skpursuit.numerics.tuning import CODING_BLOCK, CODING_WORK, PACKED_ROWS
from skpursuit.progress import current_monitor

BlockCodes = tuple[np.ndarray, np.ndarray, np.ndarray]  # indices, values and counts of the codes of one block

RELATIVE_COST = {"omp": 1, "cosamp": 9}  # about so many times k^2 (d + n) multiply-adds a signal
NEGLIGIBLE_ATOM = 2.0**-60  # of the largest atom: float32 proposals tell nothing of smaller ones


@dataclass(frozen=True)
class CoderConfig:
    """Validated coder parameters: those of `PursuitCoder`, with the number of non-zeros k settled."""

    k: int
    tol: float | None = None
    solver: str = "omp"
    refit: bool = False
    max_iter: int | None = None
    n_jobs: int | None = None
    memory_limit: int = 2**30
    ridge: float = 0.0


def _exponents(peak: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Powers of two that bring ``peak`` near 1, within what the dtype can hold."""
    bound = 1000 if dtype == np.float64 else 120
    return np.clip(np.frexp(np.asarray(peak, dtype=np.float64))[1], -bound, bound)


def _norms(rows: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


class BatchCoder:
    """A dictionary made ready for coding.

    Parameters
    ----------
    atoms : ndarray of shape (d, n), float32 or float64
        Finite.
    config : CodingConfig
    expected : int, optional
        Number of signals to come. For a few of them only the Gram rows they ask for are computed.
    """

    def __init__(self, atoms: np.ndarray, config: CoderConfig, expected: int | None = None) -> None:
        d, n = atoms.shape
        self.config, self.dtype, self.shape = config, atoms.dtype, (d, n)
        self.exponent = int(_exponents(np.abs(atoms).max(initial=0.0), atoms.dtype))
        scaled = np.ascontiguousarray(atoms) * atoms.dtype.type(2.0**-self.exponent)
        reach = int(_exponents(_norms(scaled).max(initial=0.0), atoms.dtype))
        scaled *= atoms.dtype.type(2.0**-reach)
        scaled[_norms(scaled) < NEGLIGIBLE_ATOM] = 0.0  # beside the largest atom, like an atom of zeros
        self.exponent += reach
        coarse = scaled.astype(np.float32, copy=False)
        nothing = np.empty((0, d), np.float32), np.full(d, -1, np.int64)
        self.dictionary = Dictionary(scaled, coarse, _norms(scaled), *nothing)
        self.k = min(config.k, n, d)
        eps, fine = float(np.finfo(atoms.dtype).eps), float(np.finfo(np.float64).eps) * 2 * n**0.5
        with np.errstate(over="ignore"):
            penalty = min(float(np.ldexp(n * float(config.ridge), -2 * self.exponent)), FLOAT64_MAX)
        self.limits = Limits(
            k=self.k,
            max_iter=int(config.max_iter or config.k),
            coarse=float(np.finfo(np.float32).eps) * 2 * n**0.5,
            fine=fine,
            floor=max(fine, 4 * eps),
            dependence=max(fine, 256 * eps**2),
            refit=bool(config.refit),
            penalty=penalty,
        )
        few = expected is not None and expected * self.k < d
        if not few and 4 * d * d <= config.memory_limit:
            self.dictionary = self._with_all_rows(self.dictionary)

    @property
    def _work(self) -> int:
        """Multiply-adds of one signal."""
        d, n = self.shape
        return d * n + self.k**2 * (d + n) * RELATIVE_COST[self.config.solver]

    @property
    def block(self) -> int:
        """Signals coded together; it depends on shapes alone, so threads cannot change the result."""
        d, per_signal = self.shape[0], self._work
        if len(self.dictionary.gram) < d:
            per_signal = max(per_signal, CODING_WORK * 4 * d * self.k // self.config.memory_limit)
        most = max(1, min(CODING_BLOCK, CODING_WORK // max(1, per_signal)))
        return most - most % PACKED_ROWS if most > PACKED_ROWS else most

    def encode(self, signals: np.ndarray, first: int = 0) -> csr_array:
        """Codes of signals in rows; ``first`` is the number of the first one, for messages."""
        parts: dict[int, BlockCodes] = {}
        watch = current_monitor()

        def fill(at: int) -> None:
            rows = signals[at : at + self.block]
            watch.set_message("{} of {} signals", at, len(signals))
            parts[at] = (
                _no_codes(len(rows), self.dtype) if watch.out_of_time() else self._part(rows, first + at)
            )

        starts = range(0, len(signals), self.block)
        run_tasks(fill, [(at,) for at in starts], len(signals) * self._work, self.config.n_jobs)
        return _stack([parts[at] for at in starts], self.shape[0], self.dtype)

    def _part(self, rows: np.ndarray, first: int) -> BlockCodes:
        """Codes of one block."""
        block, exponents = self._load(rows, first)
        codes = self._codes(block)
        valid = np.arange(codes.indices.shape[1]) < codes.counts[:, None]
        order = np.argsort(np.where(valid, codes.indices, self.shape[0]), axis=1)
        indices, weights = (np.take_along_axis(part, order, axis=1)[valid] for part in codes[:2])
        shift = np.repeat(exponents - self.exponent, codes.counts)
        return indices, np.ldexp(weights, shift).astype(self.dtype), codes.counts

    def _load(self, rows: np.ndarray, first: int) -> tuple[Block, np.ndarray]:
        """Scale signals by powers of two, so that neither squares nor float32 overflow or vanish."""
        y = np.ascontiguousarray(rows, dtype=self.dtype)
        peak = np.maximum(y.max(axis=1), -y.min(axis=1))
        if not np.isfinite(peak).all():
            row = first + int(np.argmin(np.isfinite(peak)))
            raise ValueError(
                f"signals contain NaN or infinity (first in row {row}); impute the values or drop the row"
            )
        exponents = _exponents(peak, self.dtype)
        y = y * np.ldexp(1.0, -exponents).astype(self.dtype)[:, None]
        with np.errstate(over="ignore", under="ignore"):
            tol = np.ldexp(float(self.config.tol or 0.0), -2 * exponents)
        coarse = y.astype(np.float32, copy=False)
        energy = np.einsum("ij,ij->i", y, y).astype(np.float64)
        start = np.empty((len(y), self.shape[0]), np.float32)
        np.matmul(coarse, self.dictionary.coarse.T, out=start)
        return Block(y, start, energy, tol), exponents

    def _codes(self, block: Block) -> SparseCodes:
        """Run the kernel until no signal asks for a Gram row that is not there."""
        size, d, dictionary = len(block.signals), self.shape[0], self.dictionary
        codes = SparseCodes(
            np.zeros((size, self.k), np.int32), np.zeros((size, self.k)), np.full(size, PENDING)
        )
        while (codes.counts == PENDING).any():
            from skpursuit.kernels import batch_pursuit as batch

            wanted = np.zeros(d, bool)
            kernel = batch.omp_block if self.config.solver == "omp" else batch.cosamp_block
            kernel(block, dictionary, self.limits, codes, wanted)
            new = np.flatnonzero(wanted)
            if size > 1 and 4 * d * (len(dictionary.gram) + len(new)) > self.config.memory_limit:
                halves = (slice(None, size // 2), slice(size // 2, None))
                parts = [self._codes(Block(*(x[half] for x in block))) for half in halves]
                return SparseCodes(*(np.concatenate(pair) for pair in zip(*parts)))
            slot, rows = dictionary.slot.copy(), dictionary.coarse[new] @ dictionary.coarse.T
            slot[new] = len(dictionary.gram) + np.arange(len(new))
            dictionary = dictionary._replace(gram=np.concatenate([dictionary.gram, rows]), slot=slot)
        return codes

    def _with_all_rows(self, dictionary: Dictionary) -> Dictionary:
        """The whole Gram matrix, in blocks of a fixed size: the lower half by BLAS, the upper by copying."""
        d, n = self.shape
        step = max(1, min(256, CODING_WORK // max(1, d * n)))
        coarse, gram = dictionary.coarse, np.empty((d, d), np.float32)

        def fill(at: int) -> None:
            end = min(d, at + step)
            np.matmul(coarse[at:end], coarse[:end].T, out=gram[at:end, :end])
            gram[:at, at:end] = gram[at:end, :at].T

        run_tasks(fill, [(at,) for at in range(0, d, step)], d * d * n // 2, self.config.n_jobs)
        return dictionary._replace(gram=gram, slot=np.arange(d))


def make_coder(atoms: np.ndarray, dtype: np.dtype, config: CoderConfig, expected: int | None) -> BatchCoder:
    """The encoder of signals of this dtype: float32 stays float32, everything else is coded in float64."""
    with np.errstate(over="ignore", under="ignore"):
        cast = atoms.astype(np.float32 if dtype == np.float32 else np.float64, copy=False)
    if not np.isfinite(cast).all() or not np.array_equal(cast.any(axis=1), atoms.any(axis=1)):
        raise ValueError(
            "dictionary leaves the range of float32, the signals' dtype; scale it, or use float64 signals"
        )
    return BatchCoder(cast, config, expected)


def _no_codes(count: int, dtype: np.dtype) -> BlockCodes:
    """Codes of zeros, of signals for which there was no time."""
    return np.empty(0, np.int32), np.empty(0, dtype), np.zeros(count, np.int64)


def _stack(parts: list[BlockCodes], d: int, dtype: np.dtype) -> csr_array:
    indices = np.concatenate([part[0] for part in parts] or [np.empty(0, np.int32)])
    values = np.concatenate([part[1] for part in parts] or [np.empty(0, dtype)])
    counts = np.concatenate([part[2] for part in parts] or [np.empty(0, np.int64)])
    pointers = np.concatenate([[0], np.cumsum(counts)])
    if pointers[-1] < np.iinfo(np.int32).max:
        pointers = pointers.astype(np.int32)
    codes = csr_array((values, indices, pointers), shape=(len(counts), d))
    codes.has_canonical_format = True
    return codes
