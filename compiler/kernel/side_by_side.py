"""Kernels of rows that compute several rows side by side: the loops over the rows of neighbouring iterations become one
loop. What a row waits for, such as the lanes of its sum being added and the quotient after it, the others then do not
wait for; and what all of them need is loaded once."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.compiler.kernel.clone import Copier
from trivium.compiler.kernel.dtypes import INDEX, storage_bytes
from trivium.compiler.kernel.index import constant, variable
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Constant,
    If,
    Instruction,
    Load,
    Loop,
    Position,
    Register,
    Scratch,
    Store,
    walk,
)

SHORT = 1 << 10
"""The bytes below which a row is short: what it waits for takes as long as the row."""
MOST_BYTES = 16 << 10
"""The bytes of an array's rows side by side, which are read several times from the first-level cache."""
SUMS, EXTREMES, REGISTERS = 4, 2, 32
"""The number of rows side by side, of which the sums, or the largest or smallest elements, stay in registers, and how
many registers the latter need unless the rows are short."""


def side_by_side(kernel: Kernel, registers: int, cached: int, least: int = 1) -> Kernel | None:
    """Returns a kernel that computes the same, several rows at a time; None if no reductions of its rows depend on one
    another, or if that would not be faster. `registers`: the number of vector registers. `cached`: the size in bytes up
    to which an array is in a core's own caches; long rows of larger arrays are faster one at a time. `least`: the
    number of iterations that the outer loop must keep."""
    constants = [i for i in kernel.body.instructions if isinstance(i, Constant)]
    others = [i for i in kernel.body.instructions if not isinstance(i, Constant)]
    match others:
        case [Loop(kind="parallel") as loop] if kernel.contraction is None and kernel.attention is None:
            found = _chosen(loop, _count(loop, registers, cached)) if _has_rows(loop) else None
            if found is not None and math.prod(_extents(loop)) >= found[1] * least:
                body = Block(instructions=[*constants, _Jammer(loop, *found).loop()])
                return Kernel(kernel.name, kernel.params, body)
    return None


def _has_rows(loop: Loop) -> bool:
    """Whether a loop's body consists of loops without loops in them, with several reductions among them, and of
    instructions between them that can be repeated."""
    inner = [i for i in loop.body.instructions if isinstance(i, Loop)]
    between = (i for i in loop.body.instructions if not isinstance(i, Loop))
    kinds = Constant | Position | Apply | Load | Store
    plain = all(isinstance(i, kinds | Scratch) for i in between)
    known = all(len(_extents(each)) == len(each.extents) for each in (loop, *inner))
    kept = all(each.kind in ("reduction", "parallel") and not each.ends for each in inner)
    rows = all(isinstance(i, kinds | If) for each in inner for block in each.blocks for i in walk(block))
    folds = sum(each.kind == "reduction" for each in inner)
    return plain and known and kept and rows and folds > 1 and not loop.ends


