"""The parts of a split are visited in order, each once, with its size."""

from __future__ import annotations

from itertools import pairwise

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory, of_numbers
from trivium.backends.cpu.contraction.split_loops import bounds, first_of, parts
from trivium.backends.cpu.contraction.tiling import Split
from trivium.backends.llvm.code import I64, Code
from trivium.backends.llvm.numbers import Int, i64
from trivium.backends.llvm.vectors import Vectors

SPLITS = Split(12, 1), Split(12, 3), Split(13, 4), Split(7, 7), Split(11, 3)


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_parts_begin_where_those_before_them_end(split: Split) -> None:
    found = [bounds(split, part) for part in range(split.count)]
    assert [end - begin for begin, end in found] == split.sizes
    assert (found[0][0], found[-1][1]) == (0, split.extent)
    assert all(before[1] == after[0] for before, after in pairwise(found))


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_numbers_that_are_known_when_the_code_runs(split: Split) -> None:
    begin = of_numbers(1, lambda _, part: first_of(split, part))
    assert [begin(part) for part in range(split.count)] == [split.start(part) for part in range(split.count)]


@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_each_part_is_visited_once(split: Split) -> None:
    events = []

    def emit(code: Code, pointer: ll.Value, begin: Int, end: Int) -> None:
        e = Vectors(code.builder, code.target, I64, 1)
        for size, part in parts(e, split, (begin, end), events.append, lambda: events.append(0)):
            place = e.at(pointer, part)
            code.builder.store(code.builder.add(code.builder.load(place, typ=I64), i64(size)), place)

    run = of_memory(emit, 2)
    sizes = sorted(set(split.sizes), reverse=True)
    assert events == [event for size in sizes for event in (size, 0)]
    for begin in range(split.count):
        for end in range(begin, split.count + 1):
            array = np.zeros(split.count, np.int64)
            run(array.ctypes.data, begin, end)
            assert array.tolist() == [size * (begin <= part < end) for part, size in enumerate(split.sizes)]
