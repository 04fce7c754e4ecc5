"""PursuitClassifier on text against L1 logistic regression and abess, all with 50 features.

    python benchmarks/text_classifier.py --data DIR [--splits 5] [--abess-splits 1] [hitech la2 ...]

DIR holds the CLUTO collections (hitech, la2, ohscal, classic) as .mat, .arff, .svm or .npz. Counts are scaled
to unit rows; splits are 80/20 and stratified by class. Tasks: "binary", the first floor(K/2) classes against
the others, and "K-class" with 50 features shared by all classes (one-vs-rest problems for PursuitClassifier
and liblinear, multinomial for abess). C of liblinear is found by bisection so that 50 features are left; its
seconds are those of one fit at that C. abess gets no empty columns, and as many splits as asked for. Seconds
are processor time of one thread.
"""

import argparse
import warnings
from time import process_time

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from skpursuit import PursuitClassifier
from skpursuit.apps.studies.loaders import DataError, find_text

K = 50
NAMES = ("hitech", "la2", "ohscal", "classic")


def unit_rows(X):
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    return csr_array(diags_array(1 / np.where(norms > 0, norms, 1.0)) @ X)


def timed(model, X, y):
    began = process_time()
    with threadpool_limits(1):
        model.fit(X, y)
    return model, process_time() - began


def features(model):
    coefs = [part.coef_ for part in getattr(model, "estimators_", [model])]
    return np.count_nonzero(np.vstack(coefs).any(axis=0))


def lasso(X, y, binary):
    """L1 logistic regression with the C that leaves K features, or the nearest number below."""
    low, high, best = 1e-3, 1e3, None
    for _ in range(30):
        C = np.sqrt(low * high)
        single = LogisticRegression(l1_ratio=1.0, C=C, solver="liblinear", random_state=0)
        model, seconds = timed(single if binary else OneVsRestClassifier(single), X, y)
        count = features(model)
        low, high = (C, high) if count <= K else (low, C)
        if count <= K and (best is None or count >= best[0]):
            best = count, model, seconds
        if count == K:
            break
    return best[1:]


def abess(X, y, binary):
    from abess import LogisticRegression as Binary
    from abess import MultinomialRegression

    seen = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    model, seconds = timed((Binary if binary else MultinomialRegression)(support_size=K), X[:, seen], y)
    return (lambda Z, t: float(np.mean(model.predict(Z[:, seen]) == t))), seconds


def compare(X, y, binary, split, with_abess):
    train, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=split)
    ours, seconds = timed(PursuitClassifier(n_nonzero_coefs=K, multi_class="ovr_shared"), X[train], y[train])
    rows = {"PursuitClassifier": (ours.score(X[test], y[test]), seconds)}
    if not binary:
        joint, seconds = timed(
            PursuitClassifier(n_nonzero_coefs=K, multi_class="multinomial"), X[train], y[train]
        )
        rows["PursuitClassifier, multinomial"] = joint.score(X[test], y[test]), seconds
    model, seconds = lasso(X[train], y[train], binary)
    rows["L1, liblinear"] = model.score(X[test], y[test]), seconds
    if with_abess:
        score, seconds = abess(X[train], y[train], binary)
        rows["abess"] = score(X[test], y[test]), seconds
    return rows


def report(name, task, runs):
    for method in runs[0]:
        found = [run[method] for run in runs if method in run]
        accuracy, seconds = np.mean(found, axis=0)
        both = [(run[method][1], run["abess"][1]) for run in runs if method in run and "abess" in run]
        ratio = f"{np.mean([b / a for a, b in both]):8.1f}x faster than abess" if both else ""
        line = f"{name:<8} {task:<8} {method:<31} {100 * accuracy:6.2f} % {seconds:8.2f} s"
        print(f"{line} ({len(found)} splits){ratio if method != 'abess' else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--abess-splits", type=int, default=1)
    parser.add_argument("names", nargs="*", default=NAMES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # liblinear on its way to the right C
    try:
        collections = {c.name: c for c in find_text(given.data)}
    except DataError as error:
        raise SystemExit(f"skipped: {error}") from None
    for name in given.names:
        if name not in collections:
            print(f"{name}: skipped, no such collection in {given.data}")
            continue
        X, y = unit_rows(collections[name].X), collections[name].y
        for task, labels in (("binary", (y < (y.max() + 1) // 2).astype(int)), ("K-class", y)):
            runs = [
                compare(X, labels, task == "binary", split, split < given.abess_splits)
                for split in range(given.splits)
            ]
            report(name, task, runs)


if __name__ == "__main__":
    main()
