"""Operands in panels: generated code packs as NumPy rearranges, for any layout of the operand; and convolutions of
constants, which are packed beforehand."""

from __future__ import annotations

from dataclasses import dataclass, field

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.cpu.contraction.cases import LAYOUTS, WINDOWS, assert_close, convolution, normal, reference
from tests.backends.llvm.running import of_memory
from tests.compiler.contraction.meaning import place, points
from trivium.backends.cpu.contraction.packing import Source, emit_pack, walk
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, F64, I64, Code
from trivium.backends.llvm.displacement import origin
from trivium.backends.llvm.numbers import Int, i64
from trivium.backends.llvm.vectors import Vectors
from trivium.compiler.contraction.problem import Access, Axis, AxisGroup, dimension, lies_across
from trivium.compiler.kernel.index import Index

TARGET = 4000
"""The offset of packed elements, which follow those of the operand."""
ROOM = 8000
UNTOUCHED = -1.0


@dataclass(frozen=True)
class Operand:
    """Returns an access of lines by the elements across them."""

    lines: AxisGroup
    across: AxisGroup
    access: Access


def plain(lines: dict[int, int], across: dict[int, int], offset: int = 0) -> Operand:
    """Returns axes of the given extents and strides."""
    groups = [{Axis(extent): stride for extent, stride in axes.items()} for axes in (lines, across)]
    return Operand(
        AxisGroup(tuple(groups[0])), AxisGroup(tuple(groups[1])), Access(Index(groups[0] | groups[1], offset))
    )


def windows(dilation: int = 1, low: int = 1, stride: int = 1, step: int = 1) -> Operand:
    """im2col of an image of 9 x 6 elements: 3 taps and 2 positions in each line, and 4 columns with adjacent ones."""
    tap, channel, position, width = Axis(3), Axis(2), Axis(7), Axis(6)
    access = Access(Index({channel: 54, width: 1}))
    access = dimension(access, 9, 6, Index({position: stride, tap: step}, -low), dilation)
    return Operand(AxisGroup((channel, tap)), AxisGroup((position, width)), access)


def features(dilation: int = 1) -> Operand:
    """im2col of an image of 9 positions with 32 features each, which fill vectors: each line has 3 taps."""
    position, tap, feature = Axis(7), Axis(3), Axis(32)
    access = dimension(Access(Index({feature: 1})), 9, 32, Index({position: 1, tap: 1}, -1), dilation)
    return Operand(AxisGroup((position,)), AxisGroup((tap, feature)), access)


OPERANDS = {
    "columns together": plain({13: 40}, {37: 1}),
    "columns apart": plain({13: 1}, {37: 15}),
    "neither": plain({13: 3}, {37: 41}),
    "two axes of lines": plain({3: 200, 5: 40}, {37: 1}, offset=7),
    "two axes of lines apart": plain({5: 3, 3: 1}, {37: 16}, offset=7),
    "two axes across": plain({13: 1}, {3: 300, 11: 14}),
    "short runs across": plain({13: 100}, {7: 13, 3: 1}),
    "long runs across": plain({6: 200}, {2: 100, 23: 1}),
    "whole vectors": plain({13: 100}, {2: 40, 32: 1}),
    "every second element": plain({13: 100}, {2: 50, 16: 2}),
    "backwards": plain({13: -40}, {37: 1}, offset=480),
    "one column": plain({13: 5}, {}),
    "one line": plain({}, {37: 2}),
    "padded windows": windows(),
    "padded positions of whole vectors": features(),
    "dilated positions of whole vectors": features(dilation=2),
    "strided windows": windows(stride=2, low=3),
    "dilated operand": windows(dilation=2, low=2),
    "dilated windows": windows(step=2, low=2),
}


def expected(operand: Operand, elements: np.ndarray) -> np.ndarray:
    """Zeros where there is no element."""
    rows = []
    for line in points(operand.lines):
        places = [place(operand.access, line | column) for column in points(operand.across)]
        rows.append([0 if where is None else elements[where] for where in places])
    return np.array(rows)


def packed(
    operand: Operand, elements: np.ndarray, line: tuple[int, int], lane: tuple[int, int], vectors: int, lanes: int,
    known: bool = True,
) -> np.ndarray:  # fmt: skip
    """Returns the memory from the target on."""
    element = F32 if elements.dtype == np.float32 else F64
    array = np.full(ROOM, UNTOUCHED, elements.dtype)
    array[: len(elements)] = elements

    def number(code: Code, value: int) -> Int | int:
        if known:
            return value
        slot = code.builder.alloca(I64)
        code.builder.store(I64(value), slot)
        return Int(code, code.builder.load(slot, typ=I64))

    def emit(code: Code, pointer: ll.Value) -> None:
        e = Vectors(code.builder, host(), element, lanes)
        aligned = lane[0] % lanes == 0
        source = Source(e, operand.access, pointer, origin(operand.access), operand.lines, operand.across, aligned)
        bounds = [(number(e, first), number(e, last)) for first, last in (line, lane)]
        emit_pack(e, source, *bounds, number(e, vectors), e.at(pointer, TARGET), vectors * lanes + 3)

    of_memory(emit)(array.ctypes.data)
    np.testing.assert_array_equal(array[: len(elements)], elements)
    return array[TARGET:]


