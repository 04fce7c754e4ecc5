"""Default models against L1 and abess: the rows of docs/default_models.md.

Every split draws or divides the data anew; the seeds are others than those on which the constants of the
defaults were chosen. L1 is LassoCV or LogisticRegressionCV (liblinear, 10 values of C, by log loss) on
standardised features (text: TF-IDF), for several classes multinomial (saga, 8 values of C, 3 folds). abess is
its default.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from common import Race, chain, collection, rivals
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skpursuit import PursuitClassifierCV, PursuitRegressorCV

FIRST_SEED = 2000
NOISE = ((200, 500), (100, 50), (500, 20), (100, 2000))


def blocks(rng, n, d, rho):
    """Blocks of five columns: two that are equal, three whose correlation with them is rho."""
    Z = np.repeat(rng.standard_normal((n, d // 5)), 5, axis=1)
    noisy = np.arange(d) % 5 > 1
    Z[:, noisy] = rho * Z[:, noisy] + np.sqrt(1 - rho**2) * rng.standard_normal((n, noisy.sum()))
    return Z


def linear(n, d, true, snr, rho=0.0, make=chain, step=1):
    """Train and test rows of a linear model with some true columns, among every `step`-th."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        X = make(rng, n + 1000, d, rho)
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


def text(name, label=None):
    """One class of a collection against the others, or all classes."""

    def draw(seed):
        X, y = collection(name)
        A, a, T, t, _ = divided(X, y - 1 if label is None else (y == label).astype(int), True)(seed)
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
        "duplicates": linear(200, 500, 10, 3, 0.9, blocks, 5),
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
    "multinomial": {
        "iris": divided(*load_iris(return_X_y=True), True),
        "wine": divided(*load_wine(return_X_y=True), True),
        "all digits": divided(*load_digits(return_X_y=True), True),
        "la2, all classes": text("la2"),
    },
}


def fits(kind, draw, seed):
    """The rivals on scaled features, ours on those that were given; and the test rows."""
    A, a, T, t, support = draw(FIRST_SEED + seed)
    scale = None if sp.issparse(A) else StandardScaler().fit(A)
    scaled, ours = A if scale is None else scale.transform(A), PursuitRegressorCV()
    l1 = LassoCV(cv=5)
    if kind != "regression":
        how = {"solver": "liblinear", "Cs": 10, "cv": 5}
        if kind == "multinomial":
            how = {"solver": "saga", "Cs": 8, "cv": 3, "tol": 1e-3, "max_iter": 300}
        l1 = LogisticRegressionCV(
            l1_ratios=(1.0,), use_legacy_attributes=False, scoring="neg_log_loss", **how
        )
        ours = PursuitClassifierCV()

    def abess():
        from abess import LinearRegression, LogisticRegression

        model = LinearRegression() if kind == "regression" else LogisticRegression()
        return lambda: model.fit(scaled, a)

    found = {"L1": lambda: l1.fit(scaled, a), "ours": lambda: ours.fit(A, a)}
    facts = kind, T, T if scale is None else scale.transform(T), t, support
    return found | (rivals({"abess": abess}) if kind in ("regression", "classes") else {}), facts


def scores(model, kind, T, t):
    """R2, or accuracy and log loss."""
    if kind == "regression":
        return {"R2": r2_score(t, np.ravel(model.predict(T)))}
    p = model.predict_proba(T)
    p = p if np.ndim(p) == 2 else np.column_stack([1 - p, p])
    return {"accuracy": np.mean(p.argmax(axis=1) == t), "log loss": log_loss(t, np.clip(p, 1e-9, 1 - 1e-9))}


def figures(name, results, facts):
    """Scores, number of features, F of the support where the truth is known, and what ours has more."""
    kind, T, scaled, t, support = facts
    told = scores(results[name], kind, T if name == "ours" else scaled, t)
    chosen = np.flatnonzero(np.atleast_2d(results[name].coef_).any(axis=0))
    told["features"] = len(chosen)
    if support is not None and len(support) > 1:
        told["F"] = 2 * len(np.intersect1d(chosen, support)) / (len(chosen) + len(support))
    if name == "ours":
        for other in [other for other in results if other != "ours"]:
            theirs = scores(results[other], kind, scaled, t)
            told |= {f"{key} - {other}'s": told[key] - theirs[key] for key in theirs}
    return told


def noise(n, d, seed):
    rng = np.random.default_rng(FIRST_SEED + seed)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    labels = rng.random(n) < 0.5
    return {
        "regression": lambda: PursuitRegressorCV().fit(X, y),
        "classes": lambda: PursuitClassifierCV().fit(X, labels),
    }, None


def defaults(o):
    for kind, sets in SETS.items():
        for name, draw in sets.items():
            yield Race(f"{kind}, {name}", partial(fits, kind, draw), ("L1",), figures)
    for n, d in NOISE:
        nothing = lambda name, results, _: {"nothing": results[name].n_nonzero_coefs_ == 0}  # noqa: E731
        yield Race(f"pure noise, {n} x {d}", partial(noise, n, d), figures=nothing)
