"""Choosing a model by cross-validation or a criterion: what both cross-validated pursuit estimators share.

Models of all sizes, ridges and solvers are judged on the same folds (`choice/`), by their loss or a scorer,
and the chosen one is fitted on all samples. An information criterion needs no folds: it judges the models of
one run on all samples.

A scorer judges a fitted model of each size on the test rows. One that scikit-learn knows by name looks at
nothing but predictions, so it is handed those of all sizes, which come from one gathering of columns. Any
other scorer may look at X and at the model, so it gets the test rows of X as they were given to `fit`, and a
copy of the estimator with the coefficients of that size, which predicts what it is asked to.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.special import gammaln
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data.sources import is_out_of_core
from skpursuit.estimators.base import CheckedSamples, PursuitBase, Subproblems, monitored, select_rows
from skpursuit.estimators.cross_validation import Folds, SplitterRoutingMixin, effective_rows
from skpursuit.estimators.linear_fit import LinearFit, average_fits, fitted_path, predict_rows
from skpursuit.estimators.model_search import search as contest
from skpursuit.estimators.model_search.classifier_search import ClassArena
from skpursuit.estimators.model_search.permutation_test import permutation_p_value
from skpursuit.estimators.model_search.search import (
    PATH_PATIENCE,
    Candidate,
    CandidateSearch,
    ScaledData,
    best_candidate,
)
from skpursuit.estimators.model_search.solver_search import SolverArena
from skpursuit.estimators.model_search.squared_search import SquaredArena
from skpursuit.estimators.parameter_rules import PATH_SOLVERS, check_parameters, criterion_of
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import TINY_POSITIVE
from skpursuit.numerics.threads import respect_n_jobs
from skpursuit.parameters import seed_of
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.problem.losses import Loss
from skpursuit.problem.state import Status
from skpursuit.progress import current_monitor
from skpursuit.selectors import Selector

NULL_T = 1.6  # t against the best constant that is asked for where X is not a plain array in memory
NULL_P, NULL_T_CERTAIN = (
    0.08,
    3.0,
)  # chance up to which a relation is believed in, and t that needs no test of it
NULL_P_ROWS = (
    9.0  # divided by the rows it is that chance where it is larger: few rows hide most relations there are
)
HeldOutPredictions = list[
    tuple[Any, list[Any]]
]  # for each fold the targets, and what each model of a path predicts
MIN_ROWS_PER_COLUMN, MIN_GRAM_ENTRIES = (
    50,
    2e6,
)  # rows per column and entries of X from which "omp" takes Gram matrices of the folds


@dataclass(frozen=True)
class SearchResult:
    """What is known of a model that no single run has made."""

    n_iter: int
    entries_read: int
    status: Status = Status.COMPLETE
    history: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class SearchData:
    """Training data, one target per problem; X is as a scorer is shown it, and so are labels."""

    X: Any
    samples: CheckedSamples
    labels: Any
    problems: Subproblems
    splits: list[tuple[Indices, Indices]]


@dataclass(kw_only=True, eq=False, repr=False)
class PathCVMixin(SplitterRoutingMixin, PursuitBase):
    """Fits paths of models on each fold, or only on all data, and keeps the best model."""

    solver: Any = "auto"
    selector: str | Selector = "auto"
    max_nonzero_coefs: int | None = None
    cv: Any = None
    scoring: Any = None
    fit_intercept: bool = True
    scale: str = "auto"
    ridges: Any = "auto"
    selection: str = "best"
    null_test: bool = True
    n_jobs: int | None = None
    random_state: Any = None

    @monitored
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Choose the number of coefficients, and what else is to be chosen, and fit it on all samples.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, or the class labels of a classifier.
        sample_weight : array-like of shape (n_samples,), optional
        **fit_params : dict
            For the splitter; needs scikit-learn's metadata routing.
        """
        check_parameters(self, solver=PATH_SOLVERS)
        samples = self._validate(X, y, sample_weight)
        given = self.solver if isinstance(self.solver, (list, tuple)) else [self.solver]
        # "auto" stands for "omp" where the contest of `choice/` cannot be held
        solvers = ["omp" if isinstance(one, str) and one == "auto" else one for one in given]
        seed = seed_of(self.random_state)
        problems = self._subproblems(samples.y, random_state=seed, solver=solvers[0])
        loss = problems.config.loss.resolved(np.column_stack(problems.targets))
        problems = problems._replace(config=replace(problems.config, loss=loss))
        labels, splits = self._decode_targets(samples.y), []
        if not criterion_of(vars(self)):
            splits = self._drawn_splits(labels, samples, fit_params)
        shown = X if samples.X is None or not is_out_of_core(X) else samples.X
        data = SearchData(shown, samples, labels, problems, splits)
        with respect_n_jobs(self.n_jobs) if self.n_jobs else nullcontext():
            if splits:
                self._search(data, self._make_search(data, solvers))
            else:
                self._select_by_criterion(data)
        return self

    def _limit(self, samples: CheckedSamples) -> int:
        """The largest number of coefficients that solvers by name try."""
        d, weights = samples.base.shape[1], samples.weights
        if self.max_nonzero_coefs is None:
            n = samples.base.shape[0] if weights is None else int(effective_rows(weights))
            return sparsity.for_pursuit_cv(n, d, folds=not criterion_of(vars(self)))
        return sparsity.clip_to_available("max_nonzero_coefs", self.max_nonzero_coefs, d)

    def _drawn_splits(self, labels: Any, samples: CheckedSamples, params: dict[str, Any]) -> list[Any]:
        """Splits of `cv`; where it is a number of folds, these are drawn at random, twice for few samples.

        The folds of solvers by name are those of scikit-learn, which draws nothing.
        """
        find = partial(self._splits, labels, samples.kept, params, is_classifier(self))
        if not (self._is_auto() and (self.cv is None or isinstance(self.cv, Integral))):
            return find()
        rows = len(labels) if samples.weights is None else effective_rows(samples.weights)
        number, repeats = self._default_folds(rows, labels)
        number = int(self.cv or number)
        kind = StratifiedKFold if is_classifier(self) else KFold
        seed = 0 if self.random_state is None else seed_of(self.random_state)
        seeds = [(seed + r) % 2**32 for r in range(repeats)]
        splitters = [kind(number, shuffle=True, random_state=one) for one in seeds]
        return [split for splitter in splitters for split in find(splitter)]

    def _default_folds(self, rows: float, labels: Any) -> tuple[int, int]:
        """Folds, and how often they are drawn: with few samples one drawing is a matter of luck."""
        return 5, 2 if rows <= 1000 else 1

    def _beats_null(
        self, data: SearchData, arena: CandidateSearch, null: Candidate, t: float
    ) -> tuple[bool, float]:
        """Whether a model that is t standard errors better than nothing is believed; the chance of luck."""
        if self.scoring is not None or not self.null_test:
            return True, np.nan
        samples, (config, targets, _) = data.samples, data.problems
        if samples.X is None:
            return t >= NULL_T, np.nan
        if not 0 < t < NULL_T_CERTAIN:
            return t > 0, np.nan
        constants = [
            average_fits(list(fits)).intercept for fits in zip(*arena.fold_fits(null.evaluation.model))
        ]
        z = [np.broadcast_to(b, (len(y), *np.shape(b))).copy() for y, b in zip(targets, constants)]
        slopes = np.column_stack([config.loss.residual(*pair) for pair in zip(targets, z)])
        scaled = ScaledData.of(samples, targets[0], "column", self.fit_intercept)
        chance = permutation_p_value(scaled, arena.folds.weights[:, None] * slopes, arena.folds.sampled_rows)
        return chance <= max(NULL_P, NULL_P_ROWS / arena.folds.n_effective), chance

    def _is_auto(self) -> bool:
        return isinstance(self.solver, str) and self.solver == "auto"

    def _make_search(self, data: SearchData, solvers: list[Any]) -> CandidateSearch:
        """Where the models compete: on Gram matrices by default, else by runs of the solvers."""
        samples, (config, targets, _) = data.samples, data.problems
        folds = Folds.of(data.splits, samples.base.shape[0], samples.weights)
        plain = isinstance(self.selector, str) and self.selector == "auto"
        competes = self._is_auto() and plain and (config.loss.quadratic or config.loss.gives_probability)
        if competes and samples.X is None:
            warnings.warn(
                'X is not a plain array in memory, so solver="auto" is "omp": other families of models need '
                'one; name solver="omp" and this is not said',
                UserWarning,
                stacklevel=4,
            )
        if competes and samples.X is not None:
            most = None if self.max_nonzero_coefs is None else self._limit(samples)
            scaled = ScaledData.of(samples, targets[0], config.scale, self.fit_intercept)
            if config.loss.quadratic and len(targets) == 1:
                return SquaredArena(scaled, folds, np.ndim(targets[0]) == 1, most)
            if config.loss.gives_probability:
                return ClassArena(scaled, config.loss, targets, folds, most)
        configs = [replace(config, solver=solver) for solver in solvers]
        grams, most = None, self._limit(samples)
        n, d = samples.base.shape
        if (
            plain
            and config.loss.quadratic
            and samples.X is not None
            and n >= MIN_ROWS_PER_COLUMN * d
            and n * d >= MIN_GRAM_ENTRIES
        ):
            scaled = ScaledData.of(samples, targets[0], config.scale, self.fit_intercept)
            grams = SquaredArena(scaled, folds, np.ndim(targets[0]) == 1, most)
        ours = self.max_nonzero_coefs is None and most < samples.base.shape[1]
        patience = (
            PATH_PATIENCE if self.scoring is None else most
        )  # where a scorer judges, all sizes are shown
        return SolverArena(samples.base, configs, targets, folds, most, ours, self.n_jobs, grams, patience)

    def _search(self, data: SearchData, arena: CandidateSearch) -> None:
        watch, paths = current_monitor(), []
        for path in arena.candidate_paths(self._ridges()):
            paths.append(path)
            if watch.out_of_time():
                break
        scorer = None if self.scoring is None else check_scoring(self, scoring=self.scoring)
        for path in paths:
            self._score(data, arena, path, scorer)
        means = contest.average_families(paths)
        if means:
            self._score(data, arena, means, scorer)
            paths.append(means)
        candidates = [candidate for path in paths for candidate in path]
        best = best_candidate(candidates)
        if not np.isfinite(best.compared_loss):
            raise ValueError(
                "no number of coefficients has a finite score; use another scoring, or divide y by its "
                "largest entry"
            )
        nothing = Candidate(arena, "null", 0.0, 0, arena.null_model())
        t_null = best.t_statistic_against(nothing)
        believed, p_null = self._beats_null(data, arena, nothing, t_null)
        chosen, t_other = contest.choose_candidate(paths, self.selection) if believed else (None, np.nan)
        path = contest.path_containing(paths, chosen or best)
        watch.set_message("the chosen model on all samples")
        with watch.time_share(None):
            fits = contest.refit_path(path)
        self._keep_choice(chosen or nothing, path, fits, data)
        self.choice_ |= {"t_runner_up": float(t_other), "t_null": float(t_null), "p_null": p_null}
        self._keep_scales(data.samples)
        self._keep_losses(candidates)
        compared = path[: len(fits)] if chosen else [nothing]
        place = path.index(chosen) if chosen else 0
        self._on_chosen(place, lambda: self._held_out(data, arena, compared))

    def _ridges(self) -> Any:
        """The word "auto", or the ridges that compete as a list."""
        return self.ridges if isinstance(self.ridges, str) else np.ravel(self.ridges).tolist()

    def _on_chosen(self, place: int, held_out: Callable[[], HeldOutPredictions]) -> None:
        """For classes made of this one: the place of the choice on its path, and predictions of the folds."""

    def _held_out(
        self, data: SearchData, arena: CandidateSearch, path: list[Candidate]
    ) -> HeldOutPredictions:
        """What the models of a path predict for rows that they have not seen, of classes the chances."""
        models = [arena.fold_fits(one.evaluation.model) for one in path]
        found: HeldOutPredictions = []
        for f, (_, test) in enumerate(data.splits):
            known = self._with_predictions(data, [fold[f] for fold in models], test)
            method = "predict_proba" if is_classifier(self) else "predict"
            found.append((data.labels[test], [np.array(getattr(one, method)(None)) for one in known]))
        return found

    def _keep_choice(
        self, chosen: Candidate, path: list[Candidate], fits: list[list[LinearFit]], data: SearchData
    ) -> None:
        """Keep the chosen model of all samples, and the path it stands on."""
        arena = chosen.search
        if chosen not in path:
            final = [average_fits(list(fits)) for fits in zip(*arena.fold_fits(chosen.evaluation.model))]
        else:
            place = min(path.index(chosen), len(fits) - 1)
            final = fits[place] = [fit.finished() for fit in fits[place]]
        result = SearchResult(chosen.size, arena.entries_read)
        final = [fit if fit.result is not None else fit._replace(result=result) for fit in final]
        self._set_fitted(final, data.samples.base, data.problems.joint)
        self.n_nonzero_coefs_ = max(len(fit.columns) for fit in final)
        self.choice_ = {"family": chosen.family, "ridge": chosen.ridge, "k": self.n_nonzero_coefs_}
        tests = arena.folds.test.sum(axis=1)
        self.scores_ = np.stack([_fold_scores(one, tests) for one in path[: len(fits)]], axis=1)
        self._keep_path(fits, data.problems.joint)
        if chosen in path and arena.is_default_max and self.n_nonzero_coefs_ >= arena.max_size:
            warnings.warn(
                f"the best number of coefficients, {arena.max_size}, is the largest that was tried; raise "
                "max_nonzero_coefs to try more",
                RuntimeWarning,
                stacklevel=4,
            )

    def _keep_scales(self, samples: CheckedSamples) -> None:
        """Standard deviations of the features of the path."""
        survey = samples.base.survey(samples.weights)
        self.path_scales_ = survey.spreads(survey.means)[self.path_features_]

    def _keep_losses(self, candidates: list[Candidate]) -> None:
        """A table of all models that competed."""
        self.cv_losses_ = {
            "family": np.array([one.family for one in candidates]),
            "ridge": np.array([one.ridge for one in candidates]),
            "size": np.array([one.size for one in candidates]),
            "n_features": np.array([one.n_features for one in candidates]),
            "loss": np.array([one.held_out_loss for one in candidates]),
        }

    def _keep_path(self, fits: list[list[LinearFit]], joint: bool) -> None:
        """Coefficients of all models of the path, one line for each."""
        used = [fit.columns for each in fits for fit in each]
        self.path_features_ = np.unique(np.concatenate(used)).astype(np.intp)
        self.path_sizes_ = np.array([max(len(fit.columns) for fit in each) for each in fits])
        tables = []
        for p, first in enumerate(fits[0]):
            table = np.zeros((len(fits), *first.coef.shape[1:], len(self.path_features_)))
            for line, each in zip(table, fits):
                line[..., np.searchsorted(self.path_features_, each[p].columns)] = each[p].coef.T
            tables.append(table)
        self.coef_path_ = tables[0] if joint else np.stack(tables, axis=1)

    def _score(self, data: SearchData, arena: CandidateSearch, path: list[Candidate], scorer: Any) -> None:
        """Have a scorer, if there is one, judge the models of a path, fold by fold."""
        if scorer is None:
            return
        models = [arena.fold_fits(candidate.evaluation.model) for candidate in path]
        scores = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
            delayed(self._scores_of_fold)(data, [folds[f] for folds in models], test, scorer)
            for f, (_, test) in enumerate(data.splits)
        )
        for candidate, found in zip(path, zip(*scores)):
            candidate.scores = np.array(found)

    def _scores_of_fold(
        self, data: SearchData, models: list[list[LinearFit]], test: Indices, scorer: Any
    ) -> list[float]:
        """Scores on the test part of models of one fold, each a list of fits for all problems."""
        X = None
        if isinstance(self.scoring, str):  # such a scorer looks at nothing but predictions
            fitted = self._with_predictions(data, models, test)
        else:
            X = select_rows(data.X, np.flatnonzero(data.samples.kept)[test])  # as they were given
            fitted = (self._fitted(fits, data) for fits in models)
        weights = None if data.samples.weights is None else data.samples.weights[test]
        given = {"sample_weight": weights} if weights is not None and _takes_weights(scorer) else {}
        return [float(scorer(model, X, data.labels[test], **given)) for model in fitted]

    def _with_predictions(
        self, data: SearchData, models: list[list[LinearFit]], test: Indices
    ) -> Iterator[Any]:
        """Copies of this estimator that know what each of the models predicts for the test part."""
        base = data.samples.base.for_run(private=True)
        tables = [predict_rows(base, list(fits), test) for fits in zip(*models)]
        for fits, *z in zip(models, *tables):
            yield _predicting(self._fitted(fits, data), list(z))

    def _fitted(self, fits: list[LinearFit], data: SearchData) -> Any:
        """A copy of this estimator with these coefficients."""
        model: Any = copy.copy(self)
        result = SearchResult(0, 0)
        fits = [fit if fit.result is not None else fit._replace(result=result) for fit in fits]
        model._set_fitted(fits, data.samples.base, data.problems.joint)
        model.n_nonzero_coefs_ = max(len(fit.columns) for fit in fits)
        return model

    def _select_by_criterion(self, data: SearchData) -> None:
        """Take the model of the path on all samples that an information criterion likes best."""
        samples, (config, targets, joint) = data.samples, data.problems
        if self._ridges() != "auto":
            config = replace(config, ridge=self._ridges()[0])
        most = self._limit(samples)
        models = fitted_path(config, samples.base, targets, samples.weights, most)
        scores = np.array(self._information(data, models))
        finite = np.isfinite(scores)
        if not finite.any():
            raise ValueError(
                "no number of coefficients has a finite criterion; divide y by its largest entry"
            )
        best = int(np.argmax(np.where(finite, scores, -np.inf)))
        self.scores_ = scores[None]
        self.n_nonzero_coefs_ = best + 1
        models[best] = [fit.finished() for fit in models[best]]
        self._set_fitted(models[best], samples.base, joint)
        self._keep_path(models, joint)
        self._keep_scales(samples)
        name = config.solver if isinstance(config.solver, str) else type(config.solver).__name__
        self.choice_ = {"family": name, "ridge": config.ridge or 0.0, "k": self.n_nonzero_coefs_}

    def _information(self, data: SearchData, models: list[list[LinearFit]]) -> list[float]:
        """Minus the information criterion of the models with 1, 2, ... coefficients."""
        base, weights, loss = data.samples.base, data.samples.weights, data.problems.config.loss
        n, d = base.shape
        totals = np.zeros(len(models))
        for fits, y in zip(zip(*models), data.problems.targets):
            for k, z in enumerate(predict_rows(base, list(fits), np.arange(n))):
                sizes = len(fits[k].columns), d
                totals[k] -= information(self.scoring, loss, (y, weights), z, sizes)
        return totals.tolist()


