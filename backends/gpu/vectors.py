"""Decides in which loops a thread computes several neighbouring elements at a time, which it loads and stores by
accesses of up to 16 bytes; and how these are aligned."""

from __future__ import annotations

import math
from collections.abc import Collection

from trivium.backends.gpu.target import GpuTarget
from trivium.compiler.kernel.affine import Analysis, accesses
from trivium.compiler.kernel.dtypes import storage_bytes
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.ops import cost
from trivium.compiler.kernel.structure import Apply, Block, Constant, Instruction, Load, Loop, Position, Register, Store
from trivium.compiler.schedule import Mapping, Unit

COSTLY = 48.0
"""The cost of an element from which on computing takes longer than memory."""

REGISTERS = 160.0
"""The cost from which on a vector takes too many registers: too few threads would run at the same time."""

FEWEST = 1 << 14
"""The number of vectors below which one thread for each element is faster, because it keeps more of a device busy."""

ALONE = frozenset(("remainder",))
"""Operations that take a loop of their own for each element."""

EACH = 1
"""The number of vectors of one thread, if there are `MANY` elements for each."""

MANY = 1 << 22


def vector(
    loop: Loop, extents: tuple[int | Register, ...], analysis: Analysis, target: GpuTarget, whole: bool = False
) -> Mapping | None:
    """Returns the innermost dimension of a loop with the number of its elements that one thread computes at a time, if
    all accesses are to neighbours along it, or to one element. Unless the loop is long and has no other dimension, or
    if `whole`, the dimension is a multiple of it."""
    dimension = max((d for d, extent in enumerate(extents) if extent != 1), default=None)
    if dimension is None or not target.vectors or not is_plain(loop.body) or (work := _cost(loop.body)) > COSTLY:
        return None
    if any(map(is_alone, loop.body.instructions)):
        return None
    index, extent = loop.indices[dimension], extents[dimension]
    zeros = [other for other, size in zip(loop.indices, extents, strict=True) if size == 1]
    counts = []
    for access in accesses(loop.body):
        address = analysis.address(access.buffer, access.indices)
        step = analysis.step(address, index)
        if step == 1:
            most = target.vector_bytes // storage_bytes(access.buffer.dtype)
            counts.append(aligned_elements(address, most, {index, *zeros}))
        elif step != 0 or isinstance(access, Store):
            return None
    count = min(counts, default=1)
    if not isinstance(extent, int) or count == 1:
        return None
    while count * work >= REGISTERS:
        count //= 2
    if whole or extent < count * FEWEST or len(zeros) < len(extents) - 1:
        count = math.gcd(count, extent)
    return Mapping(Unit.LANES, (dimension,), count) if count > 1 else None


def aligned_elements(address: Index, most: int, ignored: Collection[object]) -> int:
    """Returns the number of elements, a power of two up to `most`, of which an address is a multiple, whatever the
    values of its symbols; those of `ignored` are multiples of `most`."""
    return math.gcd(most, address.offset, *(factor for atom, factor in address.terms.items() if atom not in ignored))


def is_plain(body: Block) -> bool:
    """Whether a body only loads, computes and stores."""
    return all(isinstance(i, Constant | Apply | Position | Load | Store) for i in body.instructions)


def is_alone(i: Instruction) -> bool:
    """Whether an operation takes a loop of its own for each element."""
    return isinstance(i, Apply) and i.op in ALONE


def _cost(body: Block) -> float:
    return sum(cost(i.op, i.arguments[-1].dtype) for i in body.instructions if isinstance(i, Apply))
