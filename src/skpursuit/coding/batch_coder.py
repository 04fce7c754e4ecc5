"""Codes of many signals over one dictionary.

Signals are coded in blocks whose size follows from the shapes alone, and threads share the blocks, so that
their number changes no bit. With many signals, one matrix product gives the correlations of a block, and a
kernel follows them signal by signal through the Gram matrix of the atoms (`kernels/batch_pursuit.py`). With
few signals, with a ridge, or where the Gram matrix does not fit the memory limit, the signals of a block take
each step together (`lockstep.py`); so do the few signals that the kernel leaves. This is one of the two loops
that docs/architecture.md allows beside `minimize`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skpursuit.coding.lockstep import CoSaMP, LockStep
from skpursuit.kernels import batch_types
from skpursuit.kernels.batch_types import CLOSED, GAIN, LANES, LEAST, OMP, PENDING, POSITIVE, TILE, Signals
from skpursuit.numerics.float_range import LEAST_SIZE, MOST_SIZE, check_range
from skpursuit.numerics.threads import run_tasks
from skpursuit.numerics.tuning import CODING_BLOCK, CODING_WORK, PACKED_ROWS
from skpursuit.progress import current_monitor

SMALLEST, LARGEST = 2.0**-126, 2.0**127  # norms of atoms in float32
NEGLIGIBLE_ATOM = 2.0**-60  # of the largest atom: float32 proposals tell nothing of smaller ones
FEW = 0.7  # signals times non-zeros per atom, below which a Gram matrix does not pay
LOCKED, LOCKED_BYTES = 256, 1 << 28  # signals that step together, at most, and their memory


@dataclass(frozen=True)
class CoderConfig:
    """Validated coder parameters: those of `PursuitCoder`, with the number of non-zeros k settled."""

    k: int | np.ndarray
    tol: float | np.ndarray | None = None
    solver: str = "omp"
    refit: bool = False
    max_iter: int | None = None
    n_jobs: int | None = None
    memory_limit: int = 2**30
    ridge: float = 0.0
    atom_score: str = "correlation"
    positive: bool = False
    atoms_per_step: int = 1


class BatchCoder:
    """A dictionary (finite atoms in rows) made ready for coding.

    Signals of ``dtype`` float16 and float32 are coded in float32, all others in float64. For a few
    ``expected`` signals no Gram matrix is computed; that of ``known``, a coder of the first of these atoms,
    is used again.
    """

    def __init__(
        self,
        atoms: np.ndarray,
        dtype: np.dtype,
        config: CoderConfig,
        expected: int | None = None,
        known: BatchCoder | None = None,
    ) -> None:
        (d, n), single = atoms.shape, dtype in (np.float32, np.float16)
        self.config, self.dtype, self.shape = config, np.dtype(np.float32 if single else np.float64), (d, n)
        self.k, self.width = min(int(np.max(config.k)), n, d), -(-d // TILE) * TILE
        self.mode = POSITIVE if config.positive else GAIN if config.atom_score == "gain" else OMP
        norms = np.sqrt(np.einsum("ij,ij->i", atoms, atoms, dtype=np.float64))
        check_range(norms, lambda j: f"atom {j}")
        if single and not ((norms == 0) | (norms > SMALLEST) & (norms < LARGEST)).all():
            raise ValueError(
                "dictionary leaves the range of float32, the signals' dtype; scale it, or use float64 signals"
            )
        atoms = np.asarray(atoms, self.dtype)
        bound = 1000 if atoms.dtype == np.float64 else 120
        exponent = int(np.clip(np.frexp(norms.max() * (1 - 1e-6))[1], -bound, bound))  # of unit norms 0
        norms = np.append(norms, np.zeros(self.width - d)) * 2.0**-exponent
        norms[norms < NEGLIGIBLE_ATOM] = 0.0  # beside the largest atom, like an atom of zeros
        if single and exponent == 0 and (norms > 0).all() and atoms.flags.carray:
            coarse = scaled = atoms  # as they are: new memory takes longer than all else here
        else:
            coarse = batch_types.aligned(self.width, n)
            scaled = coarse[:d] if single else np.empty((d, n))
            np.multiply(atoms, atoms.dtype.type(2.0**-exponent), out=scaled)
            scaled[norms[:d] == 0] = 0.0
            coarse[:d], coarse[d:] = scaled, 0
        eps, fine = float(np.finfo(atoms.dtype).eps), float(np.finfo(np.float64).eps) * 2 * n**0.5
        self.limits = batch_types.Limits(
            fine=fine,
            floor=max(fine, 4 * eps),
            dependence=max(fine, 256 * eps**2),
            scale=float(norms.max() ** 2),
            rounding=max(1.0, n / 64),
            bias=2.5e-5 * max(1.0, n / 64) ** 0.5 * float(norms.max() ** 2),
            enough=1e-13 if atoms.dtype == np.float64 else 1e-10,
            exponent=exponent,
        )
        few = expected is not None and known is None and expected * self.k < FEW * d
        self.locked = few or 4 * self.width * (d + self.k) > config.memory_limit
        self.locked |= config.solver == "cosamp" or config.ridge > 0 or config.atoms_per_step > 1
        squares = (norms**2 - self.limits.bias).clip(LEAST).astype(np.float32)
        squares[norms == 0] = CLOSED
        self.dictionary = batch_types.Dictionary(scaled, coarse, batch_types.aligned(0, 0), squares, norms)
        if not self.locked:
            self.dictionary = self.dictionary._replace(gram=self._gram(known))
        self._spare: list[Any] = []  # scratch of threads that are not at work

    def _gram(self, known: BatchCoder | None) -> np.ndarray:
        """The Gram matrix, in blocks of a fixed size: the lower half by BLAS, the upper by copying."""
        (d, n), coarse, done = self.shape, self.dictionary.coarse, 0
        # rows a power of two apart would share few places of the cache
        gram = batch_types.aligned(d, self.width + LANES)
        step = max(1, min(256, CODING_WORK // max(1, d * n)))
        gram[:, d:] = 0  # atoms of zeros fill the last tile
        if known is not None and not known.locked:
            done, shift = known.shape[0], known.limits.exponent - self.limits.exponent
            if done == d and shift == 0:
                return known.dictionary.gram
            gram[:done, :done] = known.dictionary.gram[:, :done] * np.float32(4.0**shift)

        def fill(at: int) -> None:
            end = min(d, at + step)
            np.matmul(coarse[at:end], coarse[:end].T, out=gram[at:end, :end])
            gram[:at, at:end] = gram[at:end, :at].T

        pieces = [(at,) for at in range(done, d, step)]
        run_tasks(fill, pieces, (d - done) * d * n // 2, self.config.n_jobs)
        return gram

    @property
    def _work(self) -> int:
        """Multiply-adds of one signal by OMP."""
        d, n = self.shape
        return d * n + self.k**2 * (d + n)

    def _block(self, locked: bool) -> int:
        """Signals coded together; it depends on shapes alone, so threads cannot change the result."""
        d, n = self.shape
        if locked:
            return max(1, min(LOCKED, LOCKED_BYTES // (8 * self.k * (n + self.k) + 16 * d)))
        most = max(1, min(CODING_BLOCK, CODING_WORK // max(1, self._work)))
        return most - most % PACKED_ROWS if most > PACKED_ROWS else most

    def encode(self, signals: np.ndarray, first: int = 0, by_index: bool = False) -> batch_types.SparseCodes:
        """Codes of signals in rows; ``first`` is the number of the first one, for messages and limits.

        The atoms of a code are in the order in which they were chosen, or sorted.
        """
        size, watch = len(signals), current_monitor()
        most = np.minimum(_limit_of_each("n_nonzero_coefs", self.config.k, first, size), self.k)
        tol = _limit_of_each("tol", 0.0 if self.config.tol is None else self.config.tol, first, size)
        places = np.zeros((size, self.k), np.int32), np.zeros((size, self.k), self.dtype)
        codes = batch_types.SparseCodes(*places, np.full(size, PENDING, np.int64))
        given = Signals(signals, first + np.arange(size), most.astype(np.int64), tol, *codes)

        def fill(code: Any, at: int, rows: Any) -> None:
            watch.set_message("{} of {} signals", at, size)
            if not watch.out_of_time():
                code(given, rows, by_index)

        for locked in (True,) if self.locked else (False, True):  # what the kernel leaves goes in lock-step
            left, block = np.flatnonzero(codes.counts == PENDING), self._block(locked)
            code = self._code_locked if locked else self._code
            rows = [
                left[at : at + block] if locked else slice(at, at + block)
                for at in range(0, len(left), block)
            ]
            pieces = [(code, i * block, some) for i, some in enumerate(rows)]
            run_tasks(fill, pieces, len(left) * self._work, self.config.n_jobs)
        np.maximum(codes.counts, 0, out=codes.counts)
        return codes

    def transform(self, signals: np.ndarray, first: int = 0) -> csr_array:
        """Codes as a sparse array, sorted by index."""
        indices, values, counts = self.encode(signals, first, by_index=True)
        valid = np.arange(self.k) < counts[:, None] if (counts < self.k).any() else ...
        indices, values = indices[valid].reshape(-1), values[valid].reshape(-1)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        pointers = pointers.astype(np.int32 if pointers[-1] < np.iinfo(np.int32).max else np.int64)
        stacked = csr_array((values, indices, pointers), shape=(len(counts), self.shape[0]))
        stacked.sort_indices()  # the kernel has sorted its own
        stacked.has_canonical_format = True
        return stacked

    def _code(self, given: Signals, rows: Any, by_index: bool) -> None:
        """Code one block by the kernel."""
        from skpursuit.kernels import batch_pursuit as batch

        signals = given.at(rows, self.dtype)
        (m, n), block = signals.rows.shape, self._block(locked=False)
        room = self._spare.pop() if self._spare else batch_types.room_for(block, self.k, n, self.width)
        coarse, start, units, energies = (part[:m] for part in room[:4])
        bad = batch.load_block(signals.rows, coarse, units, energies, LEAST_SIZE**2, n * MOST_SIZE**2)
        if bad >= 0:
            _norms_of(signals.at([bad], self.dtype))
        np.matmul(coarse, self.dictionary.coarse.T, out=start)
        kernel = batch.KERNELS[self.mode]
        kernel(signals, (start, units, energies), self.dictionary, self.limits, room[4], by_index)
        self._spare.append(room)

    def _code_locked(self, given: Signals, rows: Any, by_index: bool) -> None:
        """Code one block in lock-step."""
        signals = given.at(rows, self.dtype)
        exponents = np.frexp(_norms_of(signals))[1]
        scaled = np.ldexp(signals.rows.astype(np.float64), -exponents[:, None])
        kind = CoSaMP if self.config.solver == "cosamp" else LockStep
        pursuit = kind(self, scaled, signals.most, np.ldexp(signals.tol, -2 * exponents))
        pursuit.run()
        support, size = pursuit.support, pursuit.support.shape[1]
        weights = np.ldexp(pursuit.weights, (exponents - self.limits.exponent)[:, None])
        unused = np.arange(size) >= pursuit.sizes[:, None]
        support[unused], weights[unused] = 0, 0.0
        given.indices[rows, :size], given.values[rows, :size] = support, weights
        given.counts[rows] = pursuit.sizes


def _limit_of_each(name: str, given: Any, first: int, size: int) -> np.ndarray:
    """A limit for each signal, from one number or one number for each."""
    if np.ndim(given) == 0:
        return np.full(size, given, np.float64)
    if len(given) < first + size:
        raise ValueError(f"{name} has {len(given)} entries, one for each signal, and there are more signals")
    return np.asarray(given[first : first + size], np.float64)


def _norms_of(signals: Signals) -> np.ndarray:
    """Norms of signals; raises if there is one with numbers that are not finite, or out of range."""
    peaks = np.abs(signals.rows).max(axis=1).astype(np.float64)
    if not (finite := np.isfinite(peaks)).all():
        row = signals.number[np.argmin(finite)]
        raise ValueError(
            f"signals contain NaN or infinity (first in row {row}); impute the values or drop the row"
        )
    check_range(peaks, lambda i: f"the signal in row {signals.number[i]}")
    return np.linalg.norm(signals.rows.astype(np.float64), axis=1)
