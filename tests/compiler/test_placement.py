"""Places of values: in the arena, and in the memory of results that are not computed yet."""

from __future__ import annotations

import numpy as np

from tests.compiler.lowering.running import expect_same, program_of, some
from trivium.compiler.kernel.dtypes import DType
from trivium.compiler.placement import Allocation, place
from trivium.compiler.program import Arena, Array, Output
from trivium.ir import ops
from trivium.ir.types import I8, tensor


def chain_of_products(count: int):
    def main(b, x):
        first = last = b.add(ops.DotGeneral(x, x, ops.DotDimensionNumbers((), (), (1,), (0,))))
        for _ in range(count):
            last = b.add(ops.DotGeneral(last, first, ops.DotDimensionNumbers((), (), (1,), (0,))))
        return [b.add(ops.Tanh(x)), last]

    return main


def test_values_are_in_results_that_are_not_computed_yet():
    """A chain of products needs three buffers at a time. The last one writes a result, which can hold every other value
    before; the other result is computed first."""
    program = expect_same(program_of([tensor(160, 160)], chain_of_products(4)), [some(160, 160) / 30])
    shared = {v.name for v in program.values() if isinstance(v.storage, Output)} - {v.name for v in program.outputs}
    assert shared
    assert program.arena_size == 2 * 160 * 160 * 4


def test_small_results_are_not_shared():
    program = expect_same(program_of([tensor(16, 16)], chain_of_products(4)), [some(16, 16) / 4])
    assert program.arena_size == 3 * 16 * 16 * 4


def test_several_values_share_a_result():
    """Two values beside each other in a larger one."""

    def main(b, x):
        one, other = (
            b.add(ops.DotGeneral(x, y, ops.DotDimensionNumbers((), (), (1,), (0,)))) for y in (x, halved(b, x))
        )
        product = b.add(ops.DotGeneral(one, other, ops.DotDimensionNumbers((), (), (1,), (0,))))
        return b.add(ops.Concatenate([product] * 3, dimension=0))

    def halved(b, x):
        return b.add(ops.Multiply(x, b.add(ops.Constant(np.full((160, 160), 0.5, np.float32)))))

    program = expect_same(program_of([tensor(160, 160)], main), [some(160, 160) / 30])
    offsets = [v.storage.offset for v in program.values() if isinstance(v.storage, Output)]
    assert sorted(set(offsets)) == [0, 160 * 160 * 4, 2 * 160 * 160 * 4][: len(set(offsets))]
    assert len(set(offsets)) > 1


def test_values_are_in_results_of_elements_as_large_as_theirs():
    """The caller may align a result of bytes to a byte."""

    def main(b, x):
        product = x
        for _ in range(4):
            product = b.add(ops.DotGeneral(product, x, ops.DotDimensionNumbers((), (), (1,), (0,))))
        return b.add(ops.Convert(product, result=tensor(320, 320, of=I8)))

    program = expect_same(program_of([tensor(320, 320)], main), [some(320, 320) / 100])
    assert not {v for v in program.values() if isinstance(v.storage, Output)} - set(program.outputs)


def allocation(nbytes: int, first: int, last: int, output: Output | None = None) -> Allocation:
    """Returns the allocation of bytes that are alive from one time to another."""
    points = (1 << last + 1) - (1 << first)
    return Allocation([Array(f"{first}.{last}", DType("i8"), (nbytes,), output or Arena(0))], points, nbytes, output)


def offset(one: Allocation) -> int:
    found = one.values[0].storage
    assert isinstance(found, Arena)
    assert found.offset is not None
    return found.offset


def test_values_that_are_alive_at_one_time_share_no_bytes():
    values = [allocation(64 * size, *alive) for size, alive in ((1, (0, 3)), (4, (2, 5)), (2, (4, 9)), (3, (6, 8)))]
    size = place(values, 64, 1 << 16)
    for number, one in enumerate(values):
        begin, end = offset(one), offset(one) + one.nbytes
        assert 0 <= begin < end <= size
        assert begin % 64 == 0
        for other in values[:number]:
            apart = end <= offset(other) or offset(other) + other.nbytes <= begin
            assert apart or not one.points & other.points
    assert size == 64 * (4 + 2)  # what is alive at the times 4 and 5


def test_a_result_holds_values_only_before_it_is_written():
    result = allocation(1000, 5, 9, Output(0))
    before, during, small = allocation(900, 0, 3), allocation(900, 4, 6), allocation(100, 0, 3)
    assert place([result, before, during, small], 64, 500) == 900 + 100 - 100
    assert before.values[0].storage == Output(0, 0)
    assert offset(during) == 0
    assert offset(small) == 0
