"""Convolutions with windows of 3x3 by Winograd's minimal filtering (Lavin and Gray, "Fast Algorithms for Convolutional
Neural Networks", 2015). A tile of m x m results takes (m + 2)^2 products for each pair of features, where its windows
have 9 m^2: 2.25 times as many with m = 2, 4 times with m = 4. The image's tiles and the kernel are transformed, for
each of the (m + 2)^2 places a product of matrices follows, and its results are transformed back.

Sums are reassociated, and of numbers of different sizes: relative to the largest result, errors are some 1e-6 (m = 2)
or 1e-5 (m = 4), and an infinite element makes NaNs of a whole tile. So this is done for `fast_math` alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.decompositions.table import constant, dot, joined, part, reshape, reverse, transpose
from trivium.compiler.passes.layout import is_plain
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.passes.padding import with_zeros
from trivium.compiler.passes.patterns.matching import constant as known_numbers
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.decompositions.tensors import Scope, Tensor
from trivium.ir.func import Module
from trivium.ir.types import F32

Line = Sequence[Tensor]
"""What lies along a row or a column of a tile."""

WINDOW, ITEM = 3, 4
"""The taps of a window along each dimension, and the size of an element in bytes."""

# What vectors cost:
TILED = 6.0
"""those of transformed tiles, of the image as of the result, which are made of about as many and written;"""
PLACED = 12.0
"""those of the result, which is written once more, as is the image with its padding;"""
TURNED = 12.0
"""those of a transformed kernel that is not known, and packed;"""
FETCHED = 6.0
"""and those of a kernel, read from memory."""

GAIN = 0.85
"""The part of a convolution's cost up to which tiles pay off."""


@dataclass(frozen=True)
class Winograd(Pass):
    """Afterwards, convolutions of f32 whose windows of 3x3 overlap are products of transformed tiles, if these take
    less time."""

    NAME: ClassVar[str] = "winograd"

    target: Target

    def run(self, module: Module) -> bool:
        convolutions = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        found = [(op, tiling) for op in convolutions if (tiling := fastest(op, self.target)) is not None]
        for op, tiling in found:
            _replace(op, tiling)
        return bool(found)


@dataclass(frozen=True, eq=False)
class Tiling:
    """Tiles of `size` x `size` results, and the transforms of one line of a tile: of the image, of the kernel, and
    back."""

    size: int
    of_image: Callable[[Line], Line]
    of_kernel: np.ndarray
    back: Callable[[Line], Line]

    @property
    def places(self) -> int:
        """The elements of the image along a line of a tile, of which neighbouring tiles share two."""
        return self.size + WINDOW - 1

    def counts(self, op: ops.Convolution) -> tuple[int, ...]:
        """Returns the number of tiles along both dimensions of the result."""
        return tuple(-(-extent // self.size) for extent in op.result.type.static_shape[1:3])


def _image_of_4(x: Line) -> Line:
    return [x[0] - x[2], x[1] + x[2], x[2] - x[1], x[1] - x[3]]


def _back_from_4(x: Line) -> Line:
    return [x[0] + x[1] + x[2], x[1] - x[2] - x[3]]


def _image_of_6(x: Line) -> Line:
    even, odd = x[4] - x[2] * 4, x[3] - x[1] * 4
    far, near = x[4] - x[2], (x[3] - x[1]) * 2
    first, last = x[0] * 4 - x[2] * 5 + x[4], x[1] * 4 - x[3] * 5 + x[5]
    return [first, even + odd, even - odd, far + near, far - near, last]


def _back_from_6(x: Line) -> Line:
    ones, twos = (x[1] + x[2], x[1] - x[2]), (x[3] + x[4], x[3] - x[4])
    return [
        x[0] + ones[0] + twos[0],
        ones[1] + twos[1] * 2,
        ones[0] + twos[0] * 4,
        ones[1] + twos[1] * 8 + x[5],
    ]


KERNEL_OF_4 = np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]])
KERNEL_OF_6 = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)
TILINGS = Tiling(2, _image_of_4, KERNEL_OF_4, _back_from_4), Tiling(4, _image_of_6, KERNEL_OF_6, _back_from_6)


