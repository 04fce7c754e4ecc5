"""A fitted linear model as a readable JSON file with a checksum, never a pickle.

The file holds the features with nonzero coefficients and the part of the encoding that they need, so
`predict` reads no other columns.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from skpursuit._text import one_line
from skpursuit.apps.tables import EncodedTable, TableEncoding
from skpursuit.apps.tables.errors import TableProblem, attach_path
from skpursuit.problem.losses import as_loss

MODEL_FORMAT = "skpursuit linear model"
FORMAT_VERSION = 2


class _Coefficient(msgspec.Struct, forbid_unknown_fields=True):
    feature: str
    coef: list[float]


class _Body(msgspec.Struct, forbid_unknown_fields=True):  # of a file
    task: Literal["regression", "classification"]
    classes: list[int | float | str] | None
    intercept: list[float]
    coefficients: list[_Coefficient]
    encoding: TableEncoding
    info: dict[str, Any]
    versions: dict[str, str]


class _Notes(msgspec.Struct):  # those in `info` that predictions need
    loss: str = "squared"
    rmse: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    residuals: dict[Annotated[float, msgspec.Meta(gt=0, lt=1)], float] = {}  # by the share that is below


@dataclass(frozen=True)
class LinearModel:
    """A linear model of named features."""

    features: tuple[str, ...]  # names of the features with a coefficient, in the order they are listed
    coef: np.ndarray  # their coefficients; one output for regression and two classes, else one per class
    intercept: np.ndarray  # what is added
    #: how a table becomes these features (and perhaps sibling indicators that have no coefficient)
    encoding: TableEncoding
    #: the class labels, numbers or strings; None for regression
    classes: tuple[float | str, ...] | None = None
    #: what else is worth keeping, as JSON; ``residuals`` holds their quantiles, which intervals are made of,
    #: ``loss`` the name of the loss, which tells what a prediction means
    info: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)  # what the model was fitted with

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together, of a fit or of a file."""
        notes, labels, every = self._notes, self.classes or (), self.encoding.features
        outputs = 1 if len(labels) in (0, 2) else len(labels)
        if self.coef.shape != (outputs, len(self.features)) or self.intercept.shape != (outputs,):
            raise ValueError(f"coefficients of shape {self.coef.shape} do not fit {outputs} outputs")
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise ValueError("coefficients must be finite")
        if len(set(every)) < len(every):
            twice = max(every, key=every.count)
            raise ValueError(f"two columns give a feature {twice!r}; rename one of them")
        if set(self.features) - set(every) or len(set(self.features)) < len(self.features):
            raise ValueError("features must be different features of the encoding")
        if self.classes is not None and not 2 <= len(labels) == len(set(labels)):
            raise ValueError("there must be two classes or more, all different")
        if len({isinstance(label, str) for label in labels}) == 2:
            raise ValueError("classes must be all numbers or all texts")
        left = [value for _, value in sorted(notes.residuals.items())]
        if left != sorted(left):
            raise ValueError("quantiles of residuals must rise")
        as_loss(notes.loss)  # it raises if there is none of that name

    @property
    def _notes(self) -> _Notes:
        return msgspec.convert(self.info, _Notes, str_keys=True)

    @np.errstate(over="ignore", invalid="ignore")  # `_finite` tells
    def decision_function(self, table: EncodedTable) -> np.ndarray:
        """Return X w + b for the rows of an encoded table, of shape (rows, outputs)."""
        place = {name: j for j, name in enumerate(table.features)}
        X = table.X[:, [place[name] for name in self.features]]
        scores = X @ self.coef.T
        return _finite((scores.toarray() if isinstance(scores, csr_array) else scores) + self.intercept)

    def predict(self, table: EncodedTable) -> np.ndarray:
        """Return the predicted numbers, or the predicted class labels."""
        scores = self.decision_function(table)
        if self.classes is None:
            return _finite(as_loss(self._notes.loss).mean(scores[:, 0]))
        winner = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes)[winner]

    def probabilities(self, table: EncodedTable) -> np.ndarray:
        """Return the chance of each class, of shape (rows, classes), from its scores or those of all."""
        scores, loss = self.decision_function(table), as_loss(self._notes.loss)
        if loss.couples_targets:
            return loss.probabilities(scores)
        chances = expit(scores)
        if chances.shape[1] == 1:
            return np.hstack([1 - chances, chances])
        total = chances.sum(axis=1, keepdims=True)
        return np.where(total > 0, chances / np.where(total > 0, total, 1.0), 1.0 / chances.shape[1])

    def predictions(self, table: EncodedTable, share: float) -> dict[str, list[object]]:
        """Return columns by their heads: predictions, then intervals of a share or chances of classes."""
        guesses = self.predict(table)
        named = {"prediction": guesses.tolist()}
        if self.classes is not None:
            chances = self.probabilities(table).T.round(6).tolist()
            return named | {f"p({label})": values for label, values in zip(self.classes, chances)}
        margins = self.interval_offsets(share) or ()
        with np.errstate(over="ignore"):
            ends = {
                head: _finite(guesses + margin).tolist() for head, margin in zip(("low", "high"), margins)
            }
        return named | ends

    def spell(self, value: object) -> object:
        """Return a cell of `predictions` in as many digits as it is worth: one beyond its typical error."""
        if not isinstance(value, float) or abs(value) > 1e15:
            return value
        error = 1e-3 if self.classes is not None else self._notes.rmse or 1e-6
        return f"{value:.{min(12, max(0, 1 - math.floor(math.log10(error))))}f}"

    def interval_offsets(self, share: float) -> tuple[float, float] | None:
        """Return what is added to a prediction for the ends of its interval; None where nothing was kept."""
        kept = self._notes.residuals
        if len(kept) < 2:
            return None
        low, high = np.interp([(1 - share) / 2, (1 + share) / 2], *np.array(sorted(kept.items())).T)
        return float(low), float(high)


