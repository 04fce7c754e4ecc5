"""Coding of many signals over one dictionary, against SPAMS and scikit-learn.

    taskset -c 1 python benchmarks/coder.py                     # Gaussian
    taskset -c 1 python benchmarks/coder.py --audio FILE.flac   # pieces of music
    python benchmarks/coder.py --threads                                          # two threads against one

All programs run in one process, in turn; the best of several runs counts, Gram matrix included.
"""

import argparse
import time

from timing import best_times  # first: it sets the number of BLAS threads  # isort: skip

import numpy as np
from sklearn.linear_model import orthogonal_mp_gram
from threadpoolctl import threadpool_limits

from skpursuit import PursuitCoder

N_ATOMS, LENGTH, K = 2048, 1024, 10


def gaussian(n_signals):
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((N_ATOMS, LENGTH))
    return atoms, rng.standard_normal((n_signals, LENGTH))


def music(path, n_signals):
    """Pieces of a recording; every atom is a piece too, plus a little noise so that no code is trivial."""
    import soundfile

    samples, _ = soundfile.read(path, dtype="float64")
    pieces = samples[: len(samples) // LENGTH * LENGTH].reshape(-1, LENGTH)
    rng = np.random.default_rng(0)
    loud = np.linalg.norm(pieces, axis=1) > 1e-3
    atoms = pieces[rng.choice(np.flatnonzero(loud), N_ATOMS, replace=False)]
    noise = rng.standard_normal(atoms.shape)
    atoms = atoms + 0.3 * noise * (np.linalg.norm(atoms, axis=1) / np.linalg.norm(noise, axis=1))[:, None]
    return atoms, pieces[:n_signals]


def spams_omp(atoms, signals):
    """SPAMS with float32 data and L alone returns empty codes; with eps=0 it does what is asked."""
    import spams

    columns, dictionary = np.asfortranarray(signals.T), np.asfortranarray(atoms.T)
    return lambda: spams.omp(columns, dictionary, L=K, eps=0.0, numThreads=1)


def against_peers(atoms, signals, rounds):
    few = signals[: min(1000, len(signals))]
    times = {}
    for dtype in (np.float64, np.float32):
        a, s = atoms.astype(dtype), signals.astype(dtype)
        coder = PursuitCoder(a, n_nonzero_coefs=K, n_jobs=1)
        cosamp = PursuitCoder(a, n_nonzero_coefs=K, solver="cosamp", n_jobs=1)
        coder.transform(s[:300]), cosamp.transform(s[:300])
        times[dtype] = best_times(
            {
                "omp": lambda coder=coder, s=s: coder.transform(s),
                "cosamp": lambda cosamp=cosamp, s=s: cosamp.transform(s),
                "spams": spams_omp(a, s),
            },
            rounds,
        )
    begun = time.perf_counter()
    theirs = orthogonal_mp_gram(atoms @ atoms.T, atoms @ few.T, n_nonzero_coefs=K).T
    sklearn = (time.perf_counter() - begun) * len(signals) / len(few)
    ours = PursuitCoder(atoms, n_nonzero_coefs=K).transform(few).toarray()
    report(times, sklearn, len(signals))
    compare_supports(atoms, few, ours, theirs)


def report(times, sklearn, n_signals):
    f64, f32 = times[np.float64], times[np.float32]
    for name, seconds in (
        ("PursuitCoder float64", f64["omp"]),
        ("PursuitCoder float32", f32["omp"]),
        ("PursuitCoder cosamp float64", f64["cosamp"]),
        ("PursuitCoder cosamp float32", f32["cosamp"]),
        ("SPAMS omp float64", f64["spams"]),
        ("SPAMS omp float32", f32["spams"]),
        ("scikit-learn orthogonal_mp_gram float64", sklearn),
    ):
        print(f"{name:42s}{seconds / n_signals * 1e3:8.3f} ms a signal")
    print(f"float64: SPAMS / ours                {f64['spams'] / f64['omp']:6.2f}   (wanted: at least 4)")
    print(f"float32: SPAMS float64 / ours        {f64['spams'] / f32['omp']:6.2f}")
    print(f"float32: SPAMS float32 / ours        {f32['spams'] / f32['omp']:6.2f}   (wanted: at least 5)")
    print(f"float64: scikit-learn / ours         {sklearn / f64['omp']:6.2f}   (wanted: at least 30)")
    print(f"float64: CoSaMP / OMP                {f64['cosamp'] / f64['omp']:6.2f}   (wanted: at most 5)")
    print(f"float32: CoSaMP / OMP                {f32['cosamp'] / f32['omp']:6.2f}   (wanted: at most 5)")


def compare_supports(atoms, signals, ours, theirs):
    differ = np.flatnonzero(((ours != 0) != (theirs != 0)).any(axis=1))
    print(f"supports other than scikit-learn's   {len(differ):6d}   of {len(signals)}")
    for i in differ:
        errors = [np.linalg.norm(signals[i] - codes[i] @ atoms) for codes in (ours, theirs)]
        print(f"  signal {i}: residual norms {errors[0]:.12g} (ours) and {errors[1]:.12g}")


def against_one_thread(atoms, signals, rounds):
    for dtype in (np.float64, np.float32):
        a, s = atoms.astype(dtype), signals.astype(dtype)
        one, two = (PursuitCoder(a, n_nonzero_coefs=K, n_jobs=n) for n in (1, 2))
        assert (one.transform(s) != two.transform(s)).nnz == 0
        best = best_times(
            {"one": lambda one=one, s=s: one.transform(s), "two": lambda two=two, s=s: two.transform(s)},
            rounds,
            time.perf_counter,
        )
        ratio = best["one"] / best["two"]
        print(f"{a.dtype}: one thread / two threads     {ratio:6.2f}   (wanted: at least 1.7)")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audio", help="a recording, cut into pieces of 1024 samples")
    parser.add_argument("--signals", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", action="store_true", help="two threads against one")
    args = parser.parse_args()
    atoms, signals = music(args.audio, args.signals) if args.audio else gaussian(args.signals)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    if args.threads:
        return against_one_thread(atoms, signals, args.rounds)
    with threadpool_limits(1):
        return against_peers(atoms, signals, args.rounds)


if __name__ == "__main__":
    main()
