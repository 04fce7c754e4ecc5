"""Is this tree as fast as an earlier commit?

    python benchmarks/gate.py --base REV [--only SUBSTRING] [--share 1.0]

The fits behind README's tables and small fits, each timed in both trees: two worker processes take turns, on
one thread, and the fastest run of each counts (processor seconds). Fails when a group of them takes over 7 %
longer in the mean, or one of them over 20 %. Run it on a quiet machine; what looks slower is measured once
more before it is called so. `--share 0.2` runs a fifth of the rounds, to see that everything works.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from trees import HERE, check_tree, start, unpacked

MEAN, ANY = 1.07, 1.20
ROUNDS = 4, 25  # at least and at most, of one fit in each tree
SECONDS = 2.5  # that each tree spends on one fit, within those rounds
SAMPLE = 0.02  # seconds: shorter fits are repeated until one sample takes as long
Fits = Iterator[Callable[[], Any]]


# -- what is timed: each yields one fit after the other, and sets it up before -----------------------------


@lru_cache(maxsize=1)
def signal(n: int, d: int, k: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from skpursuit import datasets

    return datasets.make_sparse_signal(n, d, k, random_state=0)


def selectors() -> dict[str, Any]:
    """Those that are more than a name."""
    from skpursuit import Greedy, Stability, SuccessiveReject

    return {
        "greedy 2%": Greedy(stop=Stability(0.02)),
        "greedy 5%": Greedy(stop=Stability(0.05)),
        "reject": SuccessiveReject(0.005),
    }


def fresh(n: int, d: int, k: int, selector: str) -> Fits:
    """OMP on an array, preparation included."""
    from skpursuit import OMP, minimize

    X, y, _ = signal(n, d)
    chosen = selectors().get(selector, selector)
    while True:
        yield lambda: minimize(X, y, OMP(n_nonzero_coefs=k), chosen, random_state=0)


def prepared(n: int, d: int, k: int, selector: str) -> Fits:
    """OMP on a design that served other targets."""
    from skpursuit import OMP, as_design, minimize

    X, y, w = signal(n, d)
    noise, columns = y - X @ w, np.flatnonzero(w)
    design, chosen = as_design(X), selectors().get(selector, selector)
    minimize(design, y, OMP(n_nonzero_coefs=k), chosen, random_state=0)
    shift = 0
    while True:
        shift += 1
        target = X[:, (columns + shift) % d] @ w[columns] + noise
        yield lambda target=target: minimize(design, target, OMP(n_nonzero_coefs=k), chosen, random_state=0)


def drop_in(name: str, n: int, d: int, **given: Any) -> Fits:
    """A program of scikit-learn's with one import changed."""
    import skpursuit

    X, y, _ = signal(n, d)
    X = X + 0.01
    while True:
        yield lambda: getattr(skpursuit, name)(**given).fit(X, y)


def gram_function() -> Fits:
    from skpursuit import orthogonal_mp_gram

    atoms = signal(256, 512)[0]
    Y = np.random.default_rng(0).standard_normal((256, 200))
    G, DY = atoms.T @ atoms, atoms.T @ Y
    while True:
        yield lambda: orthogonal_mp_gram(G, DY, n_nonzero_coefs=10)


def text(classes: int, **given: Any) -> Fits:
    """Documents: unit rows of few words, common and rare ones."""
    from skpursuit import PursuitClassifier

    rng = np.random.default_rng(0)
    n, d, words = 2000, 10_000, 120
    rows = np.repeat(np.arange(n), words)
    columns = np.minimum((d ** rng.random(n * words)).astype(int), d - 1)
    X = sp.csr_array((np.ones(n * words), (rows, columns)), shape=(n, d))
    X = sp.csr_array(X / np.sqrt(X.multiply(X).sum(axis=1))[:, None])
    telling = rng.standard_normal((d, classes)) * (rng.random((d, 1)) < 0.02)
    y = (X @ telling + 0.02 * rng.standard_normal((n, classes))).argmax(axis=1)
    if "shared_support" in PursuitClassifier().get_params() and given.get("multi_class") == "ovr_shared":
        given = {"shared_support": True}  # its name until there was "ovr_shared"
    while True:
        yield lambda: PursuitClassifier(n_nonzero_coefs=50, **given).fit(X, y)


def solving(name: str, selector: str, n: int = 2000, d: int = 4000, **given: Any) -> Fits:
    """Another solver on a design that was used before."""
    import skpursuit as sk

    X, y, w = signal(n, d)
    ball = sk.L1Ball(float(np.abs(w).sum()))
    solver = sk.FrankWolfe(ball, **given) if name == "FrankWolfe" else getattr(sk, name)(**given)
    design = sk.as_design(X)
    while True:
        yield lambda: sk.minimize(design, y, solver, selector, random_state=0)


def coding() -> Fits:
    from skpursuit import PursuitCoder

    rng = np.random.default_rng(0)
    atoms, signals = rng.standard_normal((512, 256)), rng.standard_normal((2000, 256))
    while True:
        yield lambda: PursuitCoder(atoms, n_nonzero_coefs=10, n_jobs=1).transform(signals)


def small(selector: str, loss: str = "squared") -> Fits:
    from skpursuit import OMP, minimize

    X, y, _ = signal(300, 500, 10)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    solver = OMP(n_nonzero_coefs=10, ridge=0.0 if loss == "squared" else 1e-5)
    while True:
        yield lambda: minimize(X, y, solver, selector, loss, random_state=0)


def small_estimator() -> Fits:
    from skpursuit import PursuitRegressor

    X, y, _ = signal(300, 500, 10)
    while True:
        yield lambda: PursuitRegressor(n_nonzero_coefs=10).fit(X, y)


