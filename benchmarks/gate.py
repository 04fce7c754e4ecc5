"""Is this tree as fast as an earlier commit?

    python benchmarks/gate.py --base REV [--only SUBSTRING] [--share 1.0]

Each fit is timed in both trees: two worker processes take turns, on one thread, and the fastest run of each
counts (processor seconds). A worker runs this file with the package of its tree; the earlier commit is
unpacked into a folder named after its sources, which stays, so that their kernels are compiled once. Fails
when a group takes longer in the mean than its limit, or a fit longer than its own. Run it on a quiet machine;
what looks slower is measured once more. `--share 0.2` runs a fifth of the rounds, to see that all works.
"""

from common import documents, signal  # isort: skip  # before NumPy

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from functools import lru_cache
from io import BytesIO
from itertools import cycle
from pathlib import Path

import numpy as np
from children import ONE_THREAD

import skpursuit as sk
from skpursuit.selectors import as_selector

HERE = Path(__file__).resolve().parents[1]
MEAN, ANY = 1.07, 1.15  # of a group and of a fit, unless they have limits of their own
MEANS = {"certified fresh": 1.10, "certified prepared": 1.05, "given up": 10.0}
#: Fits that an edition has made slower on purpose, for less code.
GIVEN_UP = {"halving, fresh": 1.5, "halving-random, fresh": 1.5, "halving, prepared": 3.0,
            "OMP 100000 x 50": 1.25, "classifier, wide": 1.4}  # fmt: skip
SLOWER = 2.0  # the other fits of that group
ROUNDS = 4, 25  # at least and at most, of one fit in each tree
SECONDS = 2.5  # that each tree spends on one fit, within those rounds
SAMPLE = 0.02  # seconds: shorter fits are repeated until one sample takes as long


# -- names of both editions: the first that a tree has is taken. Renaming must not touch these lines. --------

SELECTOR_NAMES = {"quantized": ("quantized", "sketch")}


def selector_named(name):
    """A selector, by its name in this edition."""
    if name.startswith("greedy "):
        return sk.Greedy(stop=sk.Stability(float(name.split()[1].rstrip("%")) / 100))
    if name == "reject":
        return sk.SuccessiveReject(0.005)
    for known in SELECTOR_NAMES.get(name, (name,)):
        try:
            return as_selector(known) and known
        except ValueError:
            continue
    raise ValueError(f"no tree has the selector {name}")


def classifier(multi_class):
    """A classifier of several classes with shared features, or of all classes at once."""
    known = sk.PursuitClassifier().get_params()
    if multi_class == "ovr_shared" and "shared_support" in known:
        return sk.PursuitClassifier(n_nonzero_coefs=50, shared_support=True)
    given = {} if "normalize" in known else {"scale": "none"}  # its default was not to scale
    return sk.PursuitClassifier(n_nonzero_coefs=50, multi_class=multi_class, **given)


# -- what is timed: functions that set a fit up and return it ----------------------------------------------

made = lru_cache(maxsize=1)(signal)


def fresh(n, d, k, selector, targets=1, loss="squared", **given):
    """OMP on an array, preparation included."""
    X, y, w = made(n, d, k)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    if targets > 1:
        y = np.stack([X @ np.roll(w, shift) + (y - X @ w) for shift in range(targets)], axis=1)
    chosen, solver = selector_named(selector), sk.OMP(n_nonzero_coefs=k, **given)
    return lambda: sk.minimize(X, y, solver, chosen, loss, random_state=0)


def prepared(n, d, k, selector, solver="OMP", **given):
    """A solver on a design that served other targets."""
    X, y, w = made(n, d, k)
    if solver == "FrankWolfe":
        given["constraint"] = sk.L1Ball(float(np.abs(w).sum()))
    solver = getattr(sk, solver)(**given or {"n_nonzero_coefs": k})
    others = cycle([X @ np.roll(w, shift) + (y - X @ w) for shift in range(40)])
    design, chosen = sk.as_design(X), selector_named(selector)
    return lambda: sk.minimize(design, next(others), solver, chosen, random_state=0)


def estimator(name, n, d, classes=False, **given):
    X, y, _ = made(n, d, 20)
    X, y = X + 0.01, y > 0 if classes else y
    return lambda: getattr(sk, name)(**given).fit(X, y)


