"""Finds the images of convolutions whose windows the device itself can copy to shared memory (the im2col mode of
NVIDIA's TMA): their features are neighbours in memory. A copy has one position in the windows of many consecutive
results: it begins at the window of one of them, and goes on with the next one in the row, in the next row and in the
next image. What is beyond the edges of the image is zero. Gradients of kernels sum over results, and have rows of
features of each position: their pieces are the same copies, transposed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from trivium.compiler.kernel import storage_bytes
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop, Subscript

WIDE_LINE, UNIT = 128, 16
"""The bytes of a line, and those that begin and distances are multiples of."""

TRANSPOSED = 2
"""The bytes of elements of matrices that matrix instructions can transpose."""

CORNERS, TAPS = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}, {3: 1 << 16, 4: 1 << 8, 5: 1 << 5}
"""By the dimensions of an array: the numbers that coordinates of a corner, and of a position in a window, are less
than."""

LONGEST_STEP, MOST_PIXELS, MOST_ELEMENTS, MOST_BYTES = 8, 256, 1 << 31, 1 << 40
"""The longest stride of windows, the most results of a copy, and the numbers that coordinates and distances in bytes
must be less than."""


@dataclass(frozen=True)
class Axis:
    """A spatial dimension: window `i` of the loop `own` begins at `low + step * i`, and its position `j`
    of the loop `tap` is `apart * j` further. A loop that does not run along it is missing."""

    own: ContractionLoop | None
    tap: ContractionLoop | None
    step: int
    apart: int
    low: int
    size: int

    @property
    def last(self) -> int:
        """Where the last window begins."""
        return self.low + self.step * ((self.own.extent if self.own else 1) - 1)

    @property
    def corners(self) -> tuple[int, int]:
        """Where windows begin: the first position, and the last one relative to the end of the image."""
        return self.low, self.last - (self.size - 1)


@dataclass(frozen=True)
class Image:
    """An operand of a convolution as an array: its features, its spatial dimensions, the innermost first, and the loop
    over images. It begins `offset` elements into its buffer."""

    role: str
    access: Access
    features: ContractionLoop
    axes: tuple[Axis, ...]
    images: ContractionLoop | None
    count: int
    offset: int
    distances: tuple[int, ...]
    """The elements between neighbours along each dimension but that of features."""

    across: bool = False
    """Whether windows are along the depth, and the operand's own loops run over positions in these, and features."""

    fits = True
    source: ClassVar[tuple[int, ...]] = ()

    @property
    def size(self) -> int:
        """The bytes of an element."""
        return storage_bytes(self.access.buffer.dtype)

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of all dimensions, the innermost first."""
        return self.features.extent, *(axis.size for axis in self.axes), self.count

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours along each dimension but the innermost."""
        return tuple(distance * self.size for distance in self.distances)

    @property
    def corners(self) -> tuple[tuple[int, int], ...]:
        """Those of each axis."""
        return tuple(axis.corners for axis in self.axes)

    @property
    def steps(self) -> tuple[int, ...]:
        """The stride of windows along each axis."""
        return tuple(axis.step for axis in self.axes)

    def box(self, sides: Mapping[str, int]) -> tuple[int, ...]:
        """Returns the features and the windows of a copy."""
        line = WIDE_LINE // self.size
        return line, line if self.across else min(MOST_PIXELS, sides[self.role])


def image(mark: Contraction, role: str) -> Image | None:
    """Returns the operand that has loops of `role`, "m" or "n"; None if its windows cannot be copied."""
    access, prologue = (mark.lhs, mark.lhs_prologue) if role == "m" else (mark.rhs, mark.rhs_prologue)
    own, depth = ([one for one in mark.loops if one.role == kind and one.extent > 1] for kind in (role, "k"))
    batch = any(one.role == "batch" and one.extent > 1 for one in mark.loops)
    if prologue is not None or batch or not own or not depth or not 3 <= len(access.buffer.shape) <= 5:
        return None
    found = _image(role, access, own, depth)
    # Only matrices of 16 bits can be transposed.
    if found is None and storage_bytes(access.buffer.dtype) == TRANSPOSED:
        found = _image(role, access, depth, own)
        return replace(found, across=True) if found else None
    return found


