"""Kernels with short loops written out compute the same, and what is too long stays as it is."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.compiler.kernel import Kernel, KernelBuilder, Loop, expression
from trivium.compiler.kernel.interpreter import garbage, run
from trivium.compiler.kernel.structure import Apply, If, Load, Scratch, walk
from trivium.compiler.kernel.written_out import LARGEST, written_out


def result(kernel: Kernel, *inputs: np.ndarray) -> np.ndarray:
    output = kernel.params[-1]
    memory = garbage(output.size, np.dtype(np.float32))
    run(kernel, [*(array.reshape(-1) for array in inputs), memory], False)
    return memory.reshape(output.shape)


def same(kernel: Kernel, *shapes: tuple[int, ...]) -> Kernel:
    """Returns the kernel with its loops written out, which computes the same."""
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    short = written_out(kernel, fused=False)
    assert short is not None
    np.testing.assert_allclose(result(short, *inputs), result(kernel, *inputs), rtol=1e-6, atol=1e-6)
    assert all(isinstance(i, Loop) and not any(isinstance(j, Loop) for j in walk(i.body)) for i in loops(short))
    return short


def loops(kernel: Kernel) -> list[Loop]:
    return [i for i in kernel.body.instructions if isinstance(i, Loop)]


def count(kernel: Kernel, kind: type) -> int:
    return sum(isinstance(i, kind) for i in walk(kernel.body))


def softmax(rows: int, length: int) -> Kernel:
    b = KernelBuilder("softmax")
    x, y = b.input("x", "f32", (rows, length)), b.output("y", "f32", (rows, length))
    with b.parallel(rows) as (i,):
        with b.reduction(length, inits=[b.constant(-np.inf, "f32")], combiner="maximum") as largest:
            largest.yield_(b.load(x, i, largest.index))
        held = b.scratch("f32", (length,))
        with b.parallel(length) as (j,):
            b.store(held, b.apply("exponential", b.subtract(b.load(x, i, j), largest.result)), j)
        with b.reduction(length, inits=[b.constant(0.0, "f32")], combiner="add") as total:
            total.yield_(b.load(held, total.index))
        with b.parallel(length) as (j,):
            b.store(y, b.divide(b.load(held, j), total.result), i, j)
    return b.build()


def test_temporary_elements_are_values_and_elements_are_loaded_once() -> None:
    short = same(softmax(5, 3), (5, 3))
    assert [loop.extents for loop in loops(short)] == [(5,)]
    assert count(short, Scratch) == 0
    assert count(short, Load) == 3


@pytest.mark.parametrize(("rows", "columns", "remain"), [(7, 3, 1), (7, 16, 1), (7, 17, 2), (1, 3, 2)])
def test_the_last_dimensions_are_written_out_if_others_remain(rows: int, columns: int, remain: int) -> None:
    b = KernelBuilder("sums")
    x, y = b.input("x", "f32", (rows, columns, 2)), b.output("y", "f32", (rows, columns))
    with b.parallel(rows, columns) as (i, j):
        with b.reduction(2, inits=[b.constant(1.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, i, j, loop.index))
        b.store(y, loop.result, i, j)
    (loop,) = loops(same(b.build(), (rows, columns, 2)))
    assert len(loop.extents) == remain


def test_conditions_on_positions_are_decided() -> None:
    """A row that is joined of two others: elements beyond the first are not read."""
    b = KernelBuilder("joined")
    x, z, y = b.input("x", "f32", (6, 2)), b.input("z", "f32", (6, 1)), b.output("y", "f32", (6, 3))
    with b.parallel(6, 3) as (i, j):
        with b.if_(b.compare("LT", expression([(j, 2)], 1), 5)) as branch:
            branch.yield_(b.load(x, i, j))
        with branch.otherwise():
            branch.yield_(b.load(z, i, b.subtract(j, 2)))
        chosen = b.select(b.compare("EQ", j, 1), b.apply("negate", branch.results[0]), branch.results[0])
        b.store(y, chosen, i, j)
    short = same(b.build(), (6, 2), (6, 1))
    assert count(short, If) == 0
    assert [i.op for i in walk(short.body) if isinstance(i, Apply)] == ["negate"] * 3


def test_what_was_loaded_in_a_branch_is_loaded_again_after_it() -> None:
    b = KernelBuilder("branches")
    x, y = b.input("x", "f32", (6, 2)), b.output("y", "f32", (6, 2))
    with b.parallel(6, 2) as (i, j):
        with b.if_(b.compare("GT", b.load(x, i, 0), 0.0)) as branch:
            branch.yield_(b.load(x, i, 1))
        with branch.otherwise():
            branch.yield_(b.constant(0.5, "f32"))
        b.store(y, b.add(branch.results[0], b.load(x, i, b.subtract(1, j))), i, j)
    same(b.build(), (6, 2))


def test_values_that_loops_carry_are_followed() -> None:
    b = KernelBuilder("sums")
    x, y = b.input("x", "f32", (6, 4)), b.output("y", "f32", (6, 4))
    with b.parallel(6) as (i,), b.sequential(4, inits=[b.constant(2.0, "f32")]) as loop:
        total = b.add(loop.carried[0], b.load(x, i, loop.index))
        b.store(y, total, i, loop.index)
        loop.yield_(total)
    same(b.build(), (6, 4))


def test_combiners_that_are_blocks_are_applied_in_order() -> None:
    b = KernelBuilder("first_largest")
    x, y = b.input("x", "f32", (6, 4)), b.output("y", "f32", (6,))
    with b.block("f32", "i64", "f32", "i64") as larger:
        value, place, other, there = larger.parameters
        stays = b.compare("GE", value, other)
        larger.yields = [b.select(stays, value, other), b.select(stays, place, there)]
    with b.parallel(6) as (i,):
        inits = [b.constant(-np.inf, "f32"), b.index(0)]
        with b.reduction(4, inits=inits, combiner=larger) as loop:
            loop.yield_(b.load(x, i, loop.index), loop.index)
        b.store(y, b.convert(loop.results[1], "f32"), i)
    same(b.build(), (6, 4))


def test_what_is_too_long_or_updates_elements_stays() -> None:
    assert written_out(softmax(5, LARGEST), fused=False) is None
    b = KernelBuilder("updates")
    x, y = b.input("x", "f32", (6, 3)), b.inout("y", "f32", (3,))
    with b.parallel(6, 3) as (i, j):
        b.update([(y, [j])], [b.load(x, i, j)], "add")
    assert written_out(b.build(), fused=False) is None


def test_scratch_whose_places_are_not_known_stays() -> None:
    b = KernelBuilder("picked")
    x, places, y = b.input("x", "f32", (6, 3)), b.input("places", "i64", (6,)), b.output("y", "f32", (6,))
    with b.parallel(6) as (i,):
        held = b.scratch("f32", (3,))
        with b.parallel(3) as (j,):
            b.store(held, b.load(x, i, j), j)
        b.store(y, b.load(held, b.load(places, i)), i)
    assert written_out(b.build(), fused=False) is None
