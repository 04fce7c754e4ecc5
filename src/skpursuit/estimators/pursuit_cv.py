"""Choosing a model by cross-validation or a criterion: what both cross-validated pursuit estimators share.

Models of all sizes, ridges and solvers are compared on the same folds (`model_search/`), by their loss or a
scorer, and the chosen one is fitted on all samples. An information criterion needs no folds: it compares
the models of one run on all samples.

A scorer that scikit-learn knows by name looks at nothing but predictions, so it is handed those of all sizes,
which come from one gathering of columns. Any other scorer gets the test rows of X as they were given to
`fit`, and a copy of the estimator with the coefficients of each size.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Self

import numpy as np
from scipy.special import gammaln
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.parallel import Parallel, delayed

from skpursuit.data import Design, check_finite, is_out_of_core
from skpursuit.estimators.base import (
    CheckedSamples,
    ColumnParameters,
    PursuitBase,
    Subproblems,
    monitored,
    select_rows,
)
from skpursuit.estimators.cross_validation import Folds, SplitterRoutingMixin, effective_rows
from skpursuit.estimators.linear_fit import FitConfig, LinearFit, average_fits, fitted_path, predict_rows
from skpursuit.estimators.model_search.classifier_search import ClassifierSearch
from skpursuit.estimators.model_search.search import (
    Candidate,
    CandidateSearch,
    ScaledData,
    average_families,
    best_candidate,
    choose_candidate,
    permutation_p_value,
    refit_path,
    shown_path,
)
from skpursuit.estimators.model_search.solver_search import SolverSearch
from skpursuit.estimators.model_search.squared_search import SquaredSearch
from skpursuit.estimators.parameter_rules import PATH_SOLVERS, check_parameters, criterion_of, is_auto
from skpursuit.fit.growing import QRFactor, empty_factor
from skpursuit.numerics.arrays import Floats, Indices
from skpursuit.numerics.float_range import TINY_POSITIVE
from skpursuit.numerics.threads import respect_n_jobs
from skpursuit.parameters import RandomSource, seed_of, warn_user
from skpursuit.problem import default_sparsity as sparsity
from skpursuit.problem.losses import Loss
from skpursuit.progress import current_monitor
from skpursuit.selectors import Selector
from skpursuit.solvers import Solver

UNDECIDED = 1e-10  # 1 - h of a row without which the columns depend on each other
NULL_T = 1.6  # t against the best constant that is asked for where X is not a plain array in memory
NULL_P, NULL_T_CERTAIN = 0.08, 3.0  # chance up to which a relation is believed, and t that needs no test
NULL_P_ROWS = 9.0  # divided by the rows it is that chance where that is larger: few rows hide relations
MIN_ROWS_PER_COLUMN, MIN_GRAM_ENTRIES = 50, 2e6  # from which "omp" takes Gram matrices of the folds
#: For each fold the targets, and what each model of a path predicts.
HeldOutPredictions = list[tuple[np.ndarray, list[Floats]]]
Scorer = Callable[..., float]
Splits = list[tuple[Indices, Indices]]  # training and test rows


@dataclass(frozen=True)
class SearchData:
    """Training data, one target per problem; X is as a scorer is shown it, and so are labels."""

    X: object
    samples: CheckedSamples
    labels: np.ndarray
    problems: Subproblems
    splits: Splits


@dataclass(kw_only=True, eq=False, repr=False)
class PathCVMixin(ColumnParameters, SplitterRoutingMixin, PursuitBase):
    """Fits paths of models on each fold, or only on all data, and keeps the best model."""

    solver: str | Solver | list[str | Solver] = "auto"
    selector: str | Selector = "auto"
    max_nonzero_coefs: int | None = None
    cv: object = None
    scoring: str | Scorer | None = None
    fit_intercept: bool = True
    scale: str = "auto"
    ridges: str | float | Sequence[float] = "auto"
    selection: str = "best"
    null_test: bool = True
    n_jobs: int | None = None
    random_state: RandomSource = None

    @monitored
    def fit(self, X: object, y: object, sample_weight: object = None, **fit_params: object) -> Self:
        check_parameters(self, solver=PATH_SOLVERS)
        samples = self._validate(X, y, sample_weight)
        check_finite(samples.base)
        given = self.solver if isinstance(self.solver, (list, tuple)) else [self.solver]
        # "auto" stands for "omp" where the families of `model_search/` cannot compete
        solvers = ["omp" if is_auto(one) else one for one in given]
        if len(given) > 1 and any(map(is_auto, given)):
            self._warn_of_omp("several solvers are compared")
        problems = self._subproblems(samples.y, random_state=seed_of(self.random_state), solver=solvers[0])
        loss = problems.config.loss.resolved(np.column_stack(problems.targets))
        problems = problems._replace(config=replace(problems.config, loss=loss))
        labels, splits = vars(self)["classes_"][samples.y] if is_classifier(self) else samples.y, []
        if not criterion_of(vars(self)):
            splits = self._drawn_splits(labels, samples, fit_params)
        shown = X if samples.X is None or not is_out_of_core(X) else samples.X
        data = SearchData(shown, samples, labels, problems, splits)
        with respect_n_jobs(self.n_jobs):
            arena = self._make_search(data, solvers) if splits else None
            while arena:
                arena = self._search(data, arena)
            if not splits:
                if is_auto(self.solver):
                    self._warn_of_omp(f"scoring={self.scoring!r} compares the models of one run")
                self._select_by_criterion(data, *self._limits(samples, [problems.config]))
        return self

    def _limits(self, samples: CheckedSamples, configs: list[FitConfig]) -> tuple[int, int]:
        """The largest numbers of coefficients that solvers by name try at first, and where these are best."""
        weights, plain = samples.weights, [config.plain_solver(samples.base) for config in configs]
        d, least = plain[0].n_candidates(samples.base), max(one.n_included for one in plain)
        if self.max_nonzero_coefs is None:
            n = samples.base.shape[0] if weights is None else int(effective_rows(weights))
            most, limit = sparsity.for_pursuit_cv(n, d, folds=not criterion_of(vars(self)))
            return max(most, least), max(limit, least)
        given = self.max_nonzero_coefs
        return (sparsity.clip_to_available("max_nonzero_coefs", given, d, least=least),) * 2

    def _drawn_splits(self, labels: np.ndarray, samples: CheckedSamples, params: dict[str, object]) -> Splits:
        """Splits of `cv`; where it is a number of folds, these are drawn at random, twice for few samples.

        The folds of solvers by name are those of scikit-learn, which draws nothing.
        """
        find = partial(self._splits, labels, samples.kept, params, is_classifier(self))
        if not (is_auto(self.solver) and (self.cv is None or isinstance(self.cv, Integral))):
            return find()
        rows = len(labels) if samples.weights is None else effective_rows(samples.weights)
        number, repeats = self._default_folds(rows, labels)
        number = int(self.cv) if isinstance(self.cv, Integral) else number
        kind = StratifiedKFold if is_classifier(self) else KFold
        seed, splits = 0 if self.random_state is None else seed_of(self.random_state), []
        for r in range(repeats):
            splits += find(kind(number, shuffle=True, random_state=(seed + r) % 2**32))
        return splits

    def _default_folds(self, rows: float, labels: np.ndarray) -> tuple[int, int]:
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
        slopes = []
        for y, fits in zip(targets, zip(*arena.fold_fits(null.evaluation.model))):
            b = average_fits(list(fits)).intercept
            slopes.append(config.loss.residual(y, np.broadcast_to(b, (len(y), *np.shape(b))).copy()))
        scaled = ScaledData.of(samples, targets[0], "column", self.fit_intercept)
        weighted = arena.folds.weights[:, None] * np.column_stack(slopes)
        chance = permutation_p_value(scaled, weighted, arena.folds.sampled_rows)
        return chance <= max(NULL_P, NULL_P_ROWS / arena.folds.n_effective), chance

    def _make_search(self, data: SearchData, solvers: list[str | Solver]) -> CandidateSearch:
        """Where the models compete: on Gram matrices by default, else by runs of the solvers."""
        samples, (config, targets, _) = data.samples, data.problems
        folds = Folds.of(data.splits, samples.base.shape[0], samples.weights)
        plain, vector, auto = is_auto(self.selector), np.ndim(targets[0]) == 1, is_auto(self.solver)
        scaled = partial(ScaledData.of, samples, targets[0], config.scale, self.fit_intercept)
        if auto and samples.X is None:
            self._warn_of_omp("X is not a plain array in memory")
        elif auto and config.loss.has_flat_pieces:
            self._warn_of_omp(f"loss={vars(self)['loss']!r} has hardly any curvature")
        elif auto:
            most = None if self.max_nonzero_coefs is None else self._limits(samples, [config])[0]
            if config.loss.quadratic and len(targets) == 1:
                return SquaredSearch(scaled(), folds, vector, most)
            return ClassifierSearch(scaled(), config.loss, targets, folds, most)
        configs = [replace(config, solver=solver) for solver in solvers]
        grams, limits, (n, d) = None, self._limits(samples, configs), samples.base.shape
        tall = n >= MIN_ROWS_PER_COLUMN * d and n * d >= MIN_GRAM_ENTRIES
        squared = config.loss.quadratic and config.plain_solver(samples.base).chooses_freely
        if plain and squared and samples.X is not None and tall:
            grams = SquaredSearch(scaled(), folds, vector, limits[0])
        ends = self.scoring is None  # a scorer gets all sizes
        return SolverSearch(samples.base, configs, targets, folds, *limits, self.n_jobs, grams, ends)

    def _warn_of_omp(self, reason: str) -> None:
        warn_user(f'{reason}, so solver="auto" is "omp"; name solver="omp" and this is not said')

    def _search(self, data: SearchData, arena: CandidateSearch) -> CandidateSearch | None:
        """Choose among the models of a search; or return a wider one where the best is the largest tried."""
        watch, paths = current_monitor(), []
        ridges = self.ridges if isinstance(self.ridges, str) else np.ravel(self.ridges).tolist()
        for path in arena.candidate_paths(ridges):
            paths.append(path)
            if watch.out_of_time():
                break
        scorer = None if self.scoring is None else check_scoring(self, scoring=self.scoring)
        for path in paths:
            self._score(data, arena, path, scorer)
        if means := average_families(paths):
            self._score(data, arena, means, scorer)
            paths.append(means)
        candidates = [candidate for path in paths for candidate in path]
        best = best_candidate(candidates)
        if not np.isfinite(best.compared_loss):
            raise ValueError(
                "no number of coefficients has a finite score; use another scoring, or divide y by its "
                "largest entry"
            )
        wider = arena.widened() if best.size >= arena.max_size else None
        if wider is not None and not watch.out_of_time():
            return wider
        nothing = Candidate(arena, "null", 0.0, 0, arena.null_model())
        t_null = best.t_statistic_against(nothing)
        believed, p_null = self._beats_null(data, arena, nothing, t_null)
        gives = nothing.held_out_loss if is_auto(self.solver) else None
        chosen, t_other = choose_candidate(paths, self.selection, gives) if believed else (None, np.nan)
        path = shown_path(paths, chosen or best)
        watch.set_message("the chosen model on all samples")
        with watch.time_share(None):
            fits = refit_path(path)
        self._keep_choice(chosen or nothing, path, fits, data)
        self.choice_ |= {"t_runner_up": float(t_other), "t_null": float(t_null), "p_null": p_null}
        columns = ("family", "ridge", "size", "n_features")
        self.cv_losses_ = {name: np.array([getattr(one, name) for one in candidates]) for name in columns}
        self.cv_losses_["loss"] = np.array([one.held_out_loss for one in candidates])
        compared = path[: len(fits)] if chosen else [nothing]
        place = path.index(chosen) if chosen else 0
        self._on_chosen(place, lambda: self._held_out(data, arena, compared))
        return None

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
        self._set_fitted(final, data.samples.base, data.problems.joint)
        if final[0].result is None:  # a model that no single run has made
            self.n_iter_, self.entries_read_ = chosen.size, arena.entries_read
        self.n_nonzero_coefs_ = max(len(fit.columns) for fit in final)
        self.choice_ = {"family": chosen.family, "ridge": chosen.ridge, "k": self.n_nonzero_coefs_}
        self.scores_ = np.stack([one.fold_scores for one in path[: len(fits)]], axis=1)
        self._keep_path(fits, data)

    def _keep_path(self, fits: list[list[LinearFit]], data: SearchData) -> None:
        """Coefficients of all models of the path, one line for each, and the spreads of their features."""
        used = [fit.columns for each in fits for fit in each]
        self.path_features_ = np.unique(np.concatenate(used)).astype(np.intp)
        self.path_sizes_ = np.array([max(len(fit.columns) for fit in each) for each in fits])
        tables = []
        for p, first in enumerate(fits[0]):
            table = np.zeros((len(fits), *first.coef.shape[1:], len(self.path_features_)))
            for line, each in zip(table, fits):
                line[..., np.searchsorted(self.path_features_, each[p].columns)] = each[p].coef.T
            tables.append(table)
        self.coef_path_ = tables[0] if data.problems.joint else np.stack(tables, axis=1)
        survey = data.samples.base.survey(data.samples.weights)
        self.path_scales_ = survey.spreads(survey.means)[self.path_features_]

    def _score(
        self, data: SearchData, arena: CandidateSearch, path: list[Candidate], scorer: Scorer | None
    ) -> None:
        """Have a scorer, if there is one, evaluate the models of a path, fold by fold."""
        if scorer is None:
            return
        folds = zip(*(arena.fold_fits(candidate.evaluation.model) for candidate in path))
        parts = zip(folds, (test for _, test in data.splits))
        run = Parallel(n_jobs=self.n_jobs, require="sharedmem")
        scores = run(delayed(self._scores_of_fold)(data, *part, scorer) for part in parts)
        for candidate, found in zip(path, zip(*scores)):
            candidate.scores = np.array(found)

    def _scores_of_fold(
        self, data: SearchData, models: list[list[LinearFit]], test: Indices, scorer: Scorer
    ) -> list[float]:
        """Scores on the test part of models of one fold, each a list of fits for all problems."""
        X = None
        if isinstance(self.scoring, str):  # such a scorer looks at nothing but predictions
            fitted = self._with_predictions(data, models, test)
        else:
            X = select_rows(data.X, np.flatnonzero(data.samples.kept)[test])  # as they were given
            fitted = (self._fitted(fits, data) for fits in models)
        weights = None if data.samples.weights is None else data.samples.weights[test]
        return [float(_scored(scorer, model, X, data.labels[test], weights)) for model in fitted]

    def _with_predictions(
        self, data: SearchData, models: list[list[LinearFit]], test: Indices
    ) -> Iterator[Self]:
        """Copies of this estimator that know what each of the models predicts for the test part."""
        base = data.samples.base.for_run(private=True)
        tables = [predict_rows(base, list(fits), test) for fits in zip(*models)]
        for fits, *z in zip(models, *tables):
            model = self._fitted(fits, data)
            table = np.stack(z, axis=1).reshape(len(test), *model.coef_.shape[:-1])
            vars(model)["_decision"] = lambda X, table=table: table
            yield model

    def _fitted(self, fits: list[LinearFit], data: SearchData) -> Self:
        """A copy of this estimator with these coefficients."""
        model = copy.copy(self)
        model._set_fitted(fits, data.samples.base, data.problems.joint)
        model.n_nonzero_coefs_ = max(len(fit.columns) for fit in fits)
        return model

    def _select_by_criterion(self, data: SearchData, most: int, limit: int) -> None:
        """Take the model of the path on all samples that an information criterion likes best.

        Where that is the largest of `most` columns, more are tried, up to the limit.
        """
        samples, (config, targets, joint) = data.samples, data.problems
        if not isinstance(self.ridges, str):
            config = replace(config, ridge=np.ravel(self.ridges).tolist()[0])
        if self.scoring == "loo":
            check_least_squares(config)
        models = fitted_path(config, samples.base, targets, samples.weights, most)
        base, weights, scores = samples.base, samples.weights, np.zeros(len(models))
        for fits, y in zip(zip(*models), targets):
            if self.scoring == "loo":
                scores -= list(corrected_errors(base, fits, y, weights, config.fit_intercept))
                continue
            for k, z in enumerate(predict_rows(base, list(fits), np.arange(base.shape[0]))):
                sizes = len(fits[k].columns), base.shape[1]
                scores[k] -= information(str(self.scoring), config.loss, (y, weights), z, sizes)
        if not np.isfinite(scores).any():
            alone = "single rows decide coefficients of all models; use another scoring"
            why = alone if self.scoring == "loo" else "divide y by its largest entry"
            raise ValueError(f"no number of coefficients has a finite criterion; {why}")
        best = int(np.argmax(np.where(np.isfinite(scores), scores, -np.inf)))
        if best + 1 == most < limit and not current_monitor().out_of_time():
            return self._select_by_criterion(data, min(2 * most, limit), limit)
        self.scores_ = scores[None]
        self.n_nonzero_coefs_ = max(len(fit.columns) for fit in models[best])
        models[best] = [fit.finished() for fit in models[best]]
        self._set_fitted(models[best], samples.base, joint)
        self._keep_path(models, data)
        self.choice_ = {"family": config.name, "ridge": config.ridge or 0.0, "k": self.n_nonzero_coefs_}


def _scored(scorer: Scorer, model: object, X: object, y: np.ndarray, weights: Floats | None) -> float:
    """A score, by the weights if the scorer, and the metric that it may be made of, takes some."""
    try:
        return scorer(model, X, y) if weights is None else scorer(model, X, y, sample_weight=weights)
    except TypeError as error:
        if weights is None or "sample_weight" not in str(error):
            raise
        return scorer(model, X, y)


def information(
    criterion: str, loss: Loss, problem: tuple[Floats, Floats | None], z: Floats, sizes: tuple[int, int]
) -> float:
    """AIC, BIC or EBIC of predictions z, the smaller the better.

    Squared loss counts as normal errors of unknown variance, other losses as negative log-likelihoods.
    `sizes` are the number of columns used and the number there are. EBIC (Chen, Chen 2008, gamma = 1) adds
    twice the logarithm of the number of models of that size.
    """
    (y, weights), (used, d) = problem, sizes
    weights = np.ones(len(z)) if weights is None else weights
    n, free = float(weights.sum()), used * int(np.prod(z.shape[1:], dtype=int))

    def total(z: Floats) -> float:
        return float(weights @ loss.value(y, z).reshape(len(z), -1).sum(axis=1))

    if loss.quadratic:
        floor, count = np.finfo(float).eps * max(total(np.zeros_like(z)), TINY_POSITIVE), n * z[0].size
        deviance = count * np.log(2 * max(total(z), floor) / count)
    else:
        deviance = 2 * total(z)
    if criterion == "aic":
        return float(deviance + 2 * free)
    bic = deviance + np.log(n) * free
    models = gammaln(d + 1) - gammaln(used + 1) - gammaln(d - used + 1)
    return float(bic if criterion == "bic" else bic + 2 * models)


def check_least_squares(config: FitConfig) -> None:
    """Refuse what is not fitted by least squares alone."""
    given = {**vars(config), **({} if isinstance(config.solver, str) else vars(config.solver))}
    bound = given["ridge"] or given.get("positive") or not config.loss.quadratic
    if config.name not in ("omp", "OMP") or bound:
        raise ValueError('scoring="loo" is of least squares: use "omp", squared loss, no ridge or positive')


def corrected_errors(
    base: Design, fits: Sequence[LinearFit], y: Floats, weights: Floats | None, fit_intercept: bool
) -> Iterator[float]:
    """The corrected leave-one-out error of each least-squares model of a path; infinite where undefined.

    A mean over rows, summed over targets. Without row i a model predicts y_i with the error e_i / (1 - h_i),
    where h_i, of the hat matrix, is the sum of the squares of row i of an orthonormal basis of the columns;
    that basis grows by one column a model. What few rows hide is made up for by the factor of Chapelle,
    Vapnik and Bengio (2002), which polynomial chaos expansions are chosen by (Blatman, Sudret, 2011):
    n / (n - P) (1 + tr(C^-1) / n), with C the mean squares and products of the P columns, by their sizes.
    """
    weights = np.ones(len(y)) if weights is None else weights
    total, n, root = float(weights.sum()), effective_rows(weights), np.sqrt(weights)
    copies = np.maximum(weights, 1.0) if n == total else np.ones(len(y))  # of which one is left out
    factor: QRFactor | None = empty_factor(np.empty((len(y), 0)))
    taken: list[int] = []
    sizes: list[float] = []
    for fit, z in zip(fits, predict_rows(base, list(fits), np.arange(len(y)))):
        columns = fit.columns.tolist()
        same = next((i for i, pair in enumerate(zip(columns, taken)) if pair[0] != pair[1]), len(taken))
        factor, sizes, taken = factor and factor.first(same), sizes[:same], columns
        for line in base.columns(np.array(columns[same:], dtype=np.intp)):
            line = root * (line - weights @ line / total if fit_intercept else line)
            sizes.append(float(line @ line))
            factor = factor and factor.add(line, 0.0)
        used = len(columns) + fit_intercept
        if factor is None or n <= used:
            yield np.inf
            continue
        left = 1.0 - (np.square(factor.Q.rows).sum(axis=0) + fit_intercept * weights / total) / copies
        if left[weights > 0].min() < UNDECIDED:
            yield np.inf
            continue
        errors = np.square((y - z).T / left) @ weights / total
        inverse = np.linalg.inv(factor.triangle())
        trace = np.square(inverse).sum(axis=1) @ np.array(sizes) + fit_intercept
        yield float(np.sum(errors)) * n / (n - used) * (1.0 + trace / n)
