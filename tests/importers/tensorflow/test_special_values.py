"""Elementwise rules against TensorFlow at zeros of both signs, infinities, NaN, and the limits of integers."""

import inspect
import os

import ml_dtypes
import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium
from tests.importers.special_values import assert_runs, numbers, pairs

pytestmark = pytest.mark.tensorflow

# Excluded: Maximum and similar ops on zeros of both signs (the result depends on the lane of a vector).
UNARY = [
    *(
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Cos",
        "Cosh",
        "Digamma",
        "Erfc",
        "Exp",
        "Expm1",
    ),
    *("Floor", "IsFinite", "IsInf", "IsNan", "Lgamma", "Log", "Log1p", "Neg", "Reciprocal", "Rint", "Rsqrt", "Sigmoid"),
    *("Sign", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "Invert"),
]
BINARY = [
    *("AddV2", "Atan2", "Div", "DivNoNan", "Equal", "FloorDiv", "FloorMod", "Greater", "LessEqual", "Mod", "Mul"),
    *("MulNoNan", "NotEqual", "Pow", "RealDiv", "Sub", "SquaredDifference", "TruncateDiv", "TruncateMod", "Xdivy"),
    *("Xlog1py", "Xlogy", "LeftShift", "RightShift", "TanhGrad", "SigmoidGrad", "SqrtGrad", "ReciprocalGrad"),
]


def check(name: str, arrays: tuple[np.ndarray, ...]) -> None:
    raw = getattr(tf.raw_ops, name)
    names = list(inspect.signature(raw).parameters)[: len(arrays)]

    def call(*operands):
        return raw(**dict(zip(names, operands, strict=True)))

    try:
        expected = call(*map(tf.constant, arrays)).numpy()
    except (TypeError, ValueError, tf.errors.OpError):
        pytest.skip("TensorFlow has no such op for this type")
    module = trivium.from_tensorflow(tf.function(call, autograph=False), *arrays)
    assert_runs(module, arrays, expected)


@pytest.mark.parametrize("kind", [np.float32, np.int32], ids=["float32", "int32"])
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str, kind: type) -> None:
    check(name, (numbers(kind),))


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint8], ids=["float32", "int32", "uint8"])
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, kind: type) -> None:
    check(name, pairs(kind))


@pytest.mark.parametrize("kind", [np.float64, np.float16, ml_dtypes.bfloat16], ids=["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"])
def test_quotients_and_remainders(name: str, kind: type) -> None:
    check(name, pairs(kind))


def test_integers_are_round() -> None:
    """TensorFlow's kernel for integers returns zeros; `tf.round` does not call it."""
    x = np.array([-(2**63), -(2**53) - 1, -4, 0, 7, 2**53 + 1, 2**63 - 1])
    assert_runs(trivium.from_tensorflow(tf.function(lambda x: tf.raw_ops.Round(x=x)), x), (x,), tf.round(x).numpy())


def test_the_tails_of_the_normal_distribution() -> None:
    """Where `2 * p - 1` rounds to -1, TensorFlow still distinguishes values."""
    p = np.array([0, 1e-30, 1e-12, 1e-6, 0.01, 0.13, 0.14, 0.5, 0.86, 0.99, 1 - 1e-6, 1, 1.5, -1, np.nan], np.float64)
    for kind in (np.float32, np.float64):
        check("Ndtri", (p.astype(kind),))


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 0.0)])
def test_gradients_of_fake_quantization(bounds: tuple[float, float]) -> None:
    def slopes(dy, x):
        low, high = map(tf.constant, bounds)
        return tf.raw_ops.FakeQuantWithMinMaxVarsGradient(gradients=dy, inputs=x, min=low, max=high)

    given = np.meshgrid([1.0, np.nan, np.inf, -2.0], [0.0, 0.5, 3.0, -3.0, np.nan, np.inf])
    dy, x = (side.ravel().astype(np.float32) for side in given)
    run = trivium.compile(trivium.from_tensorflow(tf.function(slopes), dy[:1], x[:1]))
    for one, at in zip(dy, x, strict=True):
        got, wanted = run(np.array([one]), np.array([at])), slopes(tf.constant([one]), tf.constant([at]))
        for mine, theirs in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs)
