"""Finds the operands of products that the device itself can copy to shared memory, box by box (NVIDIA's TMA): they have
few dimensions with constant strides, and each stride is a multiple of the previous one. Elements beyond the end of a
dimension are zero in a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trivium.backends.gpu.images import MOST_BYTES, MOST_ELEMENTS, UNIT, WIDE_LINE, Image, image
from trivium.backends.gpu.plan import TensorMap
from trivium.compiler.kernel import storage_bytes
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.schedule import LoopSchedule, Unit

MOST_DIMENSIONS = 5
"""The most dimensions of an array."""


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
    source: tuple[int, ...] = ()
    """If the array is a copy of the operand in the workspace, at this offset: the steps of the operand's own elements,
    of which the first one is at `begin`."""
    begin: int = 0

    @property
    def is_turned(self) -> bool:
        """Whether neighbours in the operand are not neighbours in its copy."""
        return bool(self.source) and self.source[0] != 1

    @property
    def elements(self) -> int:
        """The number of elements of a copy, with those between its rows."""
        return self.dimensions[-1].step * self.dimensions[-1].extent

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return storage_bytes(self.access.buffer.dtype)

    @property
    def fits(self) -> bool:
        """Whether matrix instructions can read a piece from shared memory: only matrices of 16 bits can be
        transposed."""
        return not self.across or self.size == 2

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of all dimensions, the innermost first."""
        return tuple(dimension.extent for dimension in self.dimensions)

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours along each dimension but the innermost."""
        return tuple(dimension.step * self.size for dimension in self.dimensions[1:])

    def box(self, sides: Mapping[str, int]) -> tuple[int, ...]:
        """Returns the extents of a box: a line of `WIDE_LINE` bytes along the innermost dimension, and as many of them
        as a piece has, of one index of the batch."""
        along = WIDE_LINE // self.size
        lines = {"batch": 1, "k": along, **sides}
        return (along, *(lines[one.role] for one in self.dimensions[1:]))


Boxed = View | Image
"""What the device itself copies."""


def boxed(mark: Contraction, role: str) -> Boxed | None:
    """Returns the operand that has loops of `role`, "m" or "n"; None if the device cannot copy pieces of it."""
    return view(mark, role) or image(mark, role)


def view(mark: Contraction, role: str) -> View | None:
    """Returns the operand that has loops of `role`, "m" or "n"; None if boxes of it cannot be copied."""
    found = _array(mark, role)
    if found is None or found.offset * found.size % UNIT or not _are_regular(found):
        return None
    return found if found.dimensions[0].step == 1 else None


def _array(mark: Contraction, role: str) -> View | None:
    """Returns an operand as an array, which need not be one that the device can copy boxes of."""
    access, prologue = (mark.lhs, mark.lhs_prologue) if role == "m" else (mark.rhs, mark.rhs_prologue)
    padded = any(access.padded(number) for number in range(len(access.subscripts)))
    if prologue is not None or padded or not _is_affine(access):
        return None
    own, depth, batch = (_dimensions(mark, access, kind) for kind in (role, "k", "batch"))
    if len(own) != 1 or len(depth) != 1:
        return None
    across = depth[0].step != 1
    inner, lines = (own[0], depth[0]) if across else (depth[0], own[0])
    rest = sorted((lines, *(one for one in batch if one.step)), key=lambda one: one.step)
    pairs = zip(access.subscripts, access.buffer.layout, strict=True)
    offset = access.buffer.offset + sum(one.position.offset * stride for one, stride in pairs)
    return View(access, (inner, *rest), offset, across)


def copied(mark: Contraction, role: str) -> View | None:
    """Returns a copy of an operand in the workspace of which boxes can be copied; None if there are no numbers of 32
    bits for its elements. If matrix instructions cannot transpose it, the copy is along the depth."""
    found = _array(mark, role)
    if found is None or found.dimensions[0].step != 1 or len(found.dimensions) > MOST_DIMENSIONS:
        return None
    across = found.across and found.size == 2
    inner = next(one for one in found.dimensions if one.role == (role if across else "k"))
    lines = next(one for one in found.dimensions if one.role == ("k" if across else role))
    order = [inner, lines, *(one for one in found.dimensions if one.role == "batch")]
    made, step = [replace(inner, step=1)], -(-inner.extent * found.size // UNIT) * UNIT // found.size
    for one in order[1:]:
        made.append(replace(one, step=step))
        step *= one.extent
    source = tuple(one.step for one in order)
    return View(found.access, tuple(made), 0, across, source, found.offset) if step < MOST_ELEMENTS else None


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


def views(mark: Contraction, plan: LoopSchedule) -> dict[str, Boxed]:
    """Returns the operands whose pieces the device copies by itself, by a schedule of the parallel loop. Copies are at
    the beginning of the workspace."""
    bulk, first = ([one.dimensions for one in plan.mappings if one.unit is unit] for unit in (Unit.BULK, Unit.COPIED))
    found, offset = dict[str, Boxed](), 0
    for role in ("m", "n"):
        if mark.positions(role) not in bulk:
            continue
        one = copied(mark, role) if mark.positions(role) in first else boxed(mark, role)
        assert one is not None, "the schedule has found it"
        if isinstance(one, View) and one.source:
            one = replace(one, offset=offset)
            offset += -(-one.elements // WIDE_LINE) * WIDE_LINE
        found[role] = one
    return found


def tensor_maps(kernel: Kernel, found: Sequence[Boxed], sides: Mapping[str, int]) -> tuple[TensorMap, ...]:
    """Returns what a launch tells the device of arrays."""
    return tuple(
        TensorMap(
            # The workspace comes after the arrays.
            argument=len(kernel.params) if one.source else kernel.params.index(one.access.buffer),
            offset=one.offset * one.size,
            # Only products whose factors may be rounded read boxes of f32.
            dtype="tf32" if one.access.buffer.dtype == "f32" else one.access.buffer.dtype,
            extents=one.extents,
            strides=one.strides,
            box=one.box(sides),
            corners=one.corners if isinstance(one, Image) else (),
            steps=one.steps if isinstance(one, Image) else (),
        )
        for one in found
    )
