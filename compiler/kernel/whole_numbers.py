"""Kernels that only move complex numbers, such as transpositions, as kernels that move each of them as one element of
64 bits: its two parts are neighbours in memory, before and after."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.index import Index, Indices, Symbol, constant, variable
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Buffer, Load, Loop, Register, Store

PART, WHOLE = "f32", "ui64"
REAL, IMAGINARY = constant(0), constant(1)

Number = tuple[Buffer, Indices]
"""A number's place in a buffer, whose last dimension is that of its parts."""


def moved_whole(kernel: Kernel) -> Kernel | None:
    """Returns a kernel that does the same with whole complex numbers; None if it does not only move these."""
    match kernel.body.instructions:
        case [Loop(kind="parallel") as loop] if all(map(_holds_numbers, kernel.params)):
            moves = _moves(loop)
            return _moving(kernel, loop, moves) if moves else None
    return None


def _holds_numbers(buffer: Buffer) -> bool:
    """Whether a buffer can be one of complex numbers."""
    *steps, last = buffer.layout or (0,)
    even = all(step % 2 == 0 for step in (*steps, buffer.offset))
    return buffer.dtype == PART and buffer.mode in ("in", "out") and buffer.shape[-1:] == (2,) and last == 1 and even


def _moves(loop: Loop) -> dict[Number, Number]:
    """Returns where each number that a loop writes comes from; nothing if it does more than to move numbers."""
    loaded: dict[Register, tuple[Number, Index]] = {}
    written = defaultdict[Number, dict[Index, tuple[Number, Index]]](dict)
    for move in loop.body.instructions:
        match move:
            case Load(buffer, (*place, part), result):
                loaded[result] = (buffer, tuple(place)), part
            case Store(buffer, value, (*place, part)) if value in loaded:
                written[buffer, tuple(place)][part] = loaded[value]
            case _:
                return {}
    moves = {target: source for target, parts in written.items() for source, _ in parts.values()}
    whole = all(written[there] == {part: (moves[there], part) for part in (REAL, IMAGINARY)} for there in written)
    return moves if whole else {}


def _moving(kernel: Kernel, loop: Loop, moves: dict[Number, Number]) -> Kernel:
    """Returns the kernel of a loop that moves numbers."""
    b = KernelBuilder(kernel.name)
    wholes = {buffer: _with_numbers(buffer) for buffer in kernel.params}
    b.params.extend(wholes.values())
    origins = dict.fromkeys(origin for move in loop.body.instructions for origin in move.origins)
    with b.parallel(*loop.extents) as indices, b.computing(*origins):
        places: dict[Symbol, Index] = {old: variable(new) for old, new in zip(loop.indices, indices, strict=True)}
        for (target, there), (source, here) in moves.items():
            number = b.load(wholes[source], *(index.replace(places.get) for index in here))
            b.store(wholes[target], number, *(index.replace(places.get) for index in there))
    return b.build()


def _with_numbers(buffer: Buffer) -> Buffer:
    """Returns a buffer with its complex numbers as elements."""
    strides = tuple(step // 2 for step in buffer.strides[:-1]) if buffer.strides is not None else None
    return replace(buffer, dtype=WHOLE, shape=buffer.shape[:-1], strides=strides, offset=buffer.offset // 2)