def _fold_scores(candidate: Candidate, tests: Floats) -> Floats:
    """Scores of a scorer, or minus the mean loss of each fold."""
    if candidate.scores is not None:
        return candidate.scores
    return -candidate.evaluation.fold_losses / tests


def _predicting(model: Any, z: list[Floats]) -> Any:
    """The model with its predictions X w + b, one array for each problem, known beforehand."""
    table = np.stack(z, axis=1).reshape(len(z[0]), *model.coef_.shape[:-1])
    model._decision = lambda X: table
    return model


def _takes_weights(scorer: Any) -> bool:
    """Whether a scorer, or the metric it is made of, has a parameter `sample_weight`."""
    try:
        taken = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    except ValueError:  # a function that does not tell
        return False
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in taken)


def mean_loss(loss: Loss, y: Any, z: Floats, weights: Floats | None = None) -> float:
    """(Weighted) mean over the samples of their loss, summed over targets."""
    losses = loss.value(y, z)
    losses = losses if losses.ndim == 1 else losses.sum(axis=1)
    return float(np.average(losses, weights=weights))


def information(
    criterion: str, loss: Loss, problem: tuple[Any, Floats | None], z: Floats, sizes: tuple[int, int]
) -> float:
    """AIC, BIC or EBIC of predictions z, the smaller the better.

    Squared loss counts as normal errors of unknown variance, other losses as negative log-likelihoods.
    `sizes` are the number of columns used and the number there are. EBIC (Chen, Chen 2008, gamma = 1) adds
    twice the logarithm of the number of models of that size.
    """
    y, weights = problem
    used, d = sizes
    n = float(len(z) if weights is None else weights.sum())
    targets = int(np.prod(z.shape[1:], dtype=int))
    total = n * mean_loss(loss, y, z, weights)
    if loss.quadratic:
        floor = np.finfo(float).eps * n * max(mean_loss(loss, y, np.zeros_like(z), weights), TINY_POSITIVE)
        deviance = n * targets * np.log(2 * max(total, floor) / (n * targets))
    else:
        deviance = 2 * total
    free = used * targets
    if criterion == "aic":
        return float(deviance + 2 * free)
    bic = deviance + np.log(n) * free
    models = gammaln(d + 1) - gammaln(used + 1) - gammaln(d - used + 1)
    return float(bic if criterion == "bic" else bic + 2 * models)
