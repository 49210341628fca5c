"""Products whose result has another kind of element type than their operands."""

from __future__ import annotations

import warnings

import numpy as np

import trivium
from trivium.ir.text import parse


def test_a_real_result_of_complex_numbers():
    """Operands are converted first, which keeps only their real parts: interpreted and compiled, without a warning."""
    module = parse(
        """func.func @main(%x: tensor<2x2xcomplex<f32>>, %y: tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32> {
          %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
            : (tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32>
          return %0 : tensor<2x2xf32>
        }"""
    )
    module.verify()
    x = np.full((2, 2), 1 + 2j, np.complex64)
    expected = np.full((2, 2), 2, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(trivium.evaluate(module, x, x)[0], expected)
        np.testing.assert_array_equal(trivium.compile(module)(x, x)[0], expected)
