"""Fitted models as ONNX graphs: after `register`, `skl2onnx.to_onnx` converts them, in pipelines too."""

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skpursuit.estimators.classifier import PursuitClassifier, PursuitClassifierCV
from skpursuit.estimators.feature_selector import PursuitFeatureSelector
from skpursuit.estimators.omp import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV
from skpursuit.estimators.regressor import PursuitRegressor, PursuitRegressorCV
from skpursuit.problem.losses import as_loss

REGRESSORS = (PursuitRegressor, PursuitRegressorCV, OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV)


def register() -> None:
    """Let skl2onnx (``pip install skl2onnx``) convert regressors, classifiers and the feature selector.

    Graphs compute in the precision of their input, float32 or float64, and other numbers as float32. A
    classifier gives labels and probabilities, or scores where its loss has no probabilities.
    """
    try:
        from skl2onnx import update_registered_converter as add
        from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes as of_classes
        from skl2onnx.common.shape_calculator import calculate_linear_regressor_output_shapes as of_numbers
        from skl2onnx.shape_calculators.feature_selection import calculate_sklearn_select
    except ImportError:
        raise ImportError("ONNX graphs need skl2onnx: pip install skl2onnx") from None
    options = {
        "zipmap": [True, False, "columns"],
        "output_class_labels": [False, True],
        "nocl": [True, False],
    }
    for regressor in REGRESSORS:
        add(regressor, f"Skpursuit{regressor.__name__}", of_numbers, _convert_model)
    for classifier in (PursuitClassifier, PursuitClassifierCV):
        add(classifier, f"Skpursuit{classifier.__name__}", of_classes, _convert_model, options=options)
    add(PursuitFeatureSelector, "SkpursuitFeatureSelector", calculate_sklearn_select, _convert_selector)


def _convert_model(scope: Any, operator: Any, container: Any) -> None:
    """X w + b, and predictions of these: numbers, or labels and probabilities."""
    ops, types = import_module("skl2onnx.algebra.onnx_ops"), import_module("skl2onnx.common.data_types")
    X, out, model = operator.inputs[0], operator.outputs, operator.raw_operator
    version, loss = {"op_version": container.target_opset}, as_loss(vars(model).get("loss", "squared"))
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    two_classes = is_classifier(model) and len(coef) == 1
    if two_classes:
        coef, intercept = np.vstack([0 * coef, coef]), np.append(0.0, intercept)
    dtype = np.float64 if isinstance(X.type, types.DoubleTensorType) else np.float32
    number = types.guess_proto_type(types.guess_tensor_type(X.type))
    product = ops.OnnxMatMul(ops.OnnxCast(X, to=number, **version), coef.T.astype(dtype), **version)
    z = ops.OnnxAdd(product, intercept.astype(dtype), **version)
    if is_classifier(model):
        labels = model.classes_.astype(np.int64 if model.classes_.dtype.kind in "iubf" else str)
        best = ops.OnnxArgMax(z, axis=1, keepdims=0, **version)
        ops.OnnxGather(labels, best, axis=0, output_names=out[:1], **version).add_to(scope, container)
    if loss.gives_probability and loss.for_classes() is not None:
        if not two_classes and model.multi_class_ != "multinomial":
            p = ops.OnnxSigmoid(z, **version)
            made: Any = ops.OnnxLpNormalization(p, axis=1, p=1, output_names=out[-1:], **version)
        else:
            made = ops.OnnxSoftmax(z, axis=1, output_names=out[-1:], **version)
    else:
        mean = float(loss.mean(np.ones(1))[0])
        if loss.gives_probability or mean not in (1.0, float(np.exp(np.ones(1))[0])):
            raise ValueError(f"loss {loss!r} predicts by a function that is not known to ONNX")
        made = (ops.OnnxIdentity if mean == 1.0 else ops.OnnxExp)(z, output_names=out[-1:], **version)
    made.add_to(scope, container)


def _convert_selector(scope: Any, operator: Any, container: Any) -> None:
    ops, chosen = import_module("skl2onnx.algebra.onnx_ops"), operator.raw_operator.get_support(indices=True)
    how = {"axis": 1, "op_version": container.target_opset, "output_names": operator.outputs[:1]}
    ops.OnnxGather(operator.inputs[0], chosen.astype(np.int64), **how).add_to(scope, container)