@pytest.mark.parametrize("known", [True, False], ids=("known", "unknown"))
@pytest.mark.parametrize(("dtype", "lanes"), [(np.float32, 4), (np.float32, 16), (np.float64, 2), (np.float64, 8)])
@pytest.mark.parametrize("name", OPERANDS)
def test_panels_are_rearranged_elements(name: str, dtype: type, lanes: int, known: bool) -> None:
    """A part of the lines, and of the elements across them, that ends within a vector."""
    operand = OPERANDS[name]
    elements = np.random.default_rng(0).uniform(1, 2, 2000).astype(dtype)
    whole = expected(operand, elements)
    for first_line, first_lane in ((0, 0), (min(2, len(whole) - 1), min(5, whole.shape[1] - 1))):
        part = whole[first_line:, first_lane:]
        vectors = -(-part.shape[1] // lanes)
        bounds = (first_line, len(whole)), (first_lane, whole.shape[1])
        memory = packed(operand, elements, *bounds, vectors, lanes, known)
        pitch = vectors * lanes + 3
        found = memory[: pitch * len(part)].reshape(len(part), pitch)
        np.testing.assert_array_equal(found[:, : part.shape[1]], part)
        if not lies_across(operand.access, operand.lines, operand.across):
            assert (found[:, part.shape[1] : vectors * lanes] == 0).all()
        # At most a vector's worth of lines more may be written, and nothing after them.
        assert (found[:, vectors * lanes :] == UNTOUCHED).all()
        assert (memory[pitch * (len(part) + lanes) :] == UNTOUCHED).all()


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_squares_are_turned(lanes: int) -> None:
    operand = plain({48: 1}, {48: 48})
    elements = np.arange(48 * 48).astype(np.float32)
    found = packed(operand, elements, (0, 48), (0, 48), 48 // lanes, lanes)[: 48 * 51].reshape(48, 51)[:, :48]
    np.testing.assert_array_equal(found, elements.reshape(48, 48).T)


@dataclass
class Walked:
    """Returns the extents of axes, and the flat indices of a walk over them."""

    extents: tuple[int, ...]
    begin: int
    end: int
    group: AxisGroup = field(init=False)

    def __post_init__(self) -> None:
        self.group = AxisGroup(tuple(map(Axis, self.extents)))


WALKS = [Walked((3, 4, 5), 0, 60), Walked((3, 4, 5), 17, 42), Walked((7,), 2, 7), Walked((1, 3, 1, 2), 1, 6)]


@pytest.mark.parametrize("walked", WALKS, ids=lambda walked: f"{walked.extents}")
def test_walks_count_as_numpy_unravels(walked: Walked) -> None:
    """Without divisions."""
    axes = walked.group.axes

    def emit(code: Code, pointer: ll.Value) -> None:
        e = Vectors(code.builder, host(), F64, 2)
        with walk(e, walked.group, walked.begin, walked.end, [I64(5)]) as (loop, indices):
            row = (loop.index - walked.begin) * (len(axes) + 1)
            for column, value in enumerate((*(indices[axis] for axis in axes), Int(e, loop.carried[0]))):
                code.builder.store(i64(value), code.builder.gep(pointer, [i64(row + column)], source_etype=I64))
            loop.next = [i64(Int(e, loop.carried[0]) + 2)]
        code.builder.store(loop.carried[0], code.builder.gep(pointer, [I64(999)], source_etype=I64))
        assert "div" not in str(code.builder.function)

    array = np.zeros(1000, np.int64)
    of_memory(emit)(array.ctypes.data)
    count = walked.end - walked.begin
    rows = array[: count * (len(axes) + 1)].reshape(count, -1)
    wanted = np.transpose(np.unravel_index(np.arange(walked.begin, walked.end), walked.extents))
    np.testing.assert_array_equal(rows[:, :-1], wanted)
    assert rows[:, -1].tolist() == list(range(5, 5 + 2 * count, 2))
    assert array[999] == 5 + 2 * count


@pytest.mark.parametrize("constants", [{"rhs"}, {"lhs"}, {"lhs", "rhs"}], ids=("weights", "images", "both"))
@pytest.mark.parametrize("layout", ["channels last", "channels first"])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution_of_constants(name: str, layout: str, constants: set[str]) -> None:
    lhs_shape, rhs_shape, window = WINDOWS[name]
    lhs, rhs = normal(*lhs_shape), normal(*rhs_shape)
    assert_close(convolution(lhs, rhs, window, LAYOUTS[layout]).run(constants), reference(lhs, rhs, window))
