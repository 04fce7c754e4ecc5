"""Learn atoms from a recording, and show the error of its codes falling.

python benchmarks/dictionary.py FILE.flac [--atoms 2048] [--passes 10] [--dtype float32]
"""

import argparse
import time

import numpy as np
import soundfile

from skpursuit import DictionaryLearner


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file")
    parser.add_argument("--atoms", type=int, default=2048)
    parser.add_argument("--passes", type=int, default=10)
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("-k", type=int, default=10)
    args = parser.parse_args()
    samples, _ = soundfile.read(args.file, dtype=args.dtype)
    pieces = samples[: len(samples) // args.length * args.length].reshape(-1, args.length)
    begun = time.perf_counter()

    def progress(done, total, seconds_left):
        if done % len(pieces) == 0:
            spent = time.perf_counter() - begun
            print(
                f"pass {done // len(pieces):3d} of {args.passes}: {spent:6.1f} s, {seconds_left:6.1f} s left"
            )

    learner = DictionaryLearner(
        args.atoms, args.k, max_iter=args.passes, callback=progress, random_state=0
    ).fit(pieces)
    print("relative error while coding, pass by pass:", " ".join(f"{e**0.5:.4f}" for e in learner.errors_))
    restored = learner.inverse_transform(learner.transform(pieces))
    norms = np.linalg.norm(pieces, axis=1)
    heard = norms > 0
    share = np.linalg.norm(pieces - restored, axis=1)[heard] / norms[heard]
    print(f"mean of |y - coded y| / |y|: {share.mean():.4f}; atoms replaced: {learner.n_replaced_}")


if __name__ == "__main__":
    main()
