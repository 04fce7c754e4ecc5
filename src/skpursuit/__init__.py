"""Sparse models, found by reading a fraction of the data."""

import logging
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())

# Every public name and the module it lives in. Modules load on first use: importing skpursuit stays light.
_HOME = {
    "minimize": "loop.run",
    "as_design": "data",
    "audit": "guarantees.audit",
    "Audit": "problem.state",
    "certify": "guarantees.certify",
    "Proof": "guarantees.certify",
    "Result": "problem.state",
    "Status": "problem.state",
    "Checkpoint": "loop.checkpoint",
    "Solver": "solvers",
    "MatchingPursuit": "solvers.matching_pursuit",
    "OMP": "solvers.matching_pursuit",
    "CoSaMP": "solvers.cosamp",
    "GraSP": "solvers.cosamp",
    "SubspacePursuit": "solvers.subspace_pursuit",
    "FrankWolfe": "solvers.frank_wolfe",
    "StoIHT": "solvers.cosamp",
    "StoGradMP": "solvers.cosamp",
    "L1Ball": "problem.constraint_sets",
    "Simplex": "problem.constraint_sets",
    "Selector": "selectors",
    "Query": "selectors",
    "Selection": "selectors",
    "Exact": "selectors.base",
    "Gram": "selectors.gram",
    "Greedy": "selectors.row_sampling",
    "Uniform": "selectors.row_sampling",
    "Importance": "selectors.row_sampling",
    "SuccessiveReject": "selectors.successive_halving",
    "SuccessiveHalving": "selectors.successive_halving",
    "LUCB": "selectors.lucb",
    "Stability": "selectors.row_sampling",
    "ErrorBound": "selectors.row_sampling",
    "Budget": "selectors.row_sampling",
    "Quantized": "selectors.certified",
    "Auto": "selectors.auto",
    "Certified": "selectors.certified",
    "Loss": "problem.losses",
    "Squared": "problem.losses",
    "Logistic": "problem.losses",
    "Huber": "problem.losses",
    "Poisson": "problem.losses",
    "Multinomial": "problem.losses",
    "Quantile": "problem.losses",
    "Gamma": "problem.losses",
    "Tweedie": "problem.losses",
    "OrthogonalMatchingPursuit": "estimators.omp",
    "OrthogonalMatchingPursuitCV": "estimators.omp",
    "PathDisplay": "estimators.display",
    "PursuitClassifier": "estimators.classifier",
    "PursuitClassifierCV": "estimators.classifier",
    "PursuitRegressor": "estimators.regressor",
    "PursuitRegressorCV": "estimators.regressor",
    "orthogonal_mp": "estimators.omp_functions",
    "orthogonal_mp_gram": "estimators.omp_functions",
    "PursuitFeatureSelector": "estimators.feature_selector",
    "PursuitCoder": "estimators.coder",
    "DictionaryLearner": "estimators.dictionary_learner",
    "SparseCodes": "kernels.batch_types",
    "patch_sklearn": "interop.patch",
    "unpatch_sklearn": "interop.patch",
}
_MODULES = ("datasets", "metrics", "plots", "theory")

__all__ = ["__version__", *_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"skpursuit.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'skpursuit' has no attribute {name!r}")
    value = getattr(import_module(f"skpursuit.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
