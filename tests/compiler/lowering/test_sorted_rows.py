"""Which ways to sort rows are open, and the widths of the runs that passes merge."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiler.lowering.running import program_of
from trivium.compiler.lowering.radix import key_of_number
from trivium.compiler.lowering.sorted_rows import Sorting, widths
from trivium.ir import ops
from trivium.ir.types import F32, tensor


def sorting(extent: int, count: int, keys: bool = True) -> Sorting:
    module = program_of([tensor(3, extent)], lambda b, x: b.add(ops.Negate(x)))
    (op,) = [op for op in module.walk() if isinstance(op, ops.Negate)]
    unused: Any = None
    key = key_of_number(F32, descending=False) if keys else None
    return Sorting(op, [op.operand], 1, count, unused, unused, key)


@pytest.mark.parametrize(("extent", "keys", "digits"), [(255, True, False), (256, True, True), (1000, False, False)])
def test_digits(extent: int, keys: bool, digits: bool) -> None:
    assert sorting(extent, extent, keys).has_digits == digits


def test_scratch_holds_the_elements_and_twice_their_places_and_keys() -> None:
    assert sorting(1000, 1000).scratch_bytes == 1000 * (4 + 2 * 8)
    assert sorting(1000, 1000, keys=False).scratch_bytes == 1000 * (4 + 2 * 8)


def test_widths() -> None:
    assert [widths(extent) for extent in (1, 2, 5, 8)] == [[], [1], [1, 2, 4], [1, 2, 4]]
