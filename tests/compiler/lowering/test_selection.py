"""The largest elements of rows of which few are needed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run
from tests.compiler.lowering.test_radix import numbers
from tests.compiler.lowering.test_sorting import lowered
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.lowering.selection import BLOCK, MOST, padded
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import F32, F64, I8, I32, UI16, Type, tensor


def greatest(shape: tuple[int, ...], k: int, kind: Type) -> Module:
    return program_of([tensor(*shape, of=kind)], lambda b, x: b.add(ops.TopK(x, k=k)))


@pytest.mark.parametrize("kind", [F32, F64, I8, I32, UI16], ids=str)
@pytest.mark.parametrize(("extent", "k"), [(256, MOST), (257, 1), (319, 5), (1000, 33)])
def test_every_type(kind: Type, extent: int, k: int) -> None:
    module, argument = greatest((3, extent), k, kind), numbers((3, extent), kind)
    argument[1] = np.sort(argument[1])
    for result, wanted in zip(run(lowered(module, TARGET), [argument]), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_the_interpreter_selects_too() -> None:
    module, argument = greatest((1, 300), 4, I8), numbers((1, 300), I8)
    for result, wanted in zip(interpret(lowered(module, TARGET), argument), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_rows_are_padded_to_whole_blocks() -> None:
    assert [padded(extent) for extent in (1, BLOCK, BLOCK + 1)] == [BLOCK, BLOCK, 2 * BLOCK]