def fastest(op: ops.Convolution, target: Target) -> Tiling | None:
    """Returns the tiling by which a convolution takes the least time, if that is less than without."""
    if not _is_overlapping(op):
        return None
    costs = [_cost(op, tiling, target) for tiling in TILINGS]
    features = op.result.type.static_shape[3]
    direct = _multiplied(op.result.type.size * op.rhs.type.size // features, op.rhs.type.size, target)
    return TILINGS[costs.index(min(costs))] if min(costs) <= GAIN * direct else None


def _cost(op: ops.Convolution, tiling: Tiling, target: Target) -> float:
    """Returns the cost of a convolution by tiles."""
    batch, *_, outputs = op.result.type.static_shape
    inputs, places = op.lhs.type.static_shape[3], tiling.places**2
    tiles, kernel = batch * math.prod(tiling.counts(op)), places * inputs * outputs
    written = TILED * places * tiles * (inputs + outputs) + PLACED * op.result.type.size
    if known_numbers(op.rhs) is None:
        written += TURNED * kernel
    return _multiplied(tiles * kernel, kernel, target) + written * ITEM / target.vector_bytes


def _multiplied(products: int, kernel: int, target: Target) -> float:
    """Returns the cost of so many products with elements of a kernel, or of reading the kernel from memory if that
    takes longer, because both happen at once. Threads divide the products among them, but not the memory's speed."""
    fetched = FETCHED * target.threads * kernel * ITEM / target.vector_bytes
    return max(target.product_cost(2 * products, ITEM), fetched)


def _is_overlapping(op: ops.Convolution) -> bool:
    """Whether a convolution has windows of 3x3, at all places of an image with its features last."""
    numbers, last = op.dimension_numbers, (0, 3, 1, 2)
    steps = (*(op.window_strides or ()), *(op.rhs_dilation or ()))
    if op.result.type.rank != 4 or not is_plain(op) or op.result.type.element_type is not F32:
        return False
    if 0 in (op.lhs.type.size, op.rhs.type.size, op.result.type.size):
        return False
    in_order = numbers.input_dimensions == last == numbers.output_dimensions
    window = [op.rhs.type.static_shape[d] for d in numbers.kernel_spatial_dimensions]
    padded = all(amount >= 0 for pair in op.padding or () for amount in pair)
    exact = any(precision is not ops.Precision.DEFAULT for precision in op.precision_config or ())
    return in_order and window == [WINDOW, WINDOW] and all(step == 1 for step in steps) and padded and not exact


def _replace(op: ops.Convolution, tiling: Tiling) -> None:
    rewriter = Rewriter(op)
    scope, size = Scope(rewriter), tiling.size
    counts, (batch, *extents, features) = tiling.counts(op), op.result.type.static_shape
    image = _transformed_image(op, rewriter, scope, tiling)
    kernel = _transformed_kernel(op, scope, tiling)
    products = dot(image, kernel, ops.DotDimensionNumbers((0,), (0,), (2,), (1,)))
    squares = _squares(products, tiling.places, (batch, *counts, features))
    tiles = _along_both(squares, tiling.back)
    placed = reshape(_stacked(tiles), size, size, batch, *counts, features)
    placed = transpose(placed, 2, 3, 0, 4, 1, 5)  # the tiles' rows and columns beside their numbers
    found = reshape(placed, batch, *(size * count for count in counts), features)
    for d, extent in enumerate(extents):
        found = part(found, d + 1, 0, extent)
    rewriter.replace(found.value)


def _transformed_image(op: ops.Convolution, rewriter: Rewriter, scope: Scope, tiling: Tiling) -> Tensor:
    """Returns the transformed tiles: a matrix of tiles and features for each place."""
    size, counts, (batch, *extents, features) = tiling.size, tiling.counts(op), op.lhs.type.static_shape
    low = [before for before, _ in op.padding or ((0, 0), (0, 0))]
    ends = [size * count + WINDOW - 1 for count in counts]
    high = [end - before - extent for end, before, extent in zip(ends, low, extents, strict=True)]
    padded = with_zeros(rewriter, op.lhs, [0, *low, 0], [0, *high, 0]) if any(low + high) else op.lhs

    def at(row: int, column: int) -> Tensor:
        ends = (start + size * (count - 1) + 1 for start, count in zip((row, column), counts, strict=True))
        limits = batch, *ends, features
        return Tensor(rewriter.add(ops.Slice(padded, (0, row, column, 0), limits, (1, size, size, 1))), scope)

    squares = [[at(row, column) for column in range(tiling.places)] for row in range(tiling.places)]
    stacked = _stacked(_along_both(squares, tiling.of_image))
    return reshape(stacked, tiling.places**2, batch * math.prod(counts), features)


def _transformed_kernel(op: ops.Convolution, scope: Scope, tiling: Tiling) -> Tensor:
    """Returns the transformed kernel: a matrix of the features of the image and of the result for each place."""
    inputs, outputs, *spatial = (op.dimension_numbers.kernel_dimensions[place] for place in (1, 0, 2, 3))
    order, matrix = (*spatial, inputs, outputs), tiling.of_kernel
    known = known_numbers(op.rhs)
    flipped = tuple(d for d, flips in enumerate(op.window_reversal or ()) if flips)
    kernel = Tensor(op.rhs, scope)
    if known is not None:
        taps = np.flip(np.transpose(known, order), flipped).astype(np.float64)
        numbers = np.einsum("ij,kl,jlxy->ikxy", matrix, matrix, taps, optimize=True)
        return constant(kernel, numbers.reshape(tiling.places**2, *numbers.shape[2:]))
    kernel = transpose(kernel, *order)
    for d in flipped:
        kernel = reverse(kernel, d)
    squares = _squares(kernel, WINDOW, kernel.type.static_shape[2:])
    return _stacked(_along_both(squares, lambda line: _weighted(matrix, line)))


def _weighted(matrix: np.ndarray, line: Line) -> Line:
    """Returns the product of a matrix and a line."""
    return [reduce(Tensor.__add__, [x * float(w) for x, w in zip(line, row, strict=True) if w]) for row in matrix]


def _squares(values: Tensor, places: int, shape: Sequence[int]) -> Sequence[Line]:
    """Returns the parts of a tensor for each place, in rows."""
    flat = reshape(values, places**2, *shape)
    parts = [reshape(part(flat, 0, place, place + 1), *shape) for place in range(places**2)]
    return [parts[places * row : places * (row + 1)] for row in range(places)]


def _along_both(square: Sequence[Line], transform: Callable[[Line], Line]) -> Sequence[Line]:
    """Transforms the columns of a square, then its rows."""
    columns = [transform(column) for column in zip(*square, strict=True)]
    return [transform(row) for row in zip(*columns, strict=True)]


def _stacked(square: Sequence[Line]) -> Tensor:
    """Joins the elements of a square along a new first dimension, row by row."""
    return joined(0, *(reshape(each, 1, *each.type.static_shape) for row in square for each in row))