def every_fit() -> dict[str, Callable[[], Fits]]:
    """Fits by group and name; those of the same data stand together, for the data are kept one at a time."""
    big, demo = (5000, 10_000), (2000, 4000)
    table = ("exact", "certified", "gram", "sketch", "halving", "greedy 2%", "greedy 5%")
    others = ("auto", "halving-random", "greedy", "importance", "uniform", "reject")
    fits: dict[str, Callable[[], Fits]] = {}
    for name in table:
        fits[f"selectors/{name}, fresh"] = partial(fresh, *big, 50, name)
        fits[f"selectors/{name}, prepared"] = partial(prepared, *big, 50, name)
    omp, chosen = "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"
    fits["drop-in/OMP, 5000 x 10000"] = partial(drop_in, omp, *big, n_nonzero_coefs=50)
    fits["drop-in/OMP, 2000 x 4000"] = partial(drop_in, omp, *demo, n_nonzero_coefs=50)
    for name in (*table[:5], *others):
        fits[f"demo/{name}"] = partial(fresh, *demo, 50, name)
    for name in ("exact", "certified", "halving"):
        fits[f"solvers/CoSaMP, {name}"] = partial(solving, "CoSaMP", name, n_nonzero_coefs=50, max_iter=4)
    fits["solvers/MatchingPursuit"] = partial(solving, "MatchingPursuit", "certified", max_iter=100)
    for variant in ("vanilla", "away", "pairwise", "blended"):
        fits[f"solvers/FrankWolfe, {variant}, gram"] = partial(
            solving, "FrankWolfe", "gram", max_iter=500, variant=variant
        )
    fits["drop-in/OMP, 1000 x 500"] = partial(drop_in, omp, 1000, 500)
    fits["drop-in/OMPCV, 1000 x 500"] = partial(drop_in, chosen, 1000, 500, max_iter=50)
    fits["drop-in/orthogonal_mp_gram"] = gram_function
    fits["text/two classes"] = partial(text, 2)
    fits["text/six classes, one-vs-rest"] = partial(text, 6, multi_class="ovr_shared")
    fits["text/six classes, multinomial"] = partial(text, 6, multi_class="multinomial")
    fits["solvers/PursuitCoder"] = coding
    for name in ("auto", "gram", "exact"):
        fits[f"small/{name}"] = partial(small, name)
    fits["small/logistic"] = partial(small, "auto", "logistic")
    fits["small/PursuitRegressor"] = small_estimator
    return fits


# -- the workers ----------------------------------------------------------------------------------------


def work() -> int:
    """Time one run of the fit whose name comes in, until no name comes any more."""
    import numba  # noqa: F401  (`auto` looks whether it is loaded)

    check_tree()
    fits, name, running, count = every_fit(), "", iter(()), 1
    for asked in map(str.strip, sys.stdin):
        if asked != name:
            name, running = asked, fits[asked]()
            count = 1 + int(SAMPLE / timed([next(running), next(running)]) * 2)  # kernels are loaded by now
        print(timed([next(running) for _ in range(count)]), flush=True)
    return 0


def timed(functions: list[Callable[[], Any]]) -> float:
    """Processor seconds of one call, of several made."""
    began = time.process_time()
    for function in functions:
        function()
    return (time.process_time() - began) / len(functions)


class Worker:
    """A tree's process."""

    def __init__(self, tree: Any) -> None:
        self.process = start(tree, __file__, "--work", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def seconds(self, name: str) -> float:
        """Seconds of one run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the worker of {self.process.args} failed in {name}")
        return float(answer)


def measure(name: str, workers: list[Worker], share: float) -> list[float]:
    """Best seconds of a fit in each tree; again as many rounds if the second one looks slower."""
    best = [worker.seconds(name) for worker in workers]
    least, most = ROUNDS
    rounds = share * min(most, max(least, SECONDS / max(best)))
    for part in range(2):
        for number in range(max(1, int(rounds))):
            for place in (0, 1) if number % 2 else (1, 0):
                best[place] = min(best[place], workers[place].seconds(name))
        if part or best[1] <= MEAN * best[0]:
            break
    return best


# -- the verdict ----------------------------------------------------------------------------------------


def main() -> int:
    """Compare, or be one of the two workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", metavar="REV", help="the commit to compare with")
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="time fits with this in their name")
    parser.add_argument("--share", metavar="SHARE", type=float, default=1.0, help="of the rounds")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work()
    if not given.base:
        parser.error("--base REV is needed")
    workers = [Worker(unpacked(given.base)), Worker(HERE)]
    ratios: dict[str, list[float]] = {}
    print(f"{'':<44}{'base':>12}{'tree':>12}{'tree/base':>11}")
    for name in every_fit():
        if given.only in name:
            before, now = measure(name, workers, given.share)
            ratios.setdefault(name.partition("/")[0], []).append(now / before)
            times = f"{1e3 * before:>9.2f} ms{1e3 * now:>9.2f} ms"
            print(f"{name:<44}{times}{now / before:>11.3f}{'  slower' * (now > ANY * before)}", flush=True)
    for worker in workers:
        worker.process.communicate()
    return verdict(ratios)


def verdict(ratios: dict[str, list[float]]) -> int:
    """Print the mean of each group; 1 if a limit is passed."""
    slow = False
    for group, values in ratios.items():
        mean, worst = float(np.exp(np.mean(np.log(values)))), max(values)
        failed = mean > MEAN or worst > ANY
        slow |= failed
        print(f"{group:<44}mean {mean:.3f}, worst {worst:.3f}{'  FAILED' if failed else ''}")
    print(f"limits: {MEAN:.2f} in the mean of a group, {ANY:.2f} in any; {'failed' if slow else 'passed'}")
    return int(slow or not ratios)


if __name__ == "__main__":
    sys.exit(main())
