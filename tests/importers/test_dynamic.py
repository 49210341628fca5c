"""Extents that the program computes: arithmetic, broadcasting and slices, against numbers."""

import numpy as np
import pytest

import trivium
from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.extents import Extent, chosen, clamped, divided, scalar_of
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.types import F32, TensorType


def module(body, *shapes: tuple[int | None, ...]) -> Module:
    """A module whose function is `body(emit, *arguments)`."""
    types = [TensorType(shape, F32) for shape in shapes]
    build = lambda builder, *arguments: body(DynamicEmitter(builder.block), *arguments)  # noqa: E731
    made = Module.build(functions=[Function.build("main", types, build)])
    made.verify()
    return made


@pytest.mark.parametrize("count", [0, 1, 4, 7])
@pytest.mark.parametrize(
    "compute",
    [
        lambda emit, n: n + 3 - n * 2,
        lambda emit, n: (n - 5) // 2,
        lambda emit, n: (n - 5) % 3,
        lambda emit, n: 10 - n,
        lambda emit, n: chosen(emit, "GT", n, 3, n, -n),
        lambda emit, n: clamped(emit, n, 2, 5),
        lambda emit, n: divided(emit, n, 2) if not isinstance(n, int) else n // 2,
    ],
)
def test_arithmetic(compute, count: int) -> None:
    def body(emit: DynamicEmitter, x: Value) -> Value:
        found: Extent = compute(emit, emit.extent(x, 0))
        return scalar_of(emit, found)

    (result,) = trivium.evaluate(module(body, (None,)), np.zeros(count, np.float32))
    assert result == compute(None, count)


def test_the_size_of_a_dimension_is_read_once() -> None:
    def body(emit: DynamicEmitter, x: Value) -> Value:
        y = emit.plus(emit.transpose(x, [1, 0]), emit.scalar(1, F32))
        assert emit.extent(x, 0) == emit.extent(y, 1)
        assert emit.binary(trivium.ir.ops.Add, y, y).defining_op.operands == (y, y)
        return y

    module(body, (None, 3))


@pytest.mark.parametrize("shapes", [((2, 1), (3,)), ((1, 3), (2, 1)), ((0, 1), (1, 4)), ((2, 3), (2, 3))])
def test_broadcasting_is_numpys(shapes) -> None:
    made = module(lambda emit, a, b: emit.plus(a, b), *[(None,) * len(shape) for shape in shapes])
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    for run in (trivium.evaluate, lambda made, *arrays: trivium.compile(made)(*arrays)):
        np.testing.assert_array_equal(run(made, *arrays)[0], arrays[0] + arrays[1])


def test_slices_and_pads() -> None:
    def body(emit: DynamicEmitter, x: Value) -> Value:
        n = emit.extent(x, 0)
        half = emit.slice(x, 0, n // 2, n)
        return emit.pad(half, [n - 3, 0], [1, 0], -1)

    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    (result,) = trivium.compile(module(body, (None, 2)))(x)
    np.testing.assert_array_equal(result, np.pad(x[2:], ((2, 1), (0, 0)), constant_values=-1))


@pytest.mark.parametrize("count", [0, 1, 4])
def test_pads_between_elements(count: int) -> None:
    def body(emit: DynamicEmitter, x: Value) -> Value:
        return emit.pad(x, [emit.extent(x, 0), 1], [0, -1], 0, [1, 2])

    x = np.arange(1, 2 * count + 1, dtype=np.float32).reshape(count, 2)
    (result,) = trivium.compile(module(body, (None, 2)))(x)
    expected = np.zeros((count + max(0, 2 * count - 1), 4), np.float32)
    expected[count::2, 1] = x[:, 0]
    np.testing.assert_array_equal(result, expected)