def _chosen(loop: Loop, most: int) -> tuple[int, int] | None:
    """Returns the dimension along which rows are neighbours, and how many of them are side by side: `most` or half of
    it, a divisor of the extent."""
    for count in (most, most // 2):
        possible = [dimension for dimension, extent in enumerate(_extents(loop)) if count > 1 and extent % count == 0]
        if possible:
            return possible[-1], count
    return None


def _count(loop: Loop, registers: int, cached: int) -> int:
    """Returns how many rows are worth being side by side."""
    inner = [i for i in loop.body.instructions if isinstance(i, Loop)]
    row = max(map(_row_bytes, inner))
    if row * math.prod(_extents(loop)) > cached:
        return EXTREMES if row < SHORT else 1
    if any(map(_finds_extremes, inner)):
        return EXTREMES if row < SHORT or (registers >= REGISTERS and EXTREMES * row <= MOST_BYTES) else 1
    return SUMS if SUMS * row <= MOST_BYTES else 1


def _extents(loop: Loop) -> list[int]:
    """Returns the extents that are known."""
    return [extent for extent in loop.extents if isinstance(extent, int)]


def _row_bytes(loop: Loop) -> int:
    """Returns the bytes of a row of the array with the largest elements that a loop reads."""
    sizes = [storage_bytes(i.buffer.dtype) for i in walk(loop.body) if isinstance(i, Load)]
    return max(sizes, default=1) * math.prod(_extents(loop))


def _finds_extremes(loop: Loop) -> bool:
    folded = loop.combiner.instructions if isinstance(loop.combiner, Block) else ()
    names = {loop.combiner, *(i.op for i in folded if isinstance(i, Apply))}
    return not names.isdisjoint(("maximum", "minimum"))


class _Jammer:
    """Copies a loop, with `count` iterations along a dimension side by side."""

    def __init__(self, loop: Loop, dimension: int, count: int) -> None:
        self._loop, self._dimension, self._count = loop, dimension, count
        self._copiers: list[Copier] = []

    def loop(self) -> Loop:
        loop, dimension = self._loop, self._dimension
        indices = [Register(INDEX) for _ in loop.indices]
        body = Block(indices)
        for number in range(self._count):
            index = Register(INDEX)
            place = variable(indices[dimension]) * self._count + constant(number)
            body.instructions.append(Position(place, index))
            own = [index if d == dimension else given for d, given in enumerate(indices)]
            self._copiers.append(Copier(dict(zip(loop.indices, own, strict=True)), {}, {index: place}))
        for instruction in loop.body.instructions:
            if isinstance(instruction, Loop):
                body.instructions.append(self._jammed(instruction))
            else:
                body.instructions += self._repeated(instruction)
        extents = [e // self._count if d == dimension else e for d, e in enumerate(_extents(loop))]
        jammed = Loop("parallel", tuple(extents), body)
        jammed.origins, jammed.copied = loop.origins, loop
        return jammed

    def _jammed(self, loop: Loop) -> Loop:
        """Returns one loop over the rows of all iterations."""
        indices = [Register(INDEX) for _ in loop.indices]
        body = Block(indices)
        for copier in self._copiers:
            copier.bind(loop.indices, indices)
        for instruction in loop.body.instructions:
            body.instructions += self._repeated(instruction)
        body.yields = [value for copier in self._copiers for value in copier.values(loop.body.yields)]
        inits = tuple(value for copier in self._copiers for value in copier.values(loop.inits))
        combiner = self._combiner(loop, inits) if loop.kind == "reduction" else None
        carried = tuple(value for copier in self._copiers for value in copier.fresh(loop.carried))
        jammed = Loop(loop.kind, loop.extents, body, inits, combiner, carried)
        jammed.origins, jammed.copied = loop.origins, loop
        return jammed

    def _combiner(self, loop: Loop, inits: Sequence[Register]) -> Block:
        """Returns a block that combines the values of each iteration with its terms."""
        totals, terms = ([Register(init.dtype) for init in inits] for _ in range(2))
        block, each = Block([*totals, *terms]), len(loop.inits)
        for number, copier in enumerate(self._copiers):
            own = slice(number * each, (number + 1) * each)
            if isinstance(loop.combiner, Block):
                copier.bind(loop.combiner.parameters, [*totals[own], *terms[own]])
                block.instructions += map(copier.instruction, loop.combiner.instructions)
                block.yields += copier.values(loop.combiner.yields)
            else:
                assert loop.combiner is not None, "a reduction has a combiner"
                result = Register(totals[number].dtype)
                pair = totals[number], terms[number]
                block.instructions.append(Apply(loop.combiner, pair, {}, result))
                block.yields.append(result)
        return block

    def _repeated(self, instruction: Instruction) -> list[Instruction]:
        """Returns an instruction for each iteration, or one if it does the same in all of them."""
        first, *others = self._copiers
        copies = [first.instruction(instruction)]
        reads = isinstance(instruction, Load) and instruction.buffer.mode == "in"
        pure = reads or isinstance(instruction, Constant | Apply | Position)
        for copier in others:
            copy = copier.instruction(instruction)
            if pure and _same(copy, copies[0]):
                copier.bind(instruction.results, first.values(instruction.results))
            else:
                copies.append(copy)
        return copies


def _same(one: Instruction, other: Instruction) -> bool:
    """Whether two copies of an instruction have the same operands and places."""
    match one, other:
        case (Load(), Load()):
            return one.indices == other.indices
        case (Position(), Position()):
            return one.index == other.index
    return one.operands == other.operands
