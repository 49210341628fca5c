"""Custom calls that stand for ops return the same as those ops."""

import math

import numpy as np
import pytest

import trivium
from trivium.ir import custom_targets
from trivium.ir.errors import ExecutionError
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

ASSERTION = """
func.func @main(%holds: tensor<i1>, %x: tensor<i32>, %y: tensor<i64>) -> tensor<i32> {
  stablehlo.custom_call @shape_assertion(%holds, %x, %y) {has_side_effect = true MESSAGE}
    : (tensor<i1>, tensor<i32>, tensor<i64>) -> ()
  return %x : tensor<i32>
}
"""


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (', error_message = "has {1} and {0}, {{0}, {2}"', "has -5 and 3, {0}, {2}"),
        ("", "a shape assertion does not hold"),
    ],
)
def test_shape_assertion(message, told):
    module = parse(ASSERTION.replace("MESSAGE", message))
    assert evaluate(module, True, 3, -5)[0] == 3
    with pytest.raises(ExecutionError) as caught:
        evaluate(module, False, 3, -5)
    assert caught.value.message == told


WINDOWS = """
func.func @main(%x: tensor<?xf32>, %size: tensor<1xi32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %padding = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi32>
  %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %size, %one, %one, %one, %padding)
    {called_computations = [@sum]} : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
    tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
"""


def test_dynamic_reduce_window():
    x = np.arange(1, 5, dtype=np.float32)
    module = parse(WINDOWS)
    module.verify()
    assert evaluate(module, x, np.array([2], np.int32))[0].tolist() == [1, 3, 5, 7]
    assert evaluate(module, x, np.array([5], np.int32))[0].tolist() == [10]


TOP = """
func.func @main(%x: tensor<2x4xf32>, %k: tensor<i32>) -> (tensor<2x?xf32>, tensor<2x?xi32>) {
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
    : (tensor<2x4xf32>, tensor<i32>) -> (tensor<2x?xf32>, tensor<2x?xi32>)
  return %0#0, %0#1 : tensor<2x?xf32>, tensor<2x?xi32>
}
"""


def test_dynamic_top_k():
    x = np.array([[1, 3, 2, 3], [0, -1, -2, np.nan]], np.float32)
    values, indices = evaluate(parse(TOP), x, np.int32(2))
    np.testing.assert_array_equal(values, np.array([[3, 3], [np.nan, 0]], np.float32))
    assert indices.tolist() == [[1, 3], [3, 0]]


TRANSFORM = """
func.func @main(%x: tensor<2x?xf32>, %n: tensor<i64>) -> tensor<2x?xcomplex<f32>> {
  %0 = stablehlo.custom_call @trivium.dynamic_fft(%x, %n) {fft_type = KIND}
    : (tensor<2x?xf32>, tensor<i64>) -> tensor<2x?xcomplex<f32>>
  return %0 : tensor<2x?xcomplex<f32>>
}
"""


@pytest.mark.parametrize("run", [evaluate, lambda module, *args: trivium.compile(module)(*args)])
def test_dynamic_transforms(run):
    x = np.arange(12, dtype=np.float32).reshape(2, 6) ** 2
    (found,) = run(parse(TRANSFORM.replace("KIND", "#stablehlo<fft_type RFFT>")), x, np.int64(6))
    np.testing.assert_allclose(found, np.fft.rfft(x), rtol=1e-4, atol=1e-4)
    with pytest.raises(trivium.Error, match="has no fft_type, expected one"):
        run(parse(TRANSFORM.replace("KIND", "3 : i32")), x, np.int64(6))


OLDER_TOP = """
func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = LARGEST}}
    : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
  return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xi32>
}
"""


@pytest.mark.parametrize("run", [evaluate, lambda module, x: trivium.compile(module)(x)])
def test_older_top_k(run):
    x = np.array([[1, 3, 2, 3], [0, -1, -2, np.nan]], np.float32)
    values, indices = run(parse(OLDER_TOP.replace("LARGEST", "true")), x)
    np.testing.assert_array_equal(values, np.array([[3, 3], [np.nan, 0]], np.float32))
    assert indices.tolist() == [[1, 3], [3, 0]]
    with pytest.raises(trivium.Error, match="expected k, and largest to be true"):
        run(parse(OLDER_TOP.replace("LARGEST", "false")), x)


OLDER_FUNCTIONS = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atanh": np.arctanh,
    "cosh": np.cosh, "erf": np.vectorize(math.erf), "sinh": np.sinh, "tan": np.tan,
}  # fmt: skip


@pytest.mark.parametrize("run", [evaluate, lambda module, x: trivium.compile(module)(x)])
def test_older_functions(run):
    assert {f"mhlo.{name}" for name in OLDER_FUNCTIONS} == custom_targets.XLA_FUNCTIONS.keys()
    for name, function in OLDER_FUNCTIONS.items():
        call = f"stablehlo.custom_call @mhlo.{name}(%x) {{mhlo.version = 1 : i64}} : (tensor<3xf32>) -> tensor<3xf32>"
        text = f"func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{\n%0 = {call}\nreturn %0 : tensor<3xf32>\n}}"
        x = np.array([0.25, 0.5, 0.75], np.float32) + (name == "acosh")
        np.testing.assert_allclose(run(parse(text), x)[0], function(np.float64(x)), rtol=1e-6)
