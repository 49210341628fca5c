"""Which convolutions have their images padded by an op of its own, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cpu.contraction.tiles import with_tiles
from trivium.compiler.passes.padding import ExplicitPadding
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, F32, TensorType, Type, tensor

LAST = ops.ConvDimensionNumbers(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))


def convolution(features: int, size: int, element: Type = BF16, dilation: int = 1) -> Module:
    kernel = tensor(3, 3, features, 5, of=element)

    def body(b, x: Value, w: Value) -> Value:
        options = {"feature_group_count": 1, "batch_group_count": 1, "lhs_dilation": [dilation] * 2}
        return b.add(ops.Convolution(x, w, padding=[(1, 0), (2, 1)], dimension_numbers=LAST, **options))

    return Module.build(functions=[Function.build("main", [tensor(1, size, size, features, of=element), kernel], body)])


def padded(module: Module, of_tiles: bool) -> bool:
    """Runs the pass, and returns whether it has changed the program."""
    rng = np.random.default_rng(0)
    kinds = [kind for kind in module.main.function_type.inputs if isinstance(kind, TensorType)]
    arguments = [rng.integers(-2, 3, kind.static_shape).astype(kind.dtype) for kind in kinds]
    before = evaluate(module, *arguments)
    changed = ExplicitPadding(with_tiles() if of_tiles else None).run(module)
    assert changed == any(isinstance(op, ops.Pad) for op in module.main.body.block)
    np.testing.assert_array_equal(evaluate(module, *arguments), before)
    return changed


@pytest.mark.parametrize(
    ("options", "changed"),
    [((32, 5), True), ((33, 5), False), ((32, 5, F32), False), ((32, 5, BF16, 2), False)],
    ids=str,
)
def test_images_of_whole_tiles(options: tuple, changed: bool) -> None:
    assert padded(convolution(*options), of_tiles=True) == changed


def test_few_features() -> None:
    assert padded(convolution(3, 24), of_tiles=False)
    assert not padded(convolution(3, 5), of_tiles=False)
    assert not padded(convolution(5, 24), of_tiles=False)
