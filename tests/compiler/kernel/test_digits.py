"""Sums over digits of an index compute the same along each of them, and other indices stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.compiler.kernel import Index, KernelBuilder, Loop
from trivium.compiler.kernel.digits import split_indices
from trivium.compiler.kernel.index import variable
from trivium.compiler.kernel.interpreter import garbage, run
from trivium.compiler.kernel.structure import Position, Register, walk


def turned(i: Register) -> list[Index]:
    """Returns the place, in an array of 4 x 6 x 5, of the element with a number in another order."""
    at = variable(i)
    return [at // 5 % 4, at // 20, at % 5]


def summed(places, numbered: bool = False) -> tuple[Loop, float]:  # type: ignore[no-untyped-def]
    """Returns the loop of a sum of elements at places, or of their products with their numbers, and the sum."""
    b = KernelBuilder("sum")
    x, y = b.input("x", "f32", (4, 6, 5)), b.output("y", "f32", (1,))
    with b.parallel(1) as (row,):
        with b.reduction(120, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            value = b.load(x, *places(loop.index))
            loop.yield_(b.multiply(value, b.convert(loop.index, "f32")) if numbered else value)
        split_indices(loop.loop)
        b.store(y, loop.result, row)
    kernel = b.build()
    memory = garbage(1, np.dtype(np.float32))
    run(kernel, [np.arange(120, dtype=np.float32), memory], False)
    return loop.loop, memory.item()


def test_each_digit_has_a_loop() -> None:
    loop, total = summed(turned)
    assert loop.extents == (6, 4, 5)
    assert total == np.arange(120).sum()
    assert not any(isinstance(i, Position) for i in walk(loop.body))


def test_the_number_itself_stays_known() -> None:
    x = np.arange(120).reshape(4, 6, 5)
    loop, total = summed(turned, numbered=True)
    assert loop.extents == (6, 4, 5)
    assert total == (x.transpose(1, 0, 2).ravel() * np.arange(120)).sum()


@pytest.mark.parametrize(
    "places",
    [
        lambda i: [variable(i) // 30, variable(i) // 5 % 6, variable(i) % 5],  # neighbours in memory
        lambda i: [(variable(i) + 1) // 5 % 4, variable(i) // 20, variable(i) % 5],  # not the digits themselves
        lambda i: [variable(i) // 5 % 4, variable(i) // 20, variable(i) % 3],  # 3 does not divide 5
    ],
)
def test_other_indices_stay(places) -> None:  # type: ignore[no-untyped-def]
    assert summed(places)[0].extents == (120,)
