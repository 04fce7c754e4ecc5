"""Against other libraries: scikit-learn, SPAMS and abess."""

from __future__ import annotations

from functools import partial

import numpy as np
from common import DATA, Race, collection, documents, least_penalty, rivals, signal, sized, unit_rows
from sklearn import linear_model
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier

import skpursuit

LIBRARIES = {"scikit-learn": linear_model, "skpursuit": skpursuit}


# -- the same program with one import changed: functions of a library, by name ------------------------------


def user_data(n, d, k=10, order="C"):
    X, y, _ = signal(n, d, k, snr=10.0)
    return np.asarray(X + 0.01, order=order), y


def one_fit(n, d, k, order="C"):
    X, y = user_data(n, d, min(k, 20), order)
    return lambda library: library.OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y)


def cross_validated(n, d, most=None):
    X, y = user_data(n, d)
    return lambda library: library.OrthogonalMatchingPursuitCV(max_iter=most).fit(X, y)


def many_fits(n, d, k):
    data = [user_data(n, d, 5) for _ in range(50)]
    return lambda library: [library.OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(X, y) for X, y in data]


def gram_targets():
    atoms, signals = user_data(256, 512)[0], np.random.default_rng(0).standard_normal((256, 200))
    G, DY = atoms.T @ atoms, atoms.T @ signals
    return lambda library: library.orthogonal_mp_gram(G, DY, n_nonzero_coefs=10)


SHAPES = [(5000, 10_000, 50), (2000, 4000, 50), (100, 4000, 90), (200, 5000, 50), (200, 5000, 150),
          (1000, 500, 50), (1000, 500, 50, "F"), (100_000, 50, 5), (100_000, 50, 25)]  # fmt: skip
PROGRAMS = {
    **{f"OMP {' '.join(map(str, shape))}": (one_fit, *shape) for shape in SHAPES},
    **{f"OMPCV {n} {d}": (cross_validated, n, d)
       for n, d in ((100_000, 50), (300_000, 60), (100, 5000), (200, 5000), (50, 1000))},
    **{f"OMPCV {n} {d}, up to 50": (cross_validated, n, d, 50) for n, d in ((1000, 500), (200, 5000))},
    "50 fits 100 20 5": (many_fits, 100, 20, 5),
    "50 fits 50 200 10": (many_fits, 50, 200, 10),
    "orthogonal_mp_gram, 200 targets": (gram_targets,),
}  # fmt: skip


def drop_in(o):
    for name, (program, *given) in PROGRAMS.items():

        def make(seed, program=program, given=given):
            run = program(*given)
            return {which: lambda library=library: run(library) for which, library in LIBRARIES.items()}, None

        if not o.quick or name in ("OMP 1000 500 50", "50 fits 100 20 5"):
            yield Race(name, make, elapsed=True)


def n_features(model):
    return np.count_nonzero(np.vstack([m.coef_ for m in getattr(model, "estimators_", [model])]).any(axis=0))


def lasso(X, y, k):
    """L1 logistic regression with the C, found by bisection, that leaves k features or the nearest below."""

    def model(penalty):
        C = 1e-3 / penalty
        one = linear_model.LogisticRegression(l1_ratio=1.0, C=C, solver="liblinear", random_state=0)
        return one if y.max() == 1 else OneVsRestClassifier(one)

    return model(least_penalty(lambda penalty: n_features(model(penalty).fit(X, y)), k, -6.0, 14))


def text_fits(X, y, k, split):
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=split)
    A, a, two = X[train], y[train], y.max() == 1
    seen = np.flatnonzero(np.bincount(A.indices, minlength=A.shape[1]))  # abess takes no empty columns

    def abess():
        from abess import LogisticRegression, MultinomialRegression

        model = (LogisticRegression if two else MultinomialRegression)(support_size=k)
        return lambda: model.fit(A[:, seen], a)

    models = {"L1": lasso(A, a, k)}
    for kind in ("ovr_shared",) if two else ("ovr_shared", "multinomial"):
        models[f"PursuitClassifier, {kind}"] = skpursuit.PursuitClassifier(
            n_nonzero_coefs=k, multi_class=kind, scale="none"
        )
    fits = {name: lambda model=model: model.fit(A, a) for name, model in models.items()}
    return fits | rivals({"abess": abess}), (X[test], y[test], seen)


def text_figures(name, results, facts):
    (T, t, seen), model = facts, results[name]
    T = T[:, seen] if model.n_features_in_ == len(seen) else T
    return {"accuracy": np.mean(model.predict(T) == t), "features": n_features(model)}


def text(o):
    """Collections below the folder SKPURSUIT_DATA, or made ones; each seed is a split, 80/20 by class.

    Tasks: the first half of the classes against the others, and all classes with features shared by them.
    """
    names = [] if o.quick else sorted(path.stem for path in (DATA / "text").glob("*.npz"))
    found = {name: collection(name) for name in names}
    found = {name: (unit_rows(X), np.unique(y, return_inverse=True)[1]) for name, (X, y) in found.items()}
    found = found or {"made": documents(4, *sized(o.quick, 2000, 10_000))}
    for name, (X, y) in found.items():
        half = (y < (y.max() + 1) // 2).astype(int)
        for task, labels in ((f"{name}, two classes", half), (f"{name}, all classes", y)):
            fits = partial(text_fits, X, labels, 5 if o.quick else 50)
            yield Race(task, fits, ("abess",), text_figures)
