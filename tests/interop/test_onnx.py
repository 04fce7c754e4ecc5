"""ONNX graphs of fitted models predict what the models predict."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skpursuit as sp
from skpursuit.interop import onnx

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 12))
Y = X[:, :3] @ rng.standard_normal((3, 3)) + 0.1 * rng.standard_normal((150, 3))
NAMES, FEW = np.array(["ash", "elm", "fir"])[Y.argmax(axis=1)], {"n_nonzero_coefs": 3}
FOUR = sp.PursuitFeatureSelector(n_features_to_select=4)
MODELS = [
    (sp.PursuitRegressor(**FEW, loss="poisson"), np.exp(Y[:, 0])),
    (sp.PursuitRegressorCV(cv=3), Y),
    (sp.OrthogonalMatchingPursuitCV(cv=3), Y[:, 0]),
    (make_pipeline(StandardScaler(), FOUR, sp.PursuitRegressor(**FEW)), Y[:, 0]),
    (sp.PursuitClassifier(**FEW), Y[:, 0] > 0),
    (sp.PursuitClassifier(**FEW, multi_class="ovr_shared"), Y.argmax(axis=1)),
    (sp.PursuitClassifierCV(cv=3), NAMES),
    (make_pipeline(FOUR, sp.PursuitClassifier(**FEW)), NAMES),
    (sp.PursuitClassifier(**FEW, loss="squared"), NAMES),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize(("model", "y"), MODELS)
def test_a_graph_predicts_what_the_model_predicts(model, y, dtype):
    convert = pytest.importorskip("skl2onnx", reason="pip install --group onnx").to_onnx
    runtime = pytest.importorskip("onnxruntime", reason="pip install --group onnx")
    onnx.register()
    given, last = (2 * X).astype(dtype), model.fit(X, y)[-1] if hasattr(model, "steps") else model.fit(X, y)
    options = {id(last): {"zipmap": False}} if hasattr(last, "classes_") else None
    graph = convert(model, given[:1], options=options).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    first, *chances = session.run(None, {session.get_inputs()[0].name: given})
    if not chances:
        expected = model.predict(given).reshape(len(X), -1)
        return np.testing.assert_allclose(first, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(first, model.predict(given).astype(first.dtype))
    expected = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
    np.testing.assert_allclose(chances[0], expected(given), atol=1e-5)
