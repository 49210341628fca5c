"""Products of quantized numbers, compiled: exact for bytes with and without a sign, and computed from bytes. File tests
show the programs (`cases/byte-products.mlir`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest

import trivium
from trivium.backends.cpu.target import host
from trivium.compiler.pipeline import optimize
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.types import I8, I32, UI8, TensorType, Type, tensor

Zero = int | Literal["byte"] | None
"""A zero point; None for one that is an argument, "byte" for one that is an argument of the type of the numbers."""


def centered(b: Builder, stored: Value, zero: Value | int) -> Value:
    wide = stored.type.with_element(I32)
    point = b.add(ops.Constant(np.int32(zero))) if isinstance(zero, int) else zero
    everywhere = b.add(ops.BroadcastInDim(point, (), result=wide))
    return b.add(ops.Subtract(b.add(ops.Convert(stored, result=wide)), everywhere))


def program(types: Sequence[TensorType], zeros: Sequence[Zero], product) -> Module:
    """Returns the program of a product of two arguments less their zero points; two more arguments are zero points."""
    kinds = [kind.element_type if zero == "byte" else I32 for kind, zero in zip(types, zeros, strict=True)]

    def body(b: Builder, *arguments: Value):
        wide = [b.add(ops.Convert(x, result=tensor(of=I32))) for x in arguments[2:]]
        points = [zero if isinstance(zero, int) else wide[i] for i, zero in enumerate(zeros)]
        return b.add(product(*(centered(b, x, zero) for x, zero in zip(arguments, points, strict=False))))

    module = Module.build(functions=[Function.build("main", [*types, *(tensor(of=kind) for kind in kinds)], body)])
    module.verify()
    return module


def draw(kind: TensorType) -> np.ndarray:
    limits = np.iinfo(kind.dtype)
    return np.random.default_rng(0).integers(limits.min, limits.max, kind.static_shape, kind.dtype, endpoint=True)


def factors(module: Module) -> list[Type]:
    """Returns the element types of the factors of products that are left after all passes."""
    found = (op for op in optimize(module, host()).walk() if isinstance(op, ops.DotGeneral | ops.Convolution))
    return [operand.type.element_type for op in found for operand in op.operands]


def matmul(lhs: Value, rhs: Value) -> ops.DotGeneral:
    return ops.DotGeneral(lhs, rhs, ops.DotDimensionNumbers((), (), (1,), (0,)))


ZEROS = [(0, 0), (133, 0), (128, 128), (7, 255), (None, 0), (0, None), (None, None)]


@pytest.mark.parametrize("zeros", ZEROS, ids=str)
@pytest.mark.parametrize("elements", [(UI8, I8), (I8, I8), (UI8, UI8)], ids=str)
def test_products(elements: tuple[Type, Type], zeros: tuple[Zero, Zero]) -> None:
    types = [tensor(9, 700, of=elements[0]), tensor(700, 33, of=elements[1])]
    module = program(types, zeros, matmul)
    assert factors(module) == [I8, I8]
    lhs, rhs = map(draw, types)
    points = [np.int32(-77), np.int32(1 << 20)]
    numbers = [x.astype(np.int64) - (point if zero is None else zero)
               for x, zero, point in zip((lhs, rhs), zeros, points, strict=True)]  # fmt: skip
    (found,) = trivium.compile(module)(lhs, rhs, *points)
    np.testing.assert_array_equal(found, (numbers[0] @ numbers[1]).astype(np.int32))


OPTIONS = {
    "plain": {},
    "padded": {"padding": [(1, 2), (0, 1)]},
    "cut off": {"padding": [(-1, 1), (1, -2)]},
    "strided": {"padding": [(1, 1), (1, 1)], "window_strides": [2, 3]},
    "dilated": {"padding": [(1, 1), (2, 1)], "rhs_dilation": [2, 1]},
    "transposed": {"padding": [(1, 0), (0, 1)], "lhs_dilation": [2, 2]},
    "grouped": {"padding": [(1, 1), (1, 1)], "feature_group_count": 2},
}


@pytest.mark.parametrize(
    "zeros",
    [(133, 0), (128, 128), (0, 3), (None, 0), (300, 0), ("byte", 0), (9, "byte"), ("byte", "byte"), (None, None)],
    ids=str,
)
@pytest.mark.parametrize("name", OPTIONS)
def test_convolutions(name: str, zeros: tuple[Zero, Zero]) -> None:
    """An image with a zero point that padding cannot have, and a kernel with groups and one, stay in 32 bits."""
    options = {"feature_group_count": 1, "batch_group_count": 1} | OPTIONS[name]
    inputs = 8 // options["feature_group_count"]
    numbers = ops.ConvDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))
    types = [tensor(2, 8, 6, 7, of=UI8), tensor(6, inputs, 3, 2, of=UI8 if zeros[1] else I8)]
    module = program(types, zeros, lambda x, y: ops.Convolution(x, y, dimension_numbers=numbers, **options))
    pads = "padding" in options or "lhs_dilation" in options
    byte = (zeros[1] in (0, 128) or inputs == 8) and (not pads or zeros[0] not in (None, 300))
    assert (factors(module) == [I8, I8]) == byte
    points = [kind.dtype.type(5 + i) for i, kind in enumerate(module.main.function_type.inputs[2:])]
    arguments = [*map(draw, types), *points]
    for ours, expected in zip(trivium.compile(module)(*arguments), trivium.evaluate(module, *arguments), strict=True):
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize(
    ("least", "greatest"), [(-128, 127), (-255, 0), (0, 255), (1 << 30, (1 << 30) + 255), (0, 256)]
)
def test_constants_of_32_bits(least: int, greatest: int) -> None:
    """Small weights are folded with their conversion, and are bytes and a zero point if their range is a byte's."""
    x, known = (
        tensor(9, 70, of=UI8),
        np.random.default_rng(0).integers(least, greatest, (70, 33), np.int32, endpoint=True),
    )
    known[:2, 0] = least, greatest

    def product(b: Builder, x: Value):
        return b.add(matmul(centered(b, x, 133), b.add(ops.Constant(known))))

    def image(b: Builder, x: Value):
        numbers = ops.ConvDimensionNumbers(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))
        kernel, rows = b.add(ops.Constant(known.reshape(1, 70, 33))), x.type.with_shape((1, 9, 70))
        options = {"dimension_numbers": numbers, "feature_group_count": 1, "batch_group_count": 1}
        return b.add(ops.Convolution(centered(b, b.add(ops.Reshape(x, result=rows)), 133), kernel, **options))

    for body in (product, image):
        module = Module.build(functions=[Function.build("main", [x], body)])
        assert (factors(module) == [I8, I8]) == (greatest - least < 256)
        (found,), (wanted,) = trivium.compile(module)(draw(x)), trivium.evaluate(module, draw(x))
        np.testing.assert_array_equal(found, wanted)
