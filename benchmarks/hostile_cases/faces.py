"""Programs of the estimators, the drop-in functions and the coder."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
from sklearn.model_selection import KFold

import skpursuit as sk

from . import checks, replays
from .programs import draw_k, draw_targets, prepared
from .reference import EPS, LD, Reference, Span, judge_choice, norm
from .selections import draw_selector, spell
from .tables import ARRAYS, Table

CLIPPED = "n_nonzero_coefs|max_nonzero_coefs"


def fit(table, estimator, y=None):
    """Fit with the weights; documented warnings are no failures."""
    table.notes["call"] = (
        f"{type(estimator).__name__}({spelled(estimator)}).fit(X, y), source {table.source}, "
        f"X {table.X.shape}, y {table.y.shape}, weights {table.weights is not None}"
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", CLIPPED, UserWarning)
        warnings.filterwarnings("ignore", "Orthogonal matching pursuit ended prematurely", RuntimeWarning)
        return estimator.fit(table.given, table.y if y is None else y, sample_weight=table.weights)


def spelled(estimator):
    given = estimator.get_params(deep=False).items()
    return ", ".join(f"{name}={spell(value)!r}" for name, value in given if value not in (None, False))


def drawn(rng, k, solvers, quadratic=True, max_iter=10):
    """Parameters of an estimator that have a solver and a selector by chance."""
    solver, selector = str(rng.choice(solvers)), draw_selector(rng, quadratic)[0]
    k, max_iter = None if solver == "fw" else k, None if solver == "omp" else max_iter
    given = {"solver": solver, "selector": selector, "n_nonzero_coefs": k, "max_iter": max_iter}
    return given | {"fit_intercept": bool(rng.random() < 0.7), "random_state": 0}


def predicts(table, model, coef, intercept):
    """Predictions are X w + b."""
    z = table.X.astype(LD) @ np.asarray(coef).astype(LD).T + np.asarray(intercept, LD)
    found = np.asarray(model).astype(LD)
    unit = float(np.finfo(np.asarray(coef).dtype).eps)
    reach = np.abs(table.X).astype(LD) @ np.abs(np.asarray(coef).astype(LD)).T + np.abs(intercept)
    if z.shape != found.shape:
        return [("predict", f"predictions have shape {found.shape}, not {z.shape}")]
    if (np.abs(z - found) > 16 * (table.X.shape[1] + 8) * unit * reach + 1e-300).any():
        return [("predict", f"predictions are {float(np.abs(z - found).max()):.3g} off X w + b")]
    return []


def finite(model):
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        return [("finite", "coefficients or intercept are not finite")]
    return []


def means_out(ref, coef, intercept):
    """The intercept leaves residuals of mean zero; `ref` is centred."""
    b = ref.y_mean - np.asarray(coef).astype(LD) @ ref.means
    unit = float(np.finfo(np.asarray(coef).dtype).eps) + 64 * EPS
    reach = ref.y_size + np.abs(np.asarray(coef).astype(LD)) @ ref.mean_sizes
    off = np.abs(np.asarray(intercept, LD) - b)
    if (off > 300 * unit * reach + 1e-300).any():
        return [("intercept", f"{intercept!r}, residuals of mean zero need {np.asarray(b, float)!r}")]
    return []


def as_run(model, ref, coef):
    """What an estimator tells, as a result of `minimize` in the view that the solver saw."""
    support, history = np.asarray(model.support_), model.history_
    status = model.status_
    chosen = [record.selected[-1] for record in history if record.selected]
    if status.name == "OPTIMAL":
        chosen = chosen[: len(history) - 1]
    dropped = [j for j in chosen if j not in support]
    w = np.asarray(coef).astype(LD)
    scale = ref.scale if w.ndim == 1 else ref.scale[:, None]
    return SimpleNamespace(
        support=support, history=history, status=status, dropped=np.array(dropped, int), coef=w * scale,
        dtype=np.asarray(coef).dtype, n_iter=model.n_iter_,
    )  # fmt: skip


def regressor(rng, table):
    """PursuitRegressor with squared loss."""
    draw_targets(rng, table)
    prepared(rng, table, sources=ARRAYS)
    k, d, several = draw_k(rng, table), table.X.shape[1], table.y.ndim == 2
    solvers = ["omp", "omp", "omp", "mp", "cosamp", "grasp", "omp" if several else "fw"]
    given = drawn(rng, k, solvers, max_iter=20)
    solver, intercept, scaled = given["solver"], given["fit_intercept"], bool(rng.random() < 0.4)
    model = sk.PursuitRegressor(scale="column" if scaled else "none", shared_support=several, **given)
    fit(table, model)
    coef = model.coef_ if table.y.ndim == 1 else np.asarray(model.coef_).T.reshape(d, -1)
    wrong = finite(model) + predicts(table, model.predict(table.given), model.coef_, model.intercept_)
    ref = Reference(table).centred(intercept, scaled)
    wrong = wrong or means_out(ref, model.coef_, model.intercept_)
    used = np.flatnonzero(coef.any(axis=1) if coef.ndim == 2 else coef)
    if solver != "fw" and not set(used.tolist()) <= set(np.asarray(model.support_).tolist()):
        wrong.append(("support", "coefficients off the support"))
    if solver != "fw" and len(used) > k:
        wrong.append(("sparsity", f"{len(used)} coefficients where {k} were allowed"))
    if solver == "omp" and not wrong and model.status_.name != "DIVERGED":
        wrong = replays.omp_squared(ref, as_run(model, ref, coef), sk.OMP(k), k)
    return wrong


def classifier(rng, table):
    y = np.nan_to_num(table.y)
    classes = int(rng.choice([2, 2, 3]))
    order = np.argsort(np.argsort(y, kind="stable"))
    labels = order * classes // len(y)
    names = np.array(["ant", "bee", "cat"]) if rng.random() < 0.5 else np.array([3, -1, 7])
    table.y = labels.astype(float)
    prepared(rng, table, sources=ARRAYS)
    rows = slice(None) if table.weights is None else table.weights > 0
    if len(np.unique(labels[rows])) < 2:
        table.notes["refuse"] = "one class"
    loss = str(rng.choice(["logistic", "logistic", "squared", "huber"]))
    given = drawn(rng, draw_k(rng, table), ["omp", "omp", "mp", "grasp", "fw"], loss == "squared")
    solver = given["solver"]
    multi = "ovr_shared" if rng.random() < 0.3 and solver != "fw" else "ovr"
    multi = "multinomial" if rng.random() < 0.3 and solver == "omp" and loss == "logistic" else multi
    model = sk.PursuitClassifier(loss=loss, multi_class=multi, scale="none", **given)
    fit(table, model, names[labels])
    wrong = finite(model)
    if wrong:
        return wrong
    z = model.decision_function(table.given)
    wrong += predicts(table, z.reshape(len(z), -1), model.coef_, model.intercept_)
    if not set(model.predict(table.given)) <= set(model.classes_):
        wrong.append(("predict", "labels that are no classes"))
    if loss == "logistic":
        p = model.predict_proba(table.given)
        if not ((p >= 0).all() and np.allclose(p.sum(axis=1), 1.0)):
            wrong.append(("probability", "probabilities that do not sum to one"))
    if solver == "omp" and loss == "logistic" and len(model.classes_) == 2 and not table.extreme:
        wrong += classified(table, model, names[labels])
    return wrong


def classified(table, model, labels):
    """The fit of a binary logistic model is stationary in its coefficients."""
    status = model.status_ if not isinstance(model.status_, list) else model.status_[0]
    support = np.flatnonzero(model.coef_[0])
    X = np.column_stack([table.X, np.ones(len(labels))])
    y = np.where(labels == model.classes_[1], 1.0, -1.0)
    ref = Reference(Table(X, y, weights=table.weights), "logistic")
    if not status.ok or replays.condition(ref.X[:, [*support, -1]]) > 1e5:
        return []
    coef = np.append(model.coef_[0], model.intercept_[0])
    return replays.stationary(ref, support, coef, 0.03)


def cross_validated(rng, table):
    """PursuitRegressorCV: the choice, the path and one score."""
    prepared(rng, table, sources=ARRAYS)
    n = len(table.y)
    if n < 9:
        table.weights = None
    if table.weights is not None:
        table.weights = table.weights + 0.25  # every fold needs rows that count
    criterion = None if n >= 9 else str(rng.choice(["aic", "bic", "ebic"]))
    solver = "auto" if criterion is None and rng.random() < 0.5 else "omp"
    selector, _ = draw_selector(rng)
    model = sk.PursuitRegressorCV(
        solver=solver, selector="auto" if solver == "auto" else selector,
        max_nonzero_coefs=draw_k(rng, table), scoring=criterion, null_test=False, random_state=0,
        cv=None if criterion else KFold(3, shuffle=True, random_state=0),
        fit_intercept=bool(rng.random() < 0.7), scale="none" if rng.random() < 0.7 else "column",
    )  # fmt: skip
    fit(table, model)
    wrong = finite(model) + predicts(table, model.predict(table.given), model.coef_, model.intercept_)
    means = model.scores_.mean(axis=0)
    if np.isnan(means).any():
        return [*wrong, ("finite", f"scores {model.scores_.tolist()}")]
    paths = np.zeros((len(means) + 1, table.X.shape[1]))  # the last one: no column at all
    paths[:-1, model.path_features_] = model.coef_path_
    here = [i for i, line in enumerate(paths) if np.allclose(line, model.coef_, rtol=1e-5, atol=0)]
    if not here:
        return [*wrong, ("path", "the model is not one of the path, nor empty")]
    scores = np.append(means, -np.inf)[here]
    alike = table.weights is None and n % 3 == 0 and np.isfinite(means).all()  # folds of the same weight
    # The last model of a path that ended early stands for all larger sizes, which folds may have had.
    alike = alike and solver == "omp"  # "auto" gives a little for fewer features
    if alike and here[0] < len(means) - 1 and scores.max() < means.max() - 1e-9 * np.abs(means).max():
        wrong.append(("chosen", f"a score of {scores.max():.6g}, where {means.max():.6g} was to be had"))
    return wrong


def drop_in(rng, table):
    """OrthogonalMatchingPursuit and orthogonal_mp."""
    prepared(rng, table, sources=ARRAYS)
    draw_targets(rng, table, 0.3)
    k = draw_k(rng, table)
    precompute = [True, False, "auto"][int(rng.integers(3))]
    intercept = bool(rng.random() < 0.6)
    model = sk.OrthogonalMatchingPursuit(n_nonzero_coefs=k, fit_intercept=intercept, precompute=precompute)
    fit(table, model)
    coefs = np.atleast_2d(model.coef_)
    wrong = finite(model)
    if wrong:
        return wrong
    wrong += predicts(table, model.predict(table.given), model.coef_, model.intercept_)
    ref = Reference(table).centred(intercept)
    wrong += means_out(ref, model.coef_, model.intercept_) if intercept else []
    targets = table.y.reshape(len(table.y), -1).T
    for coef, y in zip(coefs, targets):
        one = Reference(Table(table.X, y, weights=table.weights)).centred(intercept)
        unit = float(np.finfo(table.given.dtype).eps)
        wrong = wrong or least_squares(one, coef, k, 0.0 if precompute is False else unit)
    return wrong


def least_squares(ref, coef, k, gram=0.0):
    """The coefficients are the least-squares fit on their own support.

    `gram` is the rounding unit of a Gram matrix that they come from, and which has the digits of X.
    """
    support = np.flatnonzero(coef)
    if len(support) > k:
        return [("sparsity", f"{len(support)} coefficients where {k} were allowed")]
    span = Span(ref.n)
    for j in support:
        span.add(ref.A[:, j])
    z, w = span.fit(ref.b)
    if len(w) < len(support):
        return [("dependence", "dependent columns in the model")]
    slack = replays.fitted(ref, span, support)[1]
    condition = span.condition()
    if len(support) and (ref.noise[support] > 1e-2 * ref.sizes[support] / condition).any():
        return []
    if gram:  # normal equations, and centring after products
        offset = (np.abs(ref.means[support]) * norm(ref.root) / ref.sizes[support]).max(initial=0)
        far = (ref.noise[support] / ref.sizes[support]).max(initial=0) + gram * (1 + offset**2)
        slack = slack * 10 * condition + 8 * norm(ref.b) * condition**2 * far
    return checks.told_predictions(ref, SimpleNamespace(coef=coef), z, slack, "the best fit")


def coder(rng, table):
    """PursuitCoder: atoms are the columns of X, signals are y and others."""
    if table.extreme:
        table.notes["may refuse"] = True
    n, d = table.X.shape
    k = 1 if rng.random() < 0.4 else draw_k(rng, table)
    solver = "omp" if rng.random() < 0.8 else "cosamp"
    noise = rng.standard_normal((2, n)) * max(1e-90, np.abs(table.y).max(initial=0.0))
    signals = np.vstack([table.y[None], noise, np.zeros(n)])
    table.notes["call"] = f"PursuitCoder(X.T, {k}, {solver!r}).transform(signals), X {table.X.shape}"
    codes = sk.PursuitCoder(np.ascontiguousarray(table.X.T), k, solver, n_jobs=1).transform(signals).toarray()
    if codes.shape != (4, d) or not np.isfinite(codes).all():
        return [("finite", f"codes of shape {codes.shape}, finite: {np.isfinite(codes).all()}")]
    wrong = []
    for signal, code in zip(signals, codes):
        ref = Reference(Table(table.X, signal))
        ref.centred(False)
        if solver == "omp":
            wrong = wrong or least_squares(ref, code, k)
        elif np.count_nonzero(code) > k:
            wrong = wrong or [("sparsity", f"{np.count_nonzero(code)} weights where {k} were allowed")]
        if k == 1 and solver == "omp" and code.any():
            # Products that are equal up to rounding count as equal, and the lowest index wins.
            extra = 64 * (n + 16) * EPS * ref.sizes * norm(ref.b)
            alive = np.flatnonzero(ref.sizes > 0)
            wrong = wrong or judge_choice(ref, -ref.b, np.flatnonzero(code), alive, extra=extra)
    return wrong


PROGRAMS = {regressor: 9, classifier: 7, cross_validated: 2}
PROGRAMS |= {drop_in: 7, coder: 3}
