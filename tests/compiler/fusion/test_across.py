"""Transposes before reductions and gathers of rows: part of the kernel, or kernels of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trivium import compile as compile_program
from trivium.backends.cpu.target import level
from trivium.compiler import pipeline
from trivium.compiler.fusion.across import LEAST
from trivium.compiler.lower import lower
from trivium.compiler.program import Launch
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.types import F32, I64, tensor

WIDE = level("x86-64-v4")


def centred(shape: tuple[int, ...], order: tuple[int, ...] = (0, 2, 3, 1), joined: bool = True) -> Module:
    """Subtracts the sum of each feature from a sum of two images; the second one lies in `order`, and there is only
    that one if they are not `joined`."""
    kind = tensor(*shape, of=F32)
    other = kind.with_shape(tuple(shape[d] for d in order))
    back = tuple(sorted(range(4), key=order.__getitem__))

    def body(b: Builder, x: Value, y: Value) -> Value:
        turned = b.add(ops.Transpose(y, permutation=back))
        both = b.add(ops.Add(x, turned)) if joined else b.add(ops.Multiply(turned, turned))
        sums = region([tensor(of=F32)] * 2, lambda b, p, q: b.add(ops.Add(p, q)))
        (total,) = b.add(ops.Reduce([both], [b.add(ops.Constant(np.float32(0)))], (0, 2, 3), sums))
        return b.add(ops.Subtract(both, b.add(ops.BroadcastInDim(total, broadcast_dimensions=(1,), result=kind))))

    return Module.build(functions=[Function.build("main", [kind, other], body)])


def launches(module: Module, target: Target) -> int:
    return sum(isinstance(step, Launch) for step in lower(pipeline.optimize(module, target), target).steps)


@pytest.mark.parametrize(
    ("shape", "options", "apart"),
    [
        pytest.param((2, 16, 16, 16), {}, True, id="across"),
        pytest.param((2, 8, 4, 4), {}, False, id="in the first-level cache"),
        pytest.param((2, 16, 16, 16), {"order": (1, 0, 2, 3)}, False, id="along memory"),
        pytest.param((2, 16, 16, 16), {"joined": False}, False, id="nothing lies along the rows"),
    ],
)
def test_which_transposes_are_separate_kernels(shape: tuple[int, ...], options: dict, apart: bool) -> None:
    assert (np.prod(shape) >= LEAST) == (shape != (2, 8, 4, 4))
    module = centred(shape, **options)
    assert launches(module, WIDE) == launches(module, replace(WIDE, layouts=None)) + apart


def gathered(width: int, order: tuple[int, int, int]) -> Module:
    """Rows of images whose dimensions are turned to `order`, of which the first two become one."""
    indices = tensor(5, of=I64)

    def body(b: Builder, x: Value, places: Value) -> Value:
        turned = b.add(ops.Transpose(x, permutation=order))
        first, second, last = turned.type.static_shape
        rows = b.add(ops.Reshape(turned, result=tensor(first * second, last, of=F32)))
        numbers = ops.GatherDimensionNumbers((1,), (0,), (), (), (0,), 1)
        return b.add(ops.Tanh(b.add(ops.Gather(rows, places, numbers, (1, width)))))

    return Module.build(functions=[Function.build("main", [tensor(4, 16, 80, of=F32), indices], body)])


@pytest.mark.parametrize(
    ("width", "order", "apart"), [(16, (0, 2, 1), True), (3, (0, 2, 1), False), (80, (1, 0, 2), False)]
)
def test_a_transpose_is_apart_from_a_gather_of_rows_across_it(
    width: int, order: tuple[int, int, int], apart: bool
) -> None:
    module, x, places = gathered(width, order), np.random.rand(4, 16, 80).astype("f"), np.array([0, 7, 7, 63, 30])
    assert launches(module, WIDE) == 1 + apart
    turned = x.transpose(order)
    wanted = np.tanh(turned.reshape(-1, turned.shape[-1])[places, :width])
    np.testing.assert_allclose(compile_program(module)(x, places)[0], wanted, rtol=1e-5)


def test_results_are_numpys() -> None:
    module, rng = centred((3, 17, 20, 9)), np.random.default_rng(0)
    x, y = (rng.integers(-9, 10, shape).astype("f") for shape in ((3, 17, 20, 9), (3, 20, 9, 17)))
    both = x + np.moveaxis(y, 3, 1)
    np.testing.assert_array_equal(compile_program(module)(x, y)[0], both - both.sum((0, 2, 3), keepdims=True))
