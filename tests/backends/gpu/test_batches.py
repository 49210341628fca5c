"""Which steps share a launch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.backends.harness import program_of
from trivium.backends.gpu.batches import LARGE, MOST_POINTERS, WINDOW, batches
from trivium.backends.gpu.emission import Choices
from trivium.backends.gpu.nvptx import target
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel import KernelBuilder
from trivium.compiler.program import Arena, Array, Copy, Launch, Step, While

TARGET = target("sm_90")


def value(name: str, offset: int, size: int = 4) -> Array:
    return Array(name, "f32", (size,), Arena(offset))


def negated(source: Array, target: Array) -> Launch:
    b = KernelBuilder("negate")
    size = source.shape[0]
    x, y = b.input("x", "f32", (size,)), b.output("y", "f32", (size,))
    with b.parallel(size) as (i,):
        b.store(y, b.apply("negate", b.load(x, i)), i)
    return Launch(b.build(), (source, target))


def scattered(source: Array, target: Array) -> Launch:
    """Returns a launch that updates its result."""
    b = KernelBuilder("scatter")
    size = source.shape[0]
    x, y = b.input("x", "f32", (size,)), b.inout("y", "f32", (size,))
    with b.parallel(size) as (i,):
        b.update([(y, (i,))], [b.load(x, i)], "add")
    return Launch(b.build(), (source, target))


def members(steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    return [found for found, _, _ in batches(steps, Choices(TARGET).grid, TARGET)]


def test_neighbours_that_touch_different_bytes() -> None:
    one, two = negated(value("a", 0), value("b", 128)), negated(value("a", 0), value("c", 256))
    assert members([one, two]) == [(one, two)]
    assert members([one]) == []


def test_steps_that_meet_in_memory_do_not() -> None:
    first = negated(value("a", 0), value("b", 128))
    assert members([first, negated(value("b", 128), value("c", 256))]) == []
    assert members([first, negated(value("c", 256), value("a", 0))]) == []
    assert members([first, negated(value("c", 256), value("part of b", 132))]) == []


def test_copies_are_kernels_beside_others() -> None:
    copy, launch = Copy(value("a", 0), value("b", 128)), negated(value("a", 0), value("c", 256))
    ((steps, batch, _),) = batches([copy, launch], Choices(TARGET).grid, TARGET)
    assert steps == (copy, launch)
    assert batch[1] is launch
    program = program_of(batch[0].kernel)
    words = np.arange(4, dtype=np.uint32)
    np.testing.assert_array_equal(interpret(program, words)[0], words)


def test_steps_of_a_loop() -> None:
    one, two = negated(value("a", 0), value("b", 128)), negated(value("a", 0), value("c", 256))
    assert members([While([], Array("flag", "i1", (), Arena(512)), [one, two])]) == [(one, two)]


def test_launches_have_a_limit_of_arguments() -> None:
    count = MOST_POINTERS + 5
    source = value("a", 0)
    steps = [negated(source, value(str(i), 128 * (i + 1))) for i in range(count)]
    assert list(map(len, members(steps))) == [MOST_POINTERS - 1, 6]


def test_a_step_joins_the_first_launch_that_it_can_run_in() -> None:
    """The last one can run before the second one, but not before the first one, whose result it reads."""
    first, second = negated(value("a", 0), value("b", 128)), negated(value("b", 128), value("c", 256))
    other, last = negated(value("a", 0), value("d", 512)), negated(value("b", 128), value("e", 640))
    assert members([first, second, other, last]) == [(first, other), (second, last)]


def test_launches_of_other_kinds_may_stand_between() -> None:
    first, update = negated(value("a", 0), value("b", 128)), scattered(value("u", 256), value("v", 384))
    after, last = negated(value("v", 384), value("c", 512)), negated(value("a", 0), value("d", 640))
    assert members([first, update, after, last]) == [(first, last)]


def test_only_the_last_launches_can_be_joined() -> None:
    first, last = negated(value("a", 0), value("b", 128)), negated(value("a", 0), value("c", 256))
    updates = [scattered(value("u", 384), value(str(i), 128 * i)) for i in range(10, 10 + WINDOW)]
    assert members([first, *updates[1:], last]) == [(first, last)]
    assert members([first, *updates, last]) == []


def test_parts_of_one_result() -> None:
    result = value("r", 0, 8)
    low, high = negated(value("a", 128), result), negated(value("b", 256), result)
    assert members([low, high]) == []
    low.whole = high.whole = object()
    assert members([low, high]) == [(low, high)]
    assert members([low, high, negated(result, value("c", 512, 8))]) == [(low, high)]


def folded(rows: int, columns: int, source: int, target: int) -> Launch:
    """Returns a launch of the largest element of each row."""
    b = KernelBuilder("folds")
    x, y = b.input("x", "f32", (rows, columns)), b.output("y", "f32", (rows,))
    with b.parallel(rows) as (i,):
        with b.reduction(columns, inits=[b.constant(float("-inf"), "f32")], combiner="maximum") as loop:
            loop.yield_(b.load(x, i, loop.index))
        b.store(y, loop.result, i)
    return Launch(b.build(), (value("x", source, rows * columns), value("y", target, rows)))


def sizes(*steps: Step) -> list[tuple[int, int]]:
    """Returns how many steps share each launch, and the threads of its blocks."""
    return [(len(found), threads) for found, _, threads in batches(steps, Choices(TARGET).grid, TARGET)]


def test_a_block_has_as_many_threads_as_the_members_need() -> None:
    small, large = (negated(value("a", 0, n), value("b", (1 << 20) * n, n)) for n in (4, 70))
    assert sizes(small, large) == [(2, 96)]


def test_rows_share_large_blocks() -> None:
    short, long = folded(4, 100, 0, 1 << 20), folded(4, 1000, 1 << 21, 1 << 22)
    assert sizes(short, long) == [(2, Choices(TARGET).grid(long.kernel).threads)]
    assert sizes(short, negated(value("a", 1 << 23, 70), value("b", 1 << 24, 70))) == [(2, LARGE)]
    many = folded(1 << 14, 1000, 1 << 25, 1 << 30)
    assert sizes(many, long) == []
