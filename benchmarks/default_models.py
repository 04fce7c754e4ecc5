"""Default models against L1 and abess: benchmarks/default_models.py PART [names ...] [--splits N] [--times].

Parts: regression, classes, text, noise. Every split draws or divides the data anew; the seeds are others than
those on which the constants of the defaults were chosen. L1 is LassoCV or LogisticRegressionCV (liblinear, 10
values of C, by log loss) on standardised features (text: TF-IDF), abess its default. Each line is a row of
docs/default_models.md: score, in brackets features, difference to the better rival with its standard error,
F of the support where the truth is known, and time as a multiple of L1's. `--times` leaves out abess: run it
on a quiet machine.
"""

from common import DATA, chain  # isort: skip  # before NumPy

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_limits

from skpursuit import PursuitClassifierCV, PursuitRegressorCV

FIRST_SEED = 2000
NOISE = ((200, 500), (100, 50), (500, 20), (100, 2000))


def blocks(rng, n, d):
    """Blocks of five columns: two that are equal, three that nearly are."""
    Z = np.repeat(rng.standard_normal((n, d // 5)), 5, axis=1)
    noisy = np.arange(d) % 5 > 1
    Z[:, noisy] = 0.9 * Z[:, noisy] + np.sqrt(1 - 0.81) * rng.standard_normal((n, noisy.sum()))
    return Z


def linear(n, d, true, snr, rho=0.0, make=chain):
    """Train and test rows of a linear model with some true columns."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        X = make(rng, n + 1000, d, rho) if make is chain else make(rng, n + 1000, d)
        step = 1 if make is chain else 5
        support = step * rng.choice(d // step, true, replace=False)
        f = X[:, support] @ (rng.choice([-1, 1], true) * rng.uniform(0.5, 1.5, true))
        y = f + rng.standard_normal(len(f)) * (np.sqrt(f.var() / snr) if true else 1.0)
        return X[:n], y[:n], X[n:], y[n:], support

    return draw


def divided(X, y, classes=False):
    """Train and test rows of real data."""

    def draw(seed):
        stratify = y if classes else None
        A, T, a, t = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=stratify)
        return A, a, T, t, None

    return draw


def squares():
    data = load_diabetes()
    X = PolynomialFeatures(2, include_bias=False).fit_transform(data.data / 0.0476)
    return divided(X[:, X.std(axis=0) > 1e-9], data.target)


def digits():
    X, y = load_digits(return_X_y=True)
    return divided(X[:, (X != 0).sum(axis=0) > 50], (y == 8).astype(int), True)


def two_classes(n, d, true, size, rho=0.0):
    """Classes with a linear logit of this standard deviation."""
    of = linear(n, d, true, np.inf, rho)

    def draw(seed):
        A, f, T, g, support = of(seed)
        rng = np.random.default_rng([seed, 1])
        scale = size / f.std()
        a, t = (rng.random(len(z)) < 1 / (1 + np.exp(-scale * z)) for z in (f, g))
        return A, a.astype(int), T, t.astype(int), support

    return draw


def genes(n, d, true, shift):
    """Few samples of many correlated features, some of which differ between the classes."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        factors = rng.standard_normal((20, d))
        y = (rng.random(n + 500) < 0.4).astype(int)
        X = 0.6 * rng.standard_normal((n + 500, 20)) @ factors + rng.standard_normal((n + 500, d))
        support = rng.choice(d, true, replace=False)
        X[:, support] += np.outer(y - 0.5, rng.uniform(0.3, 1.2, true) * shift)
        return X[:n], y[:n], X[n:], y[n:], support

    return draw


def text(collection, label):
    """One class of a collection against the others."""

    def draw(seed):
        z = np.load(DATA / "text" / f"{collection}.npz")
        X = sp.csr_array((z["data"], z["indices"], z["indptr"]), shape=z["shape"])
        A, a, T, t, _ = divided(X, (z["y"] == label).astype(int), True)(seed)
        words = TfidfTransformer().fit(A)
        return words.transform(A), a, words.transform(T), t, None

    return draw


SETS = {
    "regression": {
        "AR(.95) SNR 1": linear(200, 500, 10, 1, 0.95),
        "AR(.95) SNR 3": linear(200, 500, 10, 3, 0.95),
        "AR(.95) SNR 20": linear(200, 500, 10, 20, 0.95),
        "independent SNR .5": linear(200, 500, 10, 0.5),
        "independent SNR 1": linear(200, 500, 10, 1),
        "independent SNR 5": linear(200, 500, 10, 5),
        "dense, 100 true": linear(200, 500, 100, 1),
        "duplicates": linear(200, 500, 10, 3, make=blocks),
        "wide 100 x 5000": linear(100, 5000, 5, 3),
        "tall 20000 x 50": linear(20000, 50, 10, 1, 0.5),
        "noise 200 x 500": linear(200, 500, 0, 1),
        "diabetes": divided(*load_diabetes(return_X_y=True)),
        "diabetes, squares": squares(),
    },
    "classes": {
        "breast cancer": divided(*load_breast_cancer(return_X_y=True), True),
        "digits, 8 or not": digits(),
        "AR(.9) 420 x 400": two_classes(420, 400, 10, 2, 0.9),
        "independent 300 x 200": two_classes(300, 200, 5, 2),
        "weak 300 x 200": two_classes(300, 200, 10, 1),
        "genes 62 x 2000": genes(62, 2000, 100, 1.0),
        "genes 72 x 7000": genes(72, 7000, 300, 1.5),
        "tall 10000 x 50": two_classes(10000, 50, 10, 1, 0.5),
        "noise 300 x 400": two_classes(300, 400, 1, 1e-9),
    },
    "text": {
        "hitech": text("hitech", 1),
        "la2": text("la2", 1),
        "classic": text("classic", 2),
        "ohscal": text("ohscal", 3),
    },
}


def overlap(coef, support):
    """F of the columns with coefficients."""
    if support is None or len(support) < 2:
        return np.nan
    found = np.flatnonzero(np.ravel(coef))
    return 2 * len(np.intersect1d(found, support)) / (len(found) + len(support))


def rivals(part, times):
    """Names and makers of the models."""
    l1 = LassoCV(cv=5)
    if part != "regression":
        how = {"solver": "liblinear", "scoring": "neg_log_loss", "Cs": 10, "cv": 5}
        l1 = LogisticRegressionCV(l1_ratios=(1.0,), use_legacy_attributes=False, **how)
    models = {"L1": l1, "ours": (PursuitRegressorCV if part == "regression" else PursuitClassifierCV)()}
    if not times and part != "text":
        from abess import LinearRegression, LogisticRegression

        models["abess"] = LinearRegression() if part == "regression" else LogisticRegression()
    return models


def judged(part, model, T, t):
    """R2, or accuracy and log loss."""
    if part == "regression":
        return [r2_score(t, np.ravel(model.predict(T)))]
    p = model.predict_proba(T)
    p = p[:, 1] if np.ndim(p) == 2 else np.ravel(p)
    return [float(np.mean((p > 0.5) == t)), log_loss(t, np.clip(p, 1e-9, 1 - 1e-9))]


def compare(part, name, splits, times):
    found = {}
    for seed in range(FIRST_SEED, FIRST_SEED + splits):
        A, a, T, t, support = SETS[part][name](seed)
        scale = None if sp.issparse(A) else StandardScaler().fit(A)
        As, Ts = (A, T) if scale is None else (scale.transform(A), scale.transform(T))
        for who, model in rivals(part, times).items():
            own = who == "ours"
            start = time.perf_counter()
            model.fit(A if own else As, a)
            took = time.perf_counter() - start
            score = judged(part, model, T if own else Ts, t)
            line = [*score, np.count_nonzero(model.coef_), overlap(model.coef_, support), took]
            found.setdefault(who, []).append(line)
    report(name, {who: np.array(lines) for who, lines in found.items()})


def report(name, found):
    """One line of the table."""
    kinds, ours = found["ours"].shape[1] - 3, found["ours"]
    cells = [name]
    for who in ("L1", "abess", "ours"):
        if who in found:
            mean = found[who].mean(axis=0)
            scores = " / ".join(f"{x:.3f}" for x in mean[:kinds])
            known = "" if np.isnan(mean[-2]) else f", F {mean[-2]:.2f}"
            cells.append(f"{scores} ({mean[-3]:.0f}{known})")
        else:
            cells.append("")
    gaps = []
    for i, sign in list(enumerate((1, -1)))[:kinds]:
        others = [other for who, other in found.items() if who != "ours"]
        best = max(others, key=lambda other: sign * other[:, i].mean())
        gap = ours[:, i] - best[:, i]
        gaps.append(f"{gap.mean():+.3f} ± {gap.std() / np.sqrt(len(gap)):.3f}")
    ratio = np.median(ours[:, -1] / found["L1"][:, -1])
    print("| " + " | ".join([*cells, " / ".join(gaps), f"{ratio:.2f}"]) + " |", flush=True)


def noise(runs):
    """Share of the runs on pure noise that answer nothing."""
    for n, d in NOISE:
        none = np.zeros(2)
        for seed in range(FIRST_SEED, FIRST_SEED + runs):
            rng = np.random.default_rng(seed)
            X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
            models = PursuitRegressorCV().fit(X, y), PursuitClassifierCV().fit(X, rng.random(n) < 0.5)
            none += [model.n_nonzero_coefs_ == 0 for model in models]
        print(f"| {n} x {d} | {none[0] / runs:.0%} | {none[1] / runs:.0%} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=[*SETS, "noise"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--times", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    if given.part == "noise":
        noise(given.splits)
    else:
        for name in given.names or SETS[given.part]:
            compare(given.part, name, given.splits, given.times)
