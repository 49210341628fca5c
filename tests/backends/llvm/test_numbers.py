"""Numbers in generated code have the same results as Python's ints, no matter which of them are known."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory, of_numbers
from trivium.backends.llvm import memory
from trivium.backends.llvm.code import I32, Code
from trivium.backends.llvm.numbers import Int, Number, below, in_lanes, maximum, minimum

OPERATIONS: dict[str, Callable[[Number, Number], Number]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "minimum": minimum, "maximum": maximum,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic(name: str) -> None:
    operation = OPERATIONS[name]
    unknown = of_numbers(2, lambda _, a, b: operation(a, b))
    for a, b in product((-7, -1, 0, 1, 5), repeat=2):
        expected = operation(a, b)
        assert unknown(a, b) == expected
        assert of_numbers(1, lambda _, x, b=b: operation(x, b))(a) == expected
        assert of_numbers(1, lambda _, x, a=a: operation(a, x))(b) == expected


@pytest.mark.parametrize("divisor", [1, 2, 7])
def test_division(divisor: int) -> None:
    quotient = of_numbers(1, lambda _, a: a // divisor)
    rest = of_numbers(1, lambda _, a: divmod(a, divisor)[1])
    for number in (0, 1, 6, 7, 20):
        assert (quotient(number), rest(number)) == divmod(number, divisor)


def test_what_changes_nothing_emits_nothing() -> None:
    def emit(code: Code, x: Int) -> Number:
        assert x + 0 is x
        assert 0 + x is x
        assert x - 0 is x
        assert x * 1 is x
        assert x * 0 == 0
        assert divmod(x, 1) == (x, 0)
        assert not code.builder.block.instructions
        return x

    assert of_numbers(1, emit)(3) == 3


def test_below() -> None:
    inside = of_numbers(2, lambda code, a, b: Int(code, code.builder.zext(below(code, a, b), a.value.type)))
    assert [inside(number, 3) for number in (-1, 0, 2, 3)] == [0, 1, 1, 0]


def test_lanes_and_scalars_mix() -> None:
    """A scalar is the same in every lane, known or not."""

    def emit(code: Code, pointer: ll.Value) -> None:
        scalar = Int(code, code.builder.zext(code.builder.load(pointer, typ=I32), ll.IntType(64)))
        lanes = Int(code, in_lanes(code, 0, 4))
        for number in (scalar, 3):
            lanes = lanes + number
        lanes = minimum(lanes * 2, scalar + lanes)
        memory.store_vector(code, in_lanes(code, lanes, 4), pointer)

    array = np.full(4, 5, np.int32)
    of_memory(emit)(array.ctypes.data)
    assert array.tolist() == [13] * 4
