"""The largest elements of rows of which few are needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of, run
from tests.compiler.lowering.test_radix import DIRECTIONS, numbers
from tests.compiler.lowering.test_sorting import lowered, names
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.lowering.radix import COUNTS
from trivium.compiler.lowering.selection import BLOCK, MOST
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import F32, F64, I8, I32, UI16, Type, tensor

SCARCE = replace(TARGET, fusion=replace(TARGET.fusion, scratch_bytes=COUNTS))


def greatest(shape: tuple[int, ...], k: int, kind: Type) -> Module:
    return program_of([tensor(*shape, of=kind)], lambda b, x: b.add(ops.TopK(x, k=k)))


@pytest.mark.parametrize("kind", [F32, F64, I8, I32, UI16], ids=str)
@pytest.mark.parametrize(("extent", "k"), [(512, MOST), (257, 1), (319, 5), (1000, 33)])
def test_every_type(kind: Type, extent: int, k: int) -> None:
    module, argument = greatest((3, extent), k, kind), numbers((3, extent), kind)
    argument[1] = np.sort(argument[1])
    for result, wanted in zip(run(lowered(module, TARGET), [argument]), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_the_interpreter_selects_too() -> None:
    module, argument = greatest((1, 300), 4, I8), numbers((1, 300), I8)
    for result, wanted in zip(interpret(lowered(module, TARGET), argument), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_rows_that_do_not_fit_in_scratch() -> None:
    """Their keys are computed in memory, whatever dimension they are along."""
    for shape in ((2, 700), (MOST * 10 + 1,), (3, BLOCK * 7)):
        module, argument = greatest(shape, 7, F32), numbers(shape, F32)
        program = lowered(module, SCARCE)
        assert names(program) == ["top_k_0_begin", "top_k_0_select"]
        for results in (run(program, [argument]), interpret(program, argument)):
            for result, wanted in zip(results, evaluate(module, argument), strict=True):
                np.testing.assert_array_equal(result, wanted)


def test_the_first_of_long_columns() -> None:
    def first(b, x):
        places = b.add(ops.Iota(0, result=tensor(500, 3, of=I32)))
        kinds = [tensor(of=F32), tensor(of=F32), tensor(of=I32), tensor(of=I32)]
        order = ops.ComparisonType.TOTALORDER
        less = region(kinds, lambda b, p, q, *_: b.add(ops.Compare(p, q, DIRECTIONS.LT, compare_type=order)))
        found = b.add(ops.Sort([b.add(ops.Negate(x)), places], dimension=0, is_stable=True, comparator=less))
        return [b.add(ops.Slice(v, [0, 0], [9, 3], [1, 1])) for v in found]

    module, argument = program_of([tensor(500, 3)], first), numbers((500, 3), F32)
    program = lowered(module, SCARCE)
    assert "_select" in names(program)
    for result, wanted in zip(run(program, [argument]), evaluate(module, argument), strict=True):
        np.testing.assert_array_equal(result, wanted)
