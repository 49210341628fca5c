"""Custom calls whose last operands stand for attributes are the ops that they stand for once these are known."""

from __future__ import annotations

import numpy as np

import trivium
from tests.ir.test_custom_targets import TOP, TRANSFORM
from trivium.compiler.passes.inline import Inline
from trivium.compiler.passes.refine import RefineShapes
from trivium.ir import ops
from trivium.ir.text import parse


def test_transforms() -> None:
    module = parse(TRANSFORM.replace("KIND", "#stablehlo<fft_type RFFT>"))
    Inline().run(module)
    RefineShapes(((2, 6), None), {1: np.array(6)}).run(module)
    (found,) = (op for op in module.walk() if isinstance(op, ops.Fft))
    assert found.fft_length == (6,)
    assert found.result.type.shape == (2, 4)


def test_largest_elements() -> None:
    x = np.array([[1, 3, 2, 3], [0, -1, -2, -3]], np.float32)
    values, indices = trivium.compile(parse(TOP))(x, np.int32(2))
    assert values.tolist() == [[3, 3], [0, -1]]
    assert indices.tolist() == [[1, 3], [0, 1]]
