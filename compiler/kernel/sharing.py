"""When two parameters of a kernel may share bytes: only if every element is read for the last time before it is
overwritten. A buffer planner can then let a result overwrite an operand."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.compiler.kernel.affine import accesses
from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Buffer, Instruction, Load, Loop, MemoryAccess, Register, Store

Pair = tuple[Buffer, Buffer]
"""An operand, and the result that overwrites it."""


def may_share(kernel: Kernel, source: Buffer, destination: Buffer, *, loops_in_order: bool = False) -> bool:
    """Whether `destination` (an output of the kernel) may share the bytes of `source` (an input of the same type and
    layout). No iteration of a parallel loop may read what another one writes, and in each of them, all loads must come
    before all stores. `loops_in_order`: whether each loop in an iteration ends before the next instruction runs
    (`Target.loops_in_order`); otherwise, and in a contraction, both must be accessed at a single place: in the body of
    the only loop, or in the epilogue."""
    same_layout = (
        source.shape == destination.shape
        and source.layout == destination.layout
        and source.offset == destination.offset
    )
    if source.dtype != destination.dtype or not same_layout or kernel.attention is not None:
        return False
    pair = source, destination
    if kernel.contraction is not None:
        return _in_epilogue(kernel.contraction, pair)
    return (loops_in_order or _is_flat(kernel.body, pair)) and _reads_first(kernel.body.instructions, pair)


def _in_epilogue(contraction: Contraction, pair: Pair) -> bool:
    """Whether a contraction accesses both in its epilogue only, which runs once for each element, when the sum is
    complete."""
    block = contraction.epilogue
    operands = contraction.lhs.buffer, contraction.rhs.buffer
    prologues = [found for found in (contraction.lhs_prologue, contraction.rhs_prologue) if found is not None]
    before = any(_uses(prologue.instructions, pair) for prologue in prologues)
    if pair[0] in operands or before or any(i.blocks for i in block.instructions):
        return False
    extents = [loop.extent for loop in contraction.loops if loop.role != "k"]
    indices = [index for index, extent in zip(block.parameters[1:], extents, strict=True) if extent != 1]
    used = _uses(block.instructions, pair)
    return _is_one_place(used) and _are_apart(indices, used) and _reads_first(block.instructions, pair)


def _is_flat(block: Block, pair: Pair) -> bool:
    """Whether all accesses are at one place, in a parallel loop without other control flow inside or beside it, or in a
    kernel without loops."""
    if not _is_one_place(_uses(block.instructions, pair)):
        return False
    loops = [i for i in block.instructions if i.blocks]
    if not loops:
        return True
    (loop, *others), beside = loops, [i for i in block.instructions if not i.blocks]
    inside = [i for body in loop.blocks for i in body.instructions]
    is_parallel = isinstance(loop, Loop) and loop.kind == "parallel"
    return is_parallel and not others and not _uses(beside, pair) and not any(i.blocks for i in inside)


def _reads_first(instructions: Sequence[Instruction], pair: Pair) -> bool:
    """Whether instructions that run in order read each element of the operand before they overwrite it."""
    written = False
    for instruction in instructions:
        used = _uses([instruction], pair)
        loads = [access for access in used if isinstance(access, Load)]
        stores = [access for access in used if isinstance(access, Store)]
        if len(loads) + len(stores) < len(used) or (written and loads):
            return False
        written = written or bool(stores)
        if not (loads and stores):
            continue
        # Iterations of one loop read and write: each must keep to elements of its own.
        if not isinstance(instruction, Loop) or instruction.kind != "parallel":
            return False
        indices = [i for i, extent in zip(instruction.indices, instruction.extents, strict=True) if extent != 1]
        if not _are_apart(indices, used) or not _reads_first(instruction.body.instructions, pair):
            return False
    return True


def _are_apart(indices: Sequence[Register], used: Sequence[MemoryAccess]) -> bool:
    """Whether iterations of a loop access different elements: for each index of the loop, there is a dimension along
    which it alone is the position in all accesses."""
    positions = list(zip(*(access.indices for access in used), strict=True))
    return all(any(all(i.sole is index for i in dimension) for dimension in positions) for index in indices)


def _is_one_place(used: Sequence[MemoryAccess]) -> bool:
    return len({access.indices for access in used}) == 1


def _uses(instructions: Sequence[Instruction], pair: Pair) -> list[MemoryAccess]:
    """Returns all accesses of either buffer in instructions and the blocks in them."""
    return [access for access in accesses(Block(instructions=list(instructions))) if access.buffer in pair]
