"""Measured constants: what reading and computing cost, and sizes from which a shortcut pays.

They decide how fast an answer comes, never what it is. `benchmarks/run.py costs --write` measures the
prices, on one thread, and writes them into this file; the numbers here are from a two-core machine of 2026.
Constants below the prices were found by trying. What a kernel is compiled with stands beside the kernel,
because Numba notes changes of its own file only.
"""

from dataclasses import dataclass

NANO = 1e-9  # seconds


@dataclass(frozen=True)
class CostModel:
    """Nanoseconds an entry of X on one thread."""

    byte: float = 0.03  # of a dense product, memory-bound
    cached_byte: float = 0.016  # the same when X stays in the cache
    sparse_entry: float = 1.6  # of a sparse product, per stored entry
    multi_residual: float = 1.8  # a product with several residuals, in products with one
    per_residual: float = 0.084  # and for each residual
    encode_entry: float = 0.58  # of the codes
    encode_second_byte: float = 0.035  # of second bytes made with them
    code_product: float = 0.05  # of an estimate by codes
    target: float = 0.007  # of each further residual in the same pass
    path_code_product: float = 0.0056  # of a product of codes along a path that was guessed
    gather: float = 7.5  # of a column that is not contiguous
    axpy: float = 0.16  # per entry of a Gram column that is added to the gradient
    gram_term: float = 2000.0  # nanoseconds for each such column besides, estimated
    gram_step: float = 3600.0  # nanoseconds a step takes longer than one of exact selection
    codes_step: float = 69000.0  # the same for certified selection


COSTS = CostModel()
CACHE = 2**22  # bytes of X up to which it stays close to the processor
SPARSE_SHARE = 0.38  # of a sparse product with one residual, for each of several
RECOMPUTED = 8  # uncached columns recomputed per selection, by codes or in float32
LOAD_KERNELS = 0.35  # seconds to import numba and load compiled kernels, when nothing has yet
AUTO_MARGIN = 0.75  # of the price of exact selection, which others must undercut: prices of new memory vary
CODES_MARGIN = 1.1  # on the price of codes: near ties go to the selector that needs none
WAITING_SHARE = 0.2  # of the time a process has worked, that it may wait for kernels

# X in files
TILE_LOOK = 1.5e-4  # seconds to begin and end products of the codes of a tile, once for each look at them
FILE_BYTE = 0.45e-9  # seconds to read a byte that is not in the page cache: 2.2 GB/s (`run.py large`)
CACHED_FILE_BYTE = 0.12e-9  # that is in the page cache: 8 GB/s (`run.py files`)

# Threads of kernels, in multiply-adds
MIN_PARALLEL_WORK = 6_000_000  # 2 ms: for less, waking a thread (0.05 ms and more) costs too much
MAX_KERNEL_WORK = 1 << 25  # of one call of a kernel: about 10 ms, so that an interrupt is answered promptly
CHUNKS_PER_THREAD = 8  # taken by a thread one after another: one that is late leaves its share to the others

# Dense X, in entries
BLOCK_ENTRIES = 2**26  # one BLAS call reads at most this many, so that Ctrl-C is prompt
COLUMN_COPY_ENTRIES = 2**20  # entries of columns of a tile that are copied together
PIECE_ENTRIES = 2**21  # of a product that one thread takes at a time, about a millisecond
PIECE_RESIDUALS = 6  # from which pieces are larger than with one residual
MOMENT_BLOCK, MOMENT_ROWS = 2**16, 256  # entries, and least rows, of a block whose products are added up
GATHERED_ENTRIES = 2**22  # up to here columns may be gathered at once
GATHER_BLOCK = 2**14  # copied rows of a few columns that stay in the cache until they are transposed
SMALL_BLOCK = 2**16  # what stays in the cache while a block is looked at twice
LINE_BLOCK = 2**20  # of whole lines whose norms one call makes
SINGLE_ENTRIES = 2**17  # from which X in the cache is multiplied in float32
SMALL_PRODUCT = 2**20  # no kernel is loaded for a product of fewer
MAX_SINGLE_COPIES = 32  # up to here single columns are copied faster than blocks of them
GATHER_AHEAD_COLUMNS = 16  # columns that are gathered with others that are needed

# Gram columns
GRAM_SHARE = 3  # d / 3 columns of X^T X, made ahead in blocks, cost as much as all of it in one product
GRAM_BATCH = 24  # columns of X^T X made in one product: as cheap as four by single products
GRAM_BATCH_USED = 12  # of the 24 Gram columns computed together, those that are used
GRAM_BLOCK = 128  # columns of X^T X multiplied at a time where all of them are too many
MAX_UPDATE_ROUNDINGS = 1e6  # roundings after which a gradient that follows moves is summed up afresh

# Candidates that estimates leave
MAX_EXACT_CANDIDATES = 32  # columns that are computed without looking at their second byte, if there is one
SECOND_BYTE_CANDIDATES = 512  # columns left from which a second byte is made, if there is none
SECOND_BYTE_SELECTIONS = 100  # selections from which a second byte has paid for itself
SECOND_BYTE_ROWS = 20000  # rows from which one byte leaves many columns
HALVING_CODES = 2**20  # entries of X from which halving works on codes

# Speculated paths
STEPS_PER_CODE_PASS = 5  # steps that a look at the codes serves
GUESS_POOL = 96  # columns among which the next atoms are guessed
MAX_GUESSES = 64  # atoms that are guessed in one round
GUESS_STOP_RATIO = 1.0  # guesses end where a winner scores less than this times the last one of the pool
UNVERIFIED_STOP_RATIO = 1.15  # the same for guesses that are not verified
MAX_CONTENDERS = 512  # columns of a round that are computed exactly because they could have won
MIN_ROUND_STEPS = 3  # a round of fewer is poor
MAX_POOR_ROUNDS = 2  # poor rounds one after the other, after which no more are made

# Fits, in entries held at a time
INITIAL_BUFFER_ENTRIES = 2**22  # that a stack of gathered columns starts with at most
GRAM_ENTRIES = 2**17  # of the columns of a support that are weighted at a time
CURVATURES_HELD = 2**22  # of rows, all pairs of classes
DEPENDENCE_ENTRIES = 2**20  # of the columns that are looked at together
CHECKED_TOGETHER = 64  # columns of the support multiplied at a time in the last check of a run

# Codes of many signals
CODING_WORK = 1 << 32  # multiply-adds of one block, about 40 ms with its codes, so that Ctrl-C is prompt
CODING_BLOCK = 512  # signals of one block at most
PACKED_ROWS = 64  # blocks are multiples of what BLAS packs together
STREAM_PIECE = 4096  # signals of one piece of a stream: enough for every thread, few enough to report often