def _finite(values: np.ndarray) -> np.ndarray:
    """Return predictions; refuse the table where they are beyond the range of numbers."""
    if not np.isfinite(values).all():
        raise TableProblem("infinite predictions")
    return values


def linear_model(
    table: EncodedTable,
    coef: np.ndarray,
    intercept: np.ndarray | float,
    classes: Sequence[object] | np.ndarray | None = None,
    info: dict[str, Any] | None = None,
) -> LinearModel:
    """Make a model from the coefficients (d,) or (n_outputs, d) that an estimator found on a table.

    Features that are zero in every output are left out. ``classes`` are the labels, None for regression.
    """
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    used = np.flatnonzero(np.any(coef != 0, axis=0))
    used = used[np.argsort(-np.abs(coef[:, used]).max(axis=0), kind="stable")]
    features = tuple(table.features[j] for j in used)
    labels = None if classes is None else _class_labels(np.asarray(classes).tolist())
    packages = ("skpursuit", "numpy", "scipy", "scikit-learn")
    versions = {
        one.name.lower(): one.version for name in packages for one in metadata.distributions(name=name)
    }
    return LinearModel(
        features,
        coef[:, used],
        np.atleast_1d(np.asarray(intercept, dtype=np.float64)),
        table.encoding.restrict(features),
        labels,
        info or {},
        {"python": platform.python_version(), **versions},
    )


def model_json(model: LinearModel) -> str:
    """Return what a model's file holds."""
    coefficients = zip(model.features, model.coef.T.tolist())
    body = {
        "task": "regression" if model.classes is None else "classification",
        "classes": None if model.classes is None else list(model.classes),
        "intercept": model.intercept.tolist(),
        "coefficients": [{"feature": name, "coef": values} for name, values in coefficients],
        "encoding": msgspec.to_builtins(model.encoding),
        "info": model.info,
        "versions": model.versions,
    }
    document = {"format": MODEL_FORMAT, "format_version": FORMAT_VERSION, "sha256": _checksum(body)}
    return json.dumps({**document, "model": body}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def load_model(path: str | os.PathLike[str]) -> LinearModel:
    """Read a model; TableError if it is absent, cut off, changed, or of another version."""
    with attach_path(path):
        try:
            document = msgspec.json.decode(Path(path).read_bytes().decode("utf-8-sig"))
        except FileNotFoundError:
            raise TableProblem("no such file") from None
        except OSError as error:
            raise TableProblem("unreadable", words=error.strerror) from None
        except (ValueError, RecursionError):  # not UTF-8 either
            raise TableProblem("not JSON") from None
        if not isinstance(document, dict) or document.get("format") != MODEL_FORMAT:
            raise TableProblem("no model")
        if (version := document.get("format_version")) != FORMAT_VERSION:
            raise TableProblem("model version", version=version, known=FORMAT_VERSION)
        body = document.get("model")
        if not isinstance(body, dict) or _checksum(body) != document.get("sha256"):
            raise TableProblem("changed model")
        try:
            return _model_of(msgspec.convert(body, _Body))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise TableProblem("damaged model", words=one_line(error, 120)) from None


def _model_of(stored: _Body) -> LinearModel:
    """Return the model that a file holds; ValueError if its parts do not fit together."""
    if (stored.task == "regression") != (stored.classes is None):
        raise ValueError("classes do not fit the task")
    coef = np.array([entry.coef for entry in stored.coefficients], dtype=np.float64)
    return LinearModel(
        tuple(entry.feature for entry in stored.coefficients),
        coef.reshape(len(stored.coefficients), len(stored.intercept)).T,
        np.array(stored.intercept),
        stored.encoding,
        None if stored.classes is None else _class_labels(stored.classes),
        stored.info,
        stored.versions,
    )


def _checksum(body: dict[str, Any]) -> str:
    """Return the SHA-256 of the content, whatever the line breaks and the order of keys in the file."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _class_labels(classes: Sequence[float | str]) -> tuple[float | str, ...]:
    """Return class labels as people write them: 0 and 1, though a column of numbers holds 0.0 and 1.0."""
    if not all(isinstance(label, int | float | str) for label in classes):
        raise ValueError("classes must be numbers or strings")
    if all(isinstance(label, float) and label.is_integer() and abs(label) < 2**53 for label in classes):
        return tuple(map(int, classes))
    return tuple(classes)
