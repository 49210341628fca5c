"""Finds the operands of products that the device itself can copy to shared memory, box by box (NVIDIA's TMA): they have
few dimensions with constant strides, and each stride is a multiple of the previous one. Elements beyond the end of a
dimension are zero in a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trivium.backends.gpu.plan import TensorMap
from trivium.compiler.kernel import storage_bytes
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.schedule import LoopSchedule, Unit

WIDE_LINE, UNIT = 128, 16
"""The bytes of a line of a box, and those that begin and distances are multiples of."""

MOST_DIMENSIONS, MOST_ELEMENTS, MOST_BYTES = 5, 1 << 31, 1 << 40
"""The most dimensions of an array, and the numbers that coordinates and distances in bytes must be less than."""


@dataclass(frozen=True)
class Dimension:
    """Loops of a role whose iterations, numbered in order, are at equal distances in memory: `step` elements."""

    role: str
    loops: tuple[ContractionLoop, ...]
    extent: int
    step: int


@dataclass(frozen=True)
class View:
    """An operand of a product as an array, with its dimensions in the order of their steps. It begins `offset` elements
    into its buffer. `across`: the innermost dimension is the operand's own, not the depth."""

    access: Access
    dimensions: tuple[Dimension, ...]
    offset: int
    across: bool

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return storage_bytes(self.access.buffer.dtype)

    @property
    def fits(self) -> bool:
        """Whether matrix instructions can read a piece from shared memory: only matrices of 16 bits can be
        transposed."""
        return not self.across or self.size == 2

    def box(self, sides: Mapping[str, int]) -> tuple[int, ...]:
        """Returns the extents of a box: a line of `WIDE_LINE` bytes along the innermost dimension, and as many of them
        as a piece has, of one index of the batch."""
        along = WIDE_LINE // self.size
        lines = {"batch": 1, "k": along, **sides}
        return (along, *(lines[one.role] for one in self.dimensions[1:]))


def view(mark: Contraction, role: str) -> View | None:
    """Returns the operand that has loops of `role`, "m" or "n"; None if boxes of it cannot be copied."""
    access, prologue = (mark.lhs, mark.lhs_prologue) if role == "m" else (mark.rhs, mark.rhs_prologue)
    padded = any(access.padded(number) for number in range(len(access.subscripts)))
    if prologue is not None or padded or not _is_affine(access):
        return None
    own, depth, batch = (_dimensions(mark, access, kind) for kind in (role, "k", "batch"))
    if len(own) != 1 or len(depth) != 1:
        return None
    size, across = storage_bytes(access.buffer.dtype), depth[0].step != 1
    inner, lines = (own[0], depth[0]) if across else (depth[0], own[0])
    rest = sorted((lines, *(one for one in batch if one.step)), key=lambda one: one.step)
    pairs = zip(access.subscripts, access.buffer.layout, strict=True)
    offset = access.buffer.offset + sum(one.position.offset * stride for one, stride in pairs)
    found = View(access, (inner, *rest), offset, across)
    return found if inner.step == 1 and offset * size % UNIT == 0 and _are_regular(found) else None


def _is_affine(access: Access) -> bool:
    return all(isinstance(term, ContractionLoop) for one in access.subscripts for term in one.position.terms)


def _dimensions(mark: Contraction, access: Access, role: str) -> list[Dimension]:
    """Returns the loops of a role that run more than once, as few dimensions."""
    found: list[Dimension] = []
    for loop in mark.loops:
        if loop.role != role or loop.extent == 1:
            continue
        pairs = zip(access.subscripts, access.buffer.layout, strict=True)
        step = sum(one.position.terms.get(loop, 0) * stride for one, stride in pairs)
        if found and found[-1].step == step * loop.extent:
            outer = found.pop()
            found.append(Dimension(role, (*outer.loops, loop), outer.extent * loop.extent, step))
        else:
            found.append(Dimension(role, (loop,), loop.extent, step))
    return found


def _are_regular(found: View) -> bool:
    """Whether distances are multiples of 16 bytes and of one another, and hold what is between them."""
    if len(found.dimensions) > MOST_DIMENSIONS:
        return False
    for inner, outer in zip(found.dimensions, found.dimensions[1:], strict=False):
        nbytes = outer.step * found.size
        if outer.step < inner.step * inner.extent or outer.step % inner.step:
            return False
        if nbytes % UNIT or nbytes >= MOST_BYTES:
            return False
    return all(one.extent < MOST_ELEMENTS for one in found.dimensions)


def views(mark: Contraction, plan: LoopSchedule) -> dict[str, View]:
    """Returns the operands whose pieces the device copies by itself, by a schedule of the parallel loop."""
    bulk = [mapping.dimensions for mapping in plan.mappings if mapping.unit is Unit.BULK]
    found = {role: view(mark, role) for role in ("m", "n") if mark.positions(role) in bulk}
    return {role: one for role, one in found.items() if one is not None}


def tensor_maps(kernel: Kernel, found: Sequence[View], sides: Mapping[str, int]) -> tuple[TensorMap, ...]:
    """Returns what a launch tells the device of arrays."""
    return tuple(
        TensorMap(
            argument=kernel.params.index(one.access.buffer),
            offset=one.offset * one.size,
            # Only products whose factors may be rounded read boxes of f32.
            dtype="tf32" if one.access.buffer.dtype == "f32" else one.access.buffer.dtype,
            extents=tuple(dimension.extent for dimension in one.dimensions),
            strides=tuple(dimension.step * one.size for dimension in one.dimensions[1:]),
            box=one.box(sides),
        )
        for one in found
    )