def gram_function():
    atoms, Y = made(256, 512)[0], np.random.default_rng(0).standard_normal((256, 200))
    G, DY = atoms.T @ atoms, atoms.T @ Y
    return lambda: sk.orthogonal_mp_gram(G, DY, n_nonzero_coefs=10)


def text(classes, multi_class):
    X, y = documents(classes)
    return lambda: classifier(multi_class).fit(X, y)


def coding():
    rng = np.random.default_rng(0)
    atoms, signals = rng.standard_normal((512, 256)), rng.standard_normal((2000, 256))
    return lambda: sk.PursuitCoder(atoms, n_nonzero_coefs=10, n_jobs=1).transform(signals)


BIG, DEMO = (5000, 10_000, 50), (2000, 4000, 50)
OMP, OMP_CV = "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"
MP, FW = "MatchingPursuit", "FrankWolfe"
CLASSES, COSAMP = {"classes": True}, {"n_nonzero_coefs": 50, "max_iter": 4}
#: Group and name of each fit, and how it is made; those of the same data stand together.
FITS = {
    "selectors/exact, fresh": (fresh, *BIG, "exact"),
    "selectors/exact, prepared": (prepared, *BIG, "exact"),
    "certified fresh/C order": (fresh, *BIG, "certified"),
    "certified prepared/C order": (prepared, *BIG, "certified"),
    "given up/halving, fresh": (fresh, *BIG, "halving"),
    "given up/halving, prepared": (prepared, *BIG, "halving"),
    **{f"selectors/{name}, fresh": (fresh, *BIG, name) for name in ("gram", "quantized", "greedy 5%")},
    **{f"selectors/{name}, prepared": (prepared, *BIG, name) for name in ("gram", "quantized", "greedy 5%")},
    "drop-in/OMP 5000 x 10000": (estimator, OMP, *BIG[:2], {"n_nonzero_coefs": 50}),
    "given up/halving-random, fresh": (fresh, *DEMO, "halving-random"),
    "given up/certified, ridge": (fresh, *DEMO, "certified", {"ridge": 1.0}),
    "given up/certified, positive": (fresh, *DEMO, "certified", {"positive": True}),
    "given up/certified, 3 targets": (fresh, *DEMO, "certified", {"targets": 3}),
    "given up/certified, matching pursuit": (prepared, *DEMO, "certified", MP, {"max_iter": 100}),
    **{f"demo/{name}": (fresh, *DEMO, name) for name in
       ("exact", "certified", "gram", "auto", "greedy 2%", "uniform", "reject")},
    "solvers/CoSaMP, exact": (prepared, *DEMO, "exact", "CoSaMP", COSAMP),
    "solvers/CoSaMP, certified": (prepared, *DEMO, "certified", "CoSaMP", COSAMP),
    **{f"Frank-Wolfe/{variant}": (prepared, *DEMO, "gram", FW, {"max_iter": 500, "variant": variant})
       for variant in ("vanilla", "away", "pairwise", "blended")},
    "drop-in/OMP 2000 x 4000": (estimator, OMP, *DEMO[:2], {"n_nonzero_coefs": 50}),
    "drop-in/OMP 200 x 5000": (estimator, OMP, 200, 5000, {"n_nonzero_coefs": 50}),
    "drop-in/OMP 1000 x 500": (estimator, OMP, 1000, 500),
    "drop-in/OMPCV 1000 x 500": (estimator, OMP_CV, 1000, 500, {"max_iter": 50}),
    "given up/OMP 100000 x 50": (estimator, OMP, 100_000, 50, {"n_nonzero_coefs": 5}),
    "drop-in/OMPCV 100000 x 50": (estimator, OMP_CV, 100_000, 50),
    "drop-in/orthogonal_mp_gram": (gram_function,),
    "text/two classes": (text, 2, "ovr_shared"),
    "text/six classes, one-vs-rest": (text, 6, "ovr_shared"),
    "text/six classes, multinomial": (text, 6, "multinomial"),
    "solvers/PursuitCoder": (coding,),
    **{f"small/{name}": (fresh, 300, 500, 10, name) for name in ("auto", "gram", "exact")},
    "small/logistic": (fresh, 300, 500, 10, "auto", {"loss": "logistic", "ridge": 1e-5}),
    "small/PursuitRegressor": (estimator, "PursuitRegressor", 300, 500, {"n_nonzero_coefs": 10}),
    "default/regressor": (estimator, "PursuitRegressorCV", 200, 500),
    "default/classifier": (estimator, "PursuitClassifierCV", 2000, 100, CLASSES),
    "given up/classifier, wide": (estimator, "PursuitClassifierCV", 72, 2000, CLASSES),
}  # fmt: skip


