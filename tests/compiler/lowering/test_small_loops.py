"""Loops that are one kernel, with their values in registers or updated in place, and loops that must not be one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.lowering.running import count_up, expect_same, program_of, run, some, whole
from tests.compiler.targets import TARGET
from trivium.compiler.lower import lower
from trivium.compiler.lowering.small_loops import TURNS
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import While
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.types import I32, tensor

LESS = ops.ComparisonDirection.LT


def scalar_loop(limit: int):
    """Counts, adds the table's element at that position, and carries a value that never changes and one from
    outside."""

    def main(b, table, x):
        outside = b.add(ops.Tanh(x))

        def body(b, i, total, same):
            place = b.add(ops.Remainder(i, whole(b, 7)))
            here = b.add(ops.Reshape(b.add(ops.DynamicSlice(table, [place], [1])), result=tensor()))
            return [b.add(ops.Add(b.add(ops.Multiply(total, same)), b.add(ops.Multiply(here, outside)))), same]

        return count_up(b, whole(b, limit), whole(b, 0), [x, b.add(ops.Constant(np.float32(0.5)))], body)

    return program_of([tensor(7), tensor()], main)


@pytest.mark.parametrize("limit", [0, 1, 20])
def test_a_loop_of_scalars_is_one_kernel(limit: int) -> None:
    module = scalar_loop(limit)
    expect_same(module, [some(7), some()])
    (loop,) = (step for step in lower(optimize(module), TARGET).steps if isinstance(step, While))
    assert [len(loop.condition), len(loop.body)] == [1, 1]


def test_a_loop_of_scalars_goes_on_in_the_next_launch() -> None:
    table, x = some(7), some()
    results = [run(lower(optimize(scalar_loop(TURNS + extra)), TARGET), [table, x])[0] for extra in (0, 1)]
    expected = results[0] * np.float32(0.5) + table[TURNS % 7] * np.tanh(x)
    np.testing.assert_allclose(results[1], expected, rtol=1e-6)


def place_of(b, *numbers: int):
    return [b.add(ops.Constant(np.int32(number))) for number in numbers]


def filled(order: str):
    """Multiplies a small matrix with one from outside, and writes a row of it to each row of a table, which the loop
    reads before (`r`) or after (`R`)."""

    def main(b, x, step, table):
        def body(b, i, x, table):
            product = b.add(ops.DotGeneral(x, step, ops.DotDimensionNumbers((), (), (1,), (0,))))
            row = b.add(ops.Slice(product, [1, 0], [2, 3], [1, 1]))
            here = [i, *place_of(b, 0)]
            read = lambda: b.add(ops.DynamicSlice(table, here, [1, 3]))  # noqa: E731
            old = read() if "r" in order else row
            updated = b.add(ops.DynamicUpdateSlice(table, row, here))
            new = read() if "R" in order else row
            both = b.add(ops.Add(old, new))
            again = b.add(ops.BroadcastInDim(both, broadcast_dimensions=(0, 1), result=x.type))
            return [b.add(ops.Add(product, again)), updated]

        return count_up(b, whole(b, 4), whole(b, 0), [x, table], body)

    return program_of([tensor(3, 3), tensor(3, 3), tensor(40, 3)], main)


@pytest.mark.parametrize("order", ["", "r", "R"])
def test_a_loop_over_small_arrays(order: str) -> None:
    module = filled(order)
    expect_same(module, [some(3, 3), some(3, 3, seed=1), some(40, 3)])
    (loop,) = (step for step in lower(optimize(module), TARGET).steps if isinstance(step, While))
    assert (len(loop.body) == 1) == ("R" not in order)


def test_a_small_array_that_is_read_at_a_run_time_index() -> None:
    def main(b, x):
        def body(b, i, x):
            picked = b.add(ops.DynamicSlice(b.add(ops.Add(x, x)), [i], [1]))
            direct = b.add(ops.DynamicSlice(x, [i], [1]))
            both = b.add(ops.Reshape(b.add(ops.Add(picked, direct)), result=tensor()))
            return [b.add(ops.Tanh(b.add(ops.BroadcastInDim(both, broadcast_dimensions=(), result=x.type))))]

        return count_up(b, whole(b, 3), whole(b, 1), [x], body)

    expect_same(program_of([tensor(4)], main), [some(4)])


def test_an_array_whose_old_value_is_returned_elsewhere_is_not_changed_in_place() -> None:
    def main(b, x, y):
        def body(b, i, x, y):
            one = b.add(ops.Slice(x, [1], [2], [1]))
            return [b.add(ops.DynamicUpdateSlice(x, one, [i])), x]

        return count_up(b, whole(b, 3), whole(b, 0), [x, y], body)

    expect_same(program_of([tensor(8)] * 2, main), [some(8), some(8, seed=1)])


def test_the_condition_of_a_small_loop_reads_what_its_body_changes() -> None:
    def main(b, table):
        types = [tensor(of=I32), table.type]

        def cond(b, i, table):
            here = b.add(ops.Reshape(b.add(ops.DynamicSlice(table, [i], [1])), result=tensor()))
            return b.add(ops.Compare(here, b.add(ops.Constant(np.float32(3))), LESS))

        def body(b, i, table):
            here = b.add(ops.DynamicSlice(table, [i], [1]))
            after = b.add(ops.Add(here, b.add(ops.Constant(np.ones(1, np.float32)))))
            full = b.add(
                ops.Compare(b.add(ops.Reshape(here, result=tensor())), b.add(ops.Constant(np.float32(1))), LESS)
            )
            following = b.add(ops.Select(full, i, b.add(ops.Add(i, whole(b, 1)))))
            return [following, b.add(ops.DynamicUpdateSlice(table, after, [i]))]

        return b.add(ops.While([whole(b, 0), table], region(types, cond), region(types, body)))

    module = program_of([tensor(20)], main)
    expect_same(module, [np.append(some(19), np.float32(9)).astype(np.float32)])
    (loop,) = (step for step in lower(optimize(module), TARGET).steps if isinstance(step, While))
    assert len(loop.body) == 1


def test_a_loop_that_computes_much_is_not_one_kernel() -> None:
    def main(b, x):
        return count_up(b, whole(b, 3), whole(b, 0), [x], lambda b, i, x: [b.add(ops.Tanh(x))])

    module = program_of([tensor(16)], main)
    expect_same(module, [some(16)])
    (loop,) = (step for step in lower(optimize(module), TARGET).steps if isinstance(step, While))
    assert len(loop.body) > 1
