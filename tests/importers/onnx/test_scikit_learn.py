"""Estimators of scikit-learn, exported by skl2onnx, against scikit-learn itself and ONNX Runtime."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
sklearn = pytest.importorskip("sklearn")
skl2onnx = pytest.importorskip("skl2onnx")

from skl2onnx._supported_operators import sklearn_operator_name_map
from sklearn.base import BaseEstimator, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators

import trivium
from tests.importers.onnx.checks import by_runtime

pytestmark = [pytest.mark.onnx, pytest.mark.filterwarnings("ignore")]

CLASSES = {name: cls for name, cls in all_estimators() if cls in sklearn_operator_name_map}

UNCONVERTED = {
    # their features are text, or their inputs labels
    "CountVectorizer", "DictVectorizer", "FeatureHasher", "LabelBinarizer", "LabelEncoder", "TfidfVectorizer",
    # skl2onnx 1.20 refuses them, or fails
    "HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "LocalOutlierFactor", "NearestNeighbors",
    "RandomTreesEmbedding",
}  # fmt: skip

REFUSED = {
    "GaussianProcessClassifier": "com.microsoft::Solve",
    "KNNImputer": "else_branch has a result of type .*, expected the element type and the number of dimensions",
    "MultiOutputClassifier": "output probabilities is a sequence",
}

WITHOUT_MAPS = {"LinearSVC", "RFE", "RFECV"}
"""Classifiers of which skl2onnx makes no maps, and has no option for these."""

RUNTIME_FAILS = {"RadiusNeighborsClassifier", "RadiusNeighborsRegressor"}
"""Models with an index of -1, which ONNX Runtime refuses."""

AS_RUNTIME = {"QuantileTransformer", "TunedThresholdClassifierCV"}
"""Models that differ from scikit-learn, and do so in ONNX Runtime as well."""

OPTIONS: dict[str, dict[str, Any]] = {
    "ColumnTransformer": {"transformers": [("scaled", StandardScaler(), [0, 2]), ("kept", "passthrough", [1])]},
    "FeatureUnion": {"transformer_list": [("scaled", StandardScaler())]},
    "GaussianProcessRegressor": {"alpha": 0.5},
    "GenericUnivariateSelect": {"mode": "k_best", "param": 2},
    "GridSearchCV": {"param_grid": {"C": [0.1, 1.0]}},
    "KBinsDiscretizer": {"encode": "onehot-dense"},
    "OneHotEncoder": {"sparse_output": False, "handle_unknown": "ignore"},
    "Pipeline": {"steps": [("scaled", StandardScaler()), ("model", LogisticRegression())]},
    "QuantileTransformer": {"n_quantiles": 5},
    "RFE": {"n_features_to_select": 2},
    "SelectKBest": {"k": 2},
    "SelectPercentile": {"percentile": 50},
    "VotingClassifier": {"flatten_transform": False, "voting": "soft"},
}

TWO_CLASSES = {"GaussianProcessClassifier", "TunedThresholdClassifierCV"}
CATEGORIES = {"OneHotEncoder", "OrdinalEncoder", "TargetEncoder", "CategoricalNB"}
SQUARE = {"KernelCenterer"}

RNG = np.random.RandomState(0)
X = np.abs(RNG.standard_normal((60, 4))).astype(np.float32).round(2)
Y = X[:, 0] * X[:, 1] + X[:, 2]
LABELS = np.digitize(X[:, 0] + X[:, 1] / 2, [0.7, 1.4])


def made(name: str) -> BaseEstimator:
    """An estimator that is small and deterministic."""
    cls = CLASSES[name]
    parameters = inspect.signature(cls).parameters
    options = dict(OPTIONS.get(name, {}))
    model = Ridge() if name.endswith("Regressor") else LogisticRegression()
    if "estimator" in parameters and parameters["estimator"].default is inspect.Parameter.empty:
        options["estimator"] = model
    if name.startswith(("Voting", "Stacking")):
        other = LinearRegression() if name.endswith("Regressor") else LogisticRegression(C=0.1)
        options["estimators"] = [("a", model), ("b", other)]
    for parameter, value in (("n_estimators", 5), ("random_state", 0), ("max_iter", 50), ("n_components", 2)):
        is_small = parameter in parameters and (parameter != "max_iter" or name.startswith("MLP"))
        if is_small and name != "LinearDiscriminantAnalysis":
            options.setdefault(parameter, value)
    return cls(**options)


def features(name: str) -> np.ndarray:
    if name in CATEGORIES:
        return np.digitize(X, [0.5, 1.0]).astype(np.int64 if name == "OneHotEncoder" else np.float32)
    return (X @ X.T).astype(np.float32) if name in SQUARE else X


def fitted(name: str, x: np.ndarray) -> BaseEstimator:
    model = made(name)
    has_labels = is_classifier(model) or name.startswith("Select") or name == "NeighborhoodComponentsAnalysis"
    target = LABELS if has_labels else Y
    if name in TWO_CLASSES:
        target = (LABELS > 0).astype(np.int64)
    if name.startswith("Multi") and "Output" in name:
        target = np.stack([LABELS, LABELS[::-1]], 1)
    if name.startswith("MultiTask"):
        target = np.stack([Y, Y[::-1]], 1)
    return model.fit(x, target)


def exported(model: BaseEstimator, x: np.ndarray) -> Any:
    has_maps = is_classifier(model) and type(model).__name__ not in WITHOUT_MAPS
    options = {id(model): {"zipmap": False}} if has_maps else None
    return skl2onnx.to_onnx(model, x[:1], options=options, target_opset={"": 21, "ai.onnx.ml": 3})


def own_results(model: BaseEstimator, x: np.ndarray) -> Iterator[np.ndarray]:
    """What scikit-learn computes."""
    for method in ("predict", "predict_proba", "transform", "decision_function", "score_samples"):
        try:
            result = getattr(model, method)(x)
        except AttributeError:  # of methods that depend on options
            continue
        yield np.asarray(result.toarray() if hasattr(result, "toarray") else result)


def is_close(result: np.ndarray, wanted: np.ndarray) -> bool:
    return wanted.size == result.size and np.allclose(wanted.reshape(result.shape), result, 1e-3, 1e-3, equal_nan=True)


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - UNCONVERTED))
def test_estimators(name: str) -> None:
    x = features(name)
    model = fitted(name, x)
    onnx_model = exported(model, x)
    if name in REFUSED:
        with pytest.raises(trivium.Error, match=REFUSED[name]):
            trivium.from_onnx(onnx_model)
        return
    results = trivium.compile(trivium.from_onnx(onnx_model))(x)
    if name not in AS_RUNTIME:
        own = list(own_results(model, x))
        assert all(any(is_close(result, wanted) for wanted in own) for result in results)
    if name not in RUNTIME_FAILS:
        for result, wanted in zip(results, by_runtime(onnx_model, [x]), strict=True):
            assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(result, wanted, rtol=1e-3, atol=1e-4)


def test_any_number_of_rows() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, LABELS)
    run = trivium.compile(trivium.from_onnx(exported(model, X)))
    for count in (1, 7, 60):
        labels, probabilities = run(X[:count])
        np.testing.assert_array_equal(labels, model.predict(X[:count]))
        np.testing.assert_allclose(probabilities, model.predict_proba(X[:count]), rtol=1e-5, atol=1e-6)


def test_labels_of_text_are_refused() -> None:
    model = LogisticRegression().fit(X, np.array(["low", "middle", "high"])[LABELS])
    with pytest.raises(trivium.UnsupportedOpError, match="classlabels_strings has 3 strings, expected integers"):
        trivium.from_onnx(exported(model, X))


def test_maps_are_refused() -> None:
    model = skl2onnx.to_onnx(LogisticRegression().fit(X, LABELS), X[:1])
    with pytest.raises(trivium.UnsupportedOpError, match=r"ZipMap: argument Z has .* option zipmap=False"):
        trivium.from_onnx(model)
