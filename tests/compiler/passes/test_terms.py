"""Terms of sums: where a program returns the terms of a sum, each device has that of its own elements."""

import numpy as np
import pytest

from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret_devices
from trivium.compiler.lower import lower
from trivium.compiler.passes.partition import partition
from trivium.compiler.pipeline import inline, optimize
from trivium.ir.text import parse

ADDED = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %s = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""

X = np.arange(24, dtype=np.float32).reshape(4, 6) + 1
W = np.arange(8, dtype=np.float32).reshape(4, 2) - 3
W[3, 1] = np.inf
PLACES = np.array([0, 2, 2, 1], np.int32)
LOWER, UPPER = (np.arange(4) < 2)[:, None], (np.arange(4) >= 2)[:, None]
ONES = np.eye(3, dtype=np.float32)[PLACES].T

REDUCED = f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = "stablehlo.reduce"(%x, %zero) <{{dimensions = array<i64: 0>}}> {ADDED}
    : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>"""
LARGEST = REDUCED.replace("stablehlo.add", "stablehlo.maximum")
PRODUCT = """%y = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0]
  : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<6x2xf32>"""
SQUARE = PRODUCT.replace("%x, %w", "%x, %x").replace("4x2", "4x6").replace("6x2", "6x6")
SCATTERED = f"""%zeros = stablehlo.constant dense<1.0> : tensor<3x6xf32>
  %y = "stablehlo.scatter"(%zeros, %i, %x) <{{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> {ADDED}
    : (tensor<3x6xf32>, tensor<4xi32>, tensor<4x6xf32>) -> tensor<3x6xf32>"""

CASES = {
    "reduced": (REDUCED, "6", lambda x: x.sum(0)),
    "product": (PRODUCT, "6x2", lambda x: x.T @ np.where(x[:, :1] > 0, W, 0)),
    "scattered": (SCATTERED, "3x6", lambda x: ONES @ x + (x[0, 0] > 0)),
    "constrained": (
        "%y = sdy.sharding_constraint %x <@mesh, [{}, {}], unreduced={\"x\"}> : tensor<4x6xf32>", "4x6", lambda x: x
    ),
    "as given": ("%y = stablehlo.negate %x : tensor<4x6xf32>", "4x6", lambda x: -x),
}  # fmt: skip
"""A program, the shape of its result, and the term of a device that has some rows of x, the others being zeros."""

FIRST = {"largest": (LARGEST, "6", X.max(0)), "square": (SQUARE, "6x6", X.T @ X)}
"""Programs whose result is no sum of terms by rows of x, or is not seen to be one."""


def terms(body: str, shape: str, rows: str = '[{"x"}, {}]') -> list[np.ndarray]:
    rank = shape.count("x") + 1
    result = f'{{sdy.sharding = #sdy.sharding<@mesh, [{", ".join(["{}"] * rank)}], unreduced={{"x"}}>}}'
    text = f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: tensor<4x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, {rows}>}}, %w: tensor<4x2xf32>,
                    %i: tensor<4xi32>) -> (tensor<{shape}xf32> {result}) {{
      {body}
      return %y : tensor<{shape}xf32>
    }}"""
    divided = partition(inline(parse(text)), 1, 2)
    divided.module.verify()
    assert divided.results[0].part.terms == ((0, 1),)
    assert divided.has_device
    given = [[X, W, PLACES, np.array(device, np.uint32)] for device in range(2)]
    return [result for (result,) in interpret_devices(lower(optimize(divided.module), TARGET), given)]


@pytest.mark.parametrize("name", CASES)
def test_terms(name: str) -> None:
    body, shape, expected = CASES[name]
    for term, rows in zip(terms(body, shape), (LOWER, UPPER), strict=True):
        np.testing.assert_allclose(term, expected(np.where(rows, X, 0)), rtol=1e-6)


@pytest.mark.parametrize("name", FIRST)
def test_the_first_device_has_the_sum(name: str) -> None:
    body, shape, whole = FIRST[name]
    first, second = terms(body, shape)
    np.testing.assert_allclose(first, whole, rtol=1e-6)
    assert not second.any()


def test_what_is_not_divided_is_the_first_ones() -> None:
    first, second = terms(REDUCED, "6", "[{}, {}]")
    np.testing.assert_allclose(first, X.sum(0), rtol=1e-6)
    assert not second.any()
