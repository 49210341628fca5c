"""When two parameters of a kernel may share bytes: only if every element is read before the same iteration overwrites
it. A buffer planner can then let a result overwrite an operand."""

from __future__ import annotations

from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Block, Buffer, Load, Loop, Register, Store


def may_share(kernel: Kernel, source: Buffer, destination: Buffer) -> bool:
    """Whether `destination` (an output of the kernel) may share the bytes of `source` (an input of the same type and
    layout). Both must be accessed only in one parallel loop body (in a contraction: in its epilogue), at the same
    indices, which include all indices of that loop, and all loads must come before all stores."""
    same_layout = (
        source.shape == destination.shape
        and source.layout == destination.layout
        and source.offset == destination.offset
    )
    if source.dtype != destination.dtype or not same_layout:
        return False
    place = _innermost(kernel.body) if kernel.contraction is None else _epilogue(kernel.contraction, source)
    if place is None:
        return False
    block, loop_indices = place
    accesses = [i for i in block.instructions if isinstance(i, Load | Store)]
    loads = [n for n, access in enumerate(accesses) if isinstance(access, Load) and access.buffer is source]
    stores = [n for n, access in enumerate(accesses) if isinstance(access, Store) and access.buffer is destination]
    if not loads or not stores or max(loads) > min(stores):
        return False
    indices = {accesses[n].indices for n in (*loads, *stores)}
    return len(indices) == 1 and set(loop_indices) <= {index.sole for index in indices.pop()}


def _innermost(block: Block) -> tuple[Block, list[Register]] | None:
    """Returns the body and the indices of the kernel's only parallel loop, if it contains no other control flow and
    there is none beside it; for a kernel without loops its own block and no indices; otherwise None."""
    loops = [i for i in block.instructions if i.blocks]
    if not loops:
        return block, []
    if len(loops) != 1 or not isinstance(loops[0], Loop) or loops[0].kind != "parallel":
        return None
    loop = loops[0]
    indices = [index for index, extent in zip(loop.indices, loop.extents, strict=True) if extent != 1]
    return None if any(i.blocks for i in loop.body.instructions) else (loop.body, indices)


def _epilogue(contraction: Contraction, source: Buffer) -> tuple[Block, list[Register]] | None:
    """Returns the epilogue of a contraction and its indices if `source` is only read there, else None. The epilogue
    runs once for each element, when the sum is complete."""
    block = contraction.epilogue
    if source in (contraction.lhs.buffer, contraction.rhs.buffer) or any(i.blocks for i in block.instructions):
        return None
    extents = [loop.extent for loop in contraction.loops if loop.role != "k"]
    indices = zip(block.parameters[1:], extents, strict=True)
    return block, [index for index, extent in indices if extent != 1]
