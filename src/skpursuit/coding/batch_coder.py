"""Codes of many signals over one dictionary.

Signals are coded in blocks whose size follows from the shapes alone, and threads share the blocks, so that
their number changes no bit. With many signals, one matrix product gives the correlations of a block, and a
kernel follows them signal by signal through the Gram matrix of the atoms (`kernels/batch.py`). With few
signals, or where the Gram matrix does not fit the memory limit, the signals of a block take each step
together (`lockstep.py`); so do the few signals that the kernel leaves. This is one of the two loops that
docs/architecture.md allows beside `minimize`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from skpursuit.coding.lockstep import LockStep
from skpursuit.kernels.batch_types import (
    CLOSED,
    GAIN,
    OMP,
    PENDING,
    POSITIVE,
    TILE,
    Block,
    Codes,
    Dictionary,
    Limits,
    aligned,
    scratch,
)
from skpursuit.numerics.float_range import FLOAT64_MAX
from skpursuit.numerics.threads import run_tasks
from skpursuit.numerics.tuning import CODING_BLOCK, CODING_WORK, PACKED_ROWS
from skpursuit.progress import current_monitor

RELATIVE_COST = {"omp": 1, "cosamp": 9}  # about so many times k^2 (d + n) multiply-adds a signal
NEGLIGIBLE_ATOM = 2.0**-60  # of the largest atom: float32 proposals tell nothing of smaller ones
FEW = 0.7  # signals times non-zeros per atom, below which a Gram matrix does not pay
LOCKED, LOCKED_BYTES = 256, 1 << 28  # signals that step together, at most, and their memory


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
    score: str = "correlation"
    positive: bool = False


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
    config : CoderConfig
    expected : int, optional
        Number of signals to come. For a few of them no Gram matrix is computed.
    """

    def __init__(self, atoms: np.ndarray, config: CoderConfig, expected: int | None = None) -> None:
        d, n = atoms.shape
        self.config, self.dtype, self.shape = config, atoms.dtype, (d, n)
        self.k, self.width = min(config.k, n, d), -(-d // TILE) * TILE
        self.mode = POSITIVE if config.positive else GAIN if config.score == "gain" else OMP
        self.coarse, self.norms = aligned(self.width, n), np.zeros(self.width)
        self.atoms = self.coarse[:d] if atoms.dtype == np.float32 else np.empty((d, n))
        exponent = int(_exponents(max(atoms.max(), -atoms.min()), atoms.dtype))
        np.multiply(atoms, atoms.dtype.type(2.0**-exponent), out=self.atoms)
        norms = _norms(self.atoms)
        reach = int(_exponents(norms.max(), atoms.dtype))
        self.atoms *= atoms.dtype.type(2.0**-reach)
        norms *= 2.0**-reach
        self.atoms[norms < NEGLIGIBLE_ATOM] = 0.0  # beside the largest atom, like an atom of zeros
        self.norms[:d] = np.where(norms < NEGLIGIBLE_ATOM, 0.0, norms)
        self.coarse[:d], self.coarse[d:] = self.atoms, 0
        eps, fine = float(np.finfo(atoms.dtype).eps), float(np.finfo(np.float64).eps) * 2 * n**0.5
        self.limits = Limits(
            k=self.k,
            tol=float(config.tol or 0.0),
            fine=fine,
            floor=max(fine, 4 * eps),
            dependence=max(fine, 256 * eps**2),
            penalty=min(float(np.ldexp(n * float(config.ridge), -2 * (exponent + reach))), FLOAT64_MAX),
            scale=float(self.norms.max() ** 2),
            rounding=max(1.0, n / 64),
            exponent=exponent + reach,
        )
        few = expected is not None and expected * self.k < FEW * d
        self.locked = config.solver == "omp" and (few or 4 * d * self.width > config.memory_limit)
        squares = (self.norms**2 + self.limits.penalty).astype(np.float32)
        squares[self.norms == 0] = CLOSED
        gram = aligned(0) if self.locked or config.solver == "cosamp" else self._gram().reshape(-1)
        self.dictionary = Dictionary(self.atoms, gram, squares, self.norms)
        self._spare: list[Any] = []  # scratch of threads that are not at work

    def _gram(self) -> np.ndarray:
        """The Gram matrix, in blocks of a fixed size: the lower half by BLAS, the upper by copying."""
        d, n = self.shape
        step, coarse, gram = (
            max(1, min(256, CODING_WORK // max(1, d * n))),
            self.coarse,
            aligned(d, self.width),
        )
        gram[:, d:] = 0  # atoms of zeros fill the last tile

        def fill(at: int) -> None:
            end = min(d, at + step)
            np.matmul(coarse[at:end], coarse[:end].T, out=gram[at:end, :end])
            gram[:at, at:end] = gram[at:end, :at].T

        run_tasks(fill, [(at,) for at in range(0, d, step)], d * d * n // 2, self.config.n_jobs)
        gram[np.arange(d), np.arange(d)] += np.float32(self.limits.penalty)
        return gram

    @property
    def _work(self) -> int:
        """Multiply-adds of one signal."""
        d, n = self.shape
        return d * n + self.k**2 * (d + n) * RELATIVE_COST[self.config.solver]

    @property
    def block(self) -> int:
        """Signals coded together; it depends on shapes alone, so threads cannot change the result."""
        d, n = self.shape
        if self.locked:
            return max(1, min(LOCKED, LOCKED_BYTES // (8 * self.k * (n + 2 * self.k) + 16 * d)))
        most = max(1, min(CODING_BLOCK, CODING_WORK // max(1, self._work)))
        return most - most % PACKED_ROWS if most > PACKED_ROWS else most

    def encode(self, signals: np.ndarray, first: int = 0) -> csr_array:
        """Codes of signals in rows; ``first`` is the number of the first one, for messages."""
        size, block, watch = len(signals), self.block, current_monitor()
        codes = Codes(
            np.empty((size, self.k), np.int32), np.empty((size, self.k), self.dtype), np.zeros(size, np.int64)
        )
        code = self._code_locked if self.locked else self._code

        def fill(at: int) -> None:
            watch.set_message("{} of {} signals", at, size)
            if not watch.out_of_time():
                rows, out = signals[at : at + block], Codes(*(part[at : at + block] for part in codes))
                code(np.require(rows, self.dtype, ["C", "A", "W"]), out, first + at)

        run_tasks(fill, [(at,) for at in range(0, size, block)], size * self._work, self.config.n_jobs)
        return self._stacked(codes)

    def _code(self, signals: np.ndarray, codes: Codes, first: int) -> None:
        """Code one block by the kernel, and what it leaves in lock-step."""
        from skpursuit.kernels import batch_pursuit as batch

        (m, n), block, width = signals.shape, self.block, self.width
        room = self._spare.pop() if self._spare else (
            aligned(block, n), aligned(block, width), np.empty(block, np.int64), np.empty(block),
            *scratch(self.k if self.config.solver == "omp" else min(3 * self.k, n, self.shape[0]), n, width),
        )  # fmt: skip
        coarse, start, exponents, energy = (part[:m] for part in room[:4])
        bits = signals.view(np.int64 if signals.itemsize == 8 else np.int32)
        bad = batch.load_block(signals, bits, batch.FORMATS[signals.itemsize], coarse, exponents, energy)
        _refuse(bad, first)
        data = Block(signals, exponents, energy, start)
        if self.config.solver == "cosamp":
            self._cosamp(data, coarse, room[4:], codes)
        else:
            np.matmul(coarse, self.coarse.T, out=start)
            codes.counts[:] = PENDING
            batch.KERNELS[self.mode](data, self.dictionary, self.limits, *room[4:], codes)
        self._spare.append(room)
        left = np.flatnonzero(codes.counts == PENDING)
        for at in range(0, len(left), LOCKED):
            rows = left[at : at + LOCKED]
            part = Codes(*(x[rows] for x in codes))
            self._code_locked(signals[rows], part, first)
            for x, y in zip(codes, part):
                x[rows] = y

    def _cosamp(self, block: Block, coarse: np.ndarray, room: Any, codes: Codes) -> None:
        """CoSaMP of one block: a product of all residuals with the dictionary before each iteration."""
        from skpursuit.kernels.batch_cosamp import cosamp_step

        (work, fit), size, live = room, len(block.signals), np.arange(len(block.signals))
        atoms, weights = np.zeros((size, self.k), np.int64), np.zeros((size, self.k))
        codes.counts[:] = 0
        state = atoms, weights, codes.counts, block.energy.copy(), block.energy.copy(), coarse
        for _ in range(self.config.max_iter or self.config.k):
            start = np.matmul(coarse[live], self.coarse.T, out=block.start[: len(live)])
            part = block._replace(start=start)
            cosamp_step(part, live, self.dictionary, self.limits, work, fit, state, self.config.refit)
            live = live[live >= 0]
            if not len(live):
                break
        self._write(codes, atoms, weights, codes.counts, block.exponents)

    def _code_locked(self, signals: np.ndarray, codes: Codes, first: int) -> None:
        """Code one block in lock-step."""
        peak = np.abs(signals).max(axis=1)
        finite = np.isfinite(peak)
        _refuse(-1 if finite.all() else int(np.argmin(finite)), first)
        exponents, d = _exponents(peak, self.dtype), self.shape[0]
        scaled = np.ldexp(signals.astype(np.float64), -exponents[:, None])
        with np.errstate(over="ignore", under="ignore"):
            tol = np.ldexp(self.limits.tol, -2 * exponents)
        pursuit = LockStep(self.atoms, self.coarse[:d], self.norms[:d], self.limits, self.mode, scaled)
        support, weights = pursuit.run(tol)
        self._write(codes, support, weights, pursuit.sizes, exponents)

    def _write(
        self, codes: Codes, support: np.ndarray, weights: np.ndarray, sizes: np.ndarray, exponents: np.ndarray
    ) -> None:
        """Sort codes by index and give them the units of their signals."""
        support[np.arange(self.k) >= sizes[:, None]] = self.shape[0]
        order = np.argsort(support, axis=1)
        shift = (exponents - self.limits.exponent)[:, None]
        codes.indices[:] = np.take_along_axis(support, order, axis=1)
        codes.values[:] = np.ldexp(np.take_along_axis(weights, order, axis=1), shift)
        codes.counts[:] = sizes

    def _stacked(self, codes: Codes) -> csr_array:
        indices, values, counts = codes
        if (counts == self.k).all():
            indices, values = indices.reshape(-1), values.reshape(-1)
        else:
            valid = np.arange(self.k) < counts[:, None]
            indices, values = indices[valid], values[valid]
        pointers = np.concatenate([[0], np.cumsum(counts)])
        if pointers[-1] < np.iinfo(np.int32).max:
            pointers = pointers.astype(np.int32)
        stacked = csr_array((values, indices, pointers), shape=(len(counts), self.shape[0]))
        stacked.has_canonical_format = True
        return stacked


def _refuse(bad: int, first: int) -> None:
    """Raise if there is a row with a number that is not finite."""
    if bad >= 0:
        raise ValueError(
            f"signals contain NaN or infinity (first in row {first + bad}); impute the values or drop the row"
        )


def make_coder(atoms: np.ndarray, dtype: np.dtype, config: CoderConfig, expected: int | None) -> BatchCoder:
    """The encoder of signals of this dtype: float32 stays float32, everything else is coded in float64."""
    with np.errstate(over="ignore", under="ignore"):
        cast = atoms.astype(np.float32 if dtype == np.float32 else np.float64, copy=False)
    if not np.isfinite(cast).all() or not np.array_equal(cast.any(axis=1), atoms.any(axis=1)):
        raise ValueError(
            "dictionary leaves the range of float32, the signals' dtype; scale it, or use float64 signals"
        )
    return BatchCoder(cast, config, expected)
