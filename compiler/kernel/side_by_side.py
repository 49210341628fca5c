"""Kernels of rows that compute several rows side by side: the loops over the rows of neighbouring iterations become one
loop. What a row waits for, such as the lanes of its sum being added and the quotient after it, the others then do not
wait for; what all of them need is loaded once; and rows that come from memory are read ahead in several places. Rows
that are left over are computed one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.compiler.kernel.clone import Copier
from trivium.compiler.kernel.dtypes import BOOL, INDEX, storage_bytes
from trivium.compiler.kernel.index import Index, constant, variable
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
"""The bytes of an array's rows side by side, which are read several times from the first-level cache; a quarter of it
if the rows load nothing that is the same for all of them."""
SUMS, EXTREMES, REGISTERS = 4, 2, 32
"""The number of rows side by side, of which the sums, or the largest or smallest elements, stay in registers, and how
many registers the latter need unless the rows are short."""
STREAMS = 8
"""The number of rows that are side by side if they are read once: a processor reads ahead in each, to the end of its
page. Measured for products of matrices and vectors: 1.2 to 1.4 times as fast from memory, and 1.0 to 1.2 times from the
caches. Of largest and smallest elements half as many."""
LEFT_OVER = 1 / 8
"""The share of the rows that may be left over."""


def side_by_side(kernel: Kernel, registers: int, cached: int, least: int = 1) -> Kernel | None:
    """Returns a kernel that computes the same, several rows at a time; None if that would not be faster. `registers`:
    the number of vector registers. `cached`: the size in bytes up to which an array is in a core's own caches; long
    rows of larger arrays that are read several times are faster one at a time. `least`: the number of iterations that
    the outer loop must keep."""
    constants = [i for i in kernel.body.instructions if isinstance(i, Constant)]
    others = [i for i in kernel.body.instructions if not isinstance(i, Constant)]
    match others:
        case [Loop(kind="parallel") as loop] if kernel.attention is None and _has_rows(loop):
            most = _count(loop, registers, cached, kernel.contraction is not None)
            dimension, count = _chosen(loop, most)
            if count > 1 and math.prod(_extents(loop)) >= count * least:
                body = Block(instructions=[*constants, _jammed(loop, dimension, count)])
                return Kernel(kernel.name, kernel.params, body, kernel.contraction)
    return None


def _has_rows(loop: Loop) -> bool:
    """Whether a loop's body consists of loops without loops in them, several reductions or only one among them, and of
    instructions between them that can be repeated."""
    inner = [i for i in loop.body.instructions if isinstance(i, Loop)]
    between = (i for i in loop.body.instructions if not isinstance(i, Loop))
    kinds = Constant | Position | Apply | Load | Store
    plain = all(isinstance(i, kinds | Scratch) for i in between)
    known = all(len(_extents(each)) == len(each.extents) for each in (loop, *inner))
    kept = all(each.kind in ("reduction", "parallel") and not each.ends for each in inner)
    rows = all(isinstance(i, kinds | If) for each in inner for block in each.blocks for i in walk(block))
    folds = sum(each.kind == "reduction" for each in inner)
    return plain and known and kept and rows and (folds > 1 or folds == len(inner) > 0) and not loop.ends


def _chosen(loop: Loop, most: int) -> tuple[int, int]:
    """Returns the dimension along which rows are neighbours, and how many of them are side by side: `most`, or fewer if
    no dimension is that long. The last dimension is preferred, unless too many rows would be left over there."""
    extents = _extents(loop)
    count = min(most, 1 << (max(extents).bit_length() - 1))
    left = {d: extent % count / extent for d, extent in enumerate(extents) if extent >= count}
    few = [d for d, share in left.items() if share <= LEFT_OVER]
    return few[-1] if few else min(left, key=left.__getitem__), count


def _jammed(loop: Loop, dimension: int, count: int) -> Loop:
    """Returns the loop with `count` neighbours along a dimension side by side. If some are left over, a last iteration
    computes them one after the other."""
    extents, indices = _extents(loop), [Register(INDEX) for _ in loop.indices]
    groups, left = divmod(extents[dimension], count)
    group = variable(indices[dimension])
    together = [group * count + constant(number) for number in range(count)]
    instructions = _Jammer(loop, dimension, indices, together).instructions
    if left:
        row = Register(INDEX)
        alone = _Jammer(loop, dimension, indices, [variable(row) + constant(groups * count)]).instructions
        rest = Loop("parallel", (left,), Block([row], alone))
        instructions = _either(indices[dimension], groups, instructions, [rest])
    extents[dimension] = groups + (left > 0)
    jammed = Loop("parallel", tuple(extents), Block(indices, instructions))
    jammed.origins, jammed.copied = loop.origins, loop
    return jammed


def _either(index: Register, limit: int, below: list[Instruction], beyond: list[Instruction]) -> list[Instruction]:
    """Returns what runs instructions where an index is below a limit, and others where it is not."""
    end, is_below = Register(INDEX), Register(BOOL)
    compare = Apply("compare", (index, end), {"direction": "LT"}, is_below)
    chosen = If(is_below, Block(instructions=below), Block(instructions=beyond))
    return [Constant(limit, end), compare, chosen]


def _count(loop: Loop, registers: int, cached: int, is_product: bool) -> int:
    """Returns how many rows are worth being side by side."""
    inner = [i for i in loop.body.instructions if isinstance(i, Loop)]
    row = max(map(_row_bytes, inner))
    large = row * math.prod(_extents(loop)) > cached
    if len(inner) == 1:
        return _streams(inner[0], row, large, is_product)
    if large:
        return EXTREMES if row < SHORT else 1
    if any(map(_finds_extremes, inner)):
        return EXTREMES if row < SHORT or (registers >= REGISTERS and EXTREMES * row <= MOST_BYTES) else 1
    return SUMS if SUMS * row <= (MOST_BYTES if _loads_alike(loop) else MOST_BYTES // 4) else 1


def _loads_alike(loop: Loop) -> bool:
    """Whether the loops over a row load something that is the same for all rows, such as weights."""
    inner = (i for each in loop.body.instructions if isinstance(each, Loop) for i in walk(each.body))
    return any(isinstance(i, Load) and i.buffer.mode == "in" and not set(loop.indices) & set(i.operands) for i in inner)


def _streams(fold: Loop, row: int, large: bool, is_product: bool) -> int:
    """Returns how many rows are worth being side by side if they are read once. Those of a matrix are, even in the
    caches: the vector that they are multiplied by is then loaded once."""
    if is_product:
        return STREAMS if row >= SHORT // 2 else 1
    if not large or row < SHORT or not isinstance(fold.combiner, str):
        return 1
    return STREAMS // 2 if _finds_extremes(fold) else STREAMS


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
    """Copies the iterations of a loop that are at some places along a dimension, side by side. `indices` are those of
    the other dimensions."""

    def __init__(self, loop: Loop, dimension: int, indices: Sequence[Register], places: Sequence[Index]) -> None:
        self._copiers: list[Copier] = []
        self.instructions: list[Instruction] = []
        for place in places:
            index = Register(INDEX)
            self.instructions.append(Position(place, index))
            own = [index if d == dimension else given for d, given in enumerate(indices)]
            self._copiers.append(Copier(dict(zip(loop.indices, own, strict=True)), {}, {index: place}))
        for instruction in loop.body.instructions:
            if isinstance(instruction, Loop):
                self.instructions.append(self._jammed(instruction))
            else:
                self.instructions += self._repeated(instruction)

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