def _image(role: str, access: Access, places: list[ContractionLoop], terms: list[ContractionLoop]) -> Image | None:
    """Returns an operand whose windows are numbered by the loops `places`, and the elements of each by `terms`."""
    buffer = access.buffer
    # From the outermost dimension to the innermost.
    order = sorted(range(len(buffer.shape)), key=lambda number: -buffer.layout[number])
    images, *spatial, features = (access.subscripts[number] for number in order)
    sizes = [buffer.shape[number] for number in order]
    axes = [_axis(one, size, places, terms) for one, size in zip(spatial, sizes[1:-1], strict=True)]
    found = [axis for axis in axes if axis is not None]
    count, inner = _alone(images, places), terms[-1]
    if len(found) < len(axes) or count is None or features.position.terms != {inner: 1} or features.dilation != 1:
        return None
    # Windows are numbered as they lie in memory.
    order_of_windows = [one for one in (*count, *(axis.own for axis in found)) if one is not None]
    taps = [axis.tap for axis in found if axis.tap is not None]
    if order_of_windows != places or {*taps, inner} != set(terms) or len(taps) + 1 != len(terms):
        return None
    offset = buffer.offset + features.position.offset + images.position.offset * buffer.layout[order[0]]
    made = Image(
        role,
        access,
        inner,
        tuple(reversed(found)),
        count[0] if count else None,
        count[0].extent if count else 1,
        offset,
        tuple(buffer.layout[number] for number in reversed(order[:-1])),
    )
    low, high = features.position.range
    inside = low >= 0 and high < sizes[-1] and buffer.layout[order[-1]] == 1
    low, high = images.position.range
    return made if inside and low >= 0 and high < sizes[0] and _are_regular(made) else None


def _alone(subscript: Subscript, own: list[ContractionLoop]) -> list[ContractionLoop] | None:
    """Returns the loop of windows, if there is one, whose index a subscript is; None if it is anything else."""
    terms = [(one, factor) for one, factor in subscript.position.terms.items() if one.extent > 1]  # type: ignore[union-attr]
    if subscript.dilation != 1 or len(terms) > 1 or any(factor != 1 or one not in own for one, factor in terms):
        return None
    return [one for one, _ in terms]  # type: ignore[misc]


def _axis(subscript: Subscript, size: int, own: list[ContractionLoop], depth: list[ContractionLoop]) -> Axis | None:
    """Returns a spatial dimension; None if windows do not run along it evenly."""
    terms = subscript.position.terms
    if subscript.dilation != 1 or not all(isinstance(one, ContractionLoop) for one in terms):
        return None
    running = {one: factor for one, factor in terms.items() if one.extent > 1}  # type: ignore[union-attr]
    results, taps = ([one for one in running if one in loops] for loops in (own, depth))
    if len(results) + len(taps) != len(running) or max(len(results), len(taps)) > 1:
        return None
    own_loop, tap = (found[0] if found else None for found in (results, taps))
    step, apart = (running[one] if one is not None else 1 for one in (own_loop, tap))
    if not 1 <= step <= LONGEST_STEP or apart < 1:
        return None
    return Axis(own_loop, tap, step, apart, subscript.position.offset, size)  # type: ignore[arg-type]


def _are_regular(found: Image) -> bool:
    """Whether lines are whole, distances multiples of 16 bytes and of one another, and all numbers small enough."""
    rank = len(found.extents)
    if found.features.extent * found.size % WIDE_LINE or found.offset * found.size % UNIT:
        return False
    steps = 1, *found.distances
    for (inner, outer), extent in zip(pairwise(steps), found.extents, strict=False):
        if outer < inner * extent or outer % inner or outer * found.size % UNIT:
            return False
    for axis in found.axes:
        if not all(-CORNERS[rank] <= corner < CORNERS[rank] for corner in axis.corners):
            return False
        if axis.tap is not None and axis.apart * (axis.tap.extent - 1) >= TAPS[rank]:
            return False
    return steps[-1] * found.size < MOST_BYTES and all(extent < MOST_ELEMENTS for extent in found.extents)