def made_fit(name):
    """The fit of this name, set up."""
    make, *given = FITS[name]
    named = given.pop() if given and isinstance(given[-1], dict) else {}
    return make(*given, **named)


# -- the trees and their workers ---------------------------------------------------------------------------


def git(*arguments):
    done = subprocess.run(["git", "-C", str(HERE), *arguments], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout


def unpacked(revision):
    """The folder that holds `src` of a commit."""
    sources = git("rev-parse", "--verify", f"{revision}:src").decode().strip()
    folder = Path(tempfile.gettempdir()) / f"skpursuit-tree-{sources}"
    if not folder.exists():
        new = Path(tempfile.mkdtemp(prefix="skpursuit-tree-"))
        with tarfile.open(fileobj=BytesIO(git("archive", revision, "src"))) as archive:
            archive.extractall(new, filter="data")
        try:
            new.rename(folder)
        except OSError:  # another comparison was faster
            shutil.rmtree(new)
    return folder


def work(tree):
    """Time one run of the fit whose name comes in, until no name comes any more."""
    import numba  # noqa: F401  (`auto` looks whether it is loaded)

    if not Path(sk.__file__).resolve().is_relative_to(Path(tree, "src").resolve()):
        raise SystemExit(f"skpursuit comes from {sk.__file__}, not from {tree}")
    name, fit, count = "", None, 1
    for asked in map(str.strip, sys.stdin):
        if asked != name:
            name, fit = asked, made_fit(asked)
            count = 1 + int(SAMPLE / timed(fit, 2))  # kernels are loaded by now
        print(timed(fit, count), flush=True)
    return 0


def timed(fit, count):
    """Processor seconds of one call, of several."""
    began = time.process_time()
    for _ in range(count):
        fit()
    return (time.process_time() - began) / count


class Worker:
    """A tree's process."""

    def __init__(self, tree):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(tree / "src")}
        self.process = subprocess.Popen([sys.executable, __file__, "--work", tree], env=environment, **pipes)

    def seconds(self, name):
        """Seconds of one run."""
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the worker of {self.process.args} failed in {name}")
        return float(answer)


def measure(name, workers, share):
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


def main():
    """Compare, or be one of the two workers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", metavar="REV", help="the commit to compare with")
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="time fits with this in their name")
    parser.add_argument("--share", type=float, default=1.0, help="of the rounds")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(given.work)
    if not given.base:
        parser.error("--base REV is needed")
    workers, groups, slow = [Worker(unpacked(given.base)), Worker(HERE)], {}, False
    print(f"{'':<44}{'base':>12}{'tree':>12}{'tree/base':>11}{'limit':>8}")
    for name in (name for name in FITS if given.only in name):
        group, _, fit = name.partition("/")
        before, now = measure(name, workers, given.share)
        limit = GIVEN_UP.get(fit, SLOWER) if group == "given up" else ANY
        groups.setdefault(group, []).append(now / before)
        slow |= now > limit * before
        times = f"{1e3 * before:>9.2f} ms{1e3 * now:>9.2f} ms{now / before:>11.3f}{limit:>8.2f}"
        print(f"{name:<44}{times}{'  FAILED' * (now > limit * before)}", flush=True)
    for worker in workers:
        worker.process.communicate()
    for group, ratios in groups.items():
        mean, limit = float(np.exp(np.mean(np.log(ratios)))), MEANS.get(group, MEAN)
        slow |= mean > limit
        print(f"{group:<44}mean {mean:.3f}, limit {limit:.2f}{'  FAILED' * (mean > limit)}")
    print("failed" if slow else "passed")
    return int(slow or not groups)


if __name__ == "__main__":
    sys.exit(main())
