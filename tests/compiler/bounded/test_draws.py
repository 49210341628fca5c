"""Random numbers of open shapes."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.compiler.bounded.programs import as_list
from trivium.compiler.bounded import Unbounded, bounded

DRAWN = """func.func @main(%state: tensor<2xui64>, %x: tensor<?x3xf32>) -> (tensor<2xui64>, tensor<?x3xui32>) {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %a = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %shape = stablehlo.concatenate %a, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%state, %shape)
      {rng_algorithm = #stablehlo<rng_algorithm PHILOX>} : (tensor<2xui64>, tensor<2xi32>)
      -> (tensor<2xui64>, tensor<?x3xui32>)
    return %r#0, %r#1 : tensor<2xui64>, tensor<?x3xui32> }"""


def test_as_many_are_drawn_as_there_is_space_for() -> None:
    module = trivium.parse(DRAWN)
    program = bounded(module, [[(2,), (n, 3)] for n in (2, 5)], {})
    assert program.results == (((2, 2),), ((2, 5), (3, 3)))
    state = np.array([7, 9], np.uint64)
    largest = as_list(trivium.evaluate(module, state, np.zeros((5, 3), np.float32)))
    run = trivium.compile(program.module)
    for number in range(2):
        found = run(state, np.zeros((5, 3), np.float32), *program.extents_of(number))
        for one, other in zip(found, largest, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_shape_that_depends_on_data_is_refused() -> None:
    text = DRAWN.replace("get_dimension_size %x, dim = 0", "custom_call @size(%x)")
    with pytest.raises(Unbounded, match="custom_call: it cannot compute with several sizes at once"):
        bounded(trivium.parse(text), [[(2,), (n, 3)] for n in (2, 5)], {})
