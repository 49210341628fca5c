"""Convolutions with few output features, such as the last ones of networks that draw or label pictures: their features
do not fill a vector. Those of several taps do, side by side. Each is then the product of the image and a kernel without
these taps, and the result is the sum of their images, each moved by its tap."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from trivium.compiler.lowering.contraction import operand_order
from trivium.compiler.passes.layout import is_plain
from trivium.compiler.passes.manager import Pass, blocks
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module

LARGE = 4 << 20
"""The size of an array in bytes from which it is read from memory rather than from caches."""

# The products of vectors that take as long as:
MOVED, MOVED_FAR = 6.0, 20.0
"""adding one element of an image that was moved, from caches or from memory;"""
PACKED = 0.8
"""packing one element of an image whose features are not last in memory;"""
TURNED = 8.0
"""writing it with its features last."""

GAIN = 0.75
"""The part of the time that it must take at most, to be worth an array more."""


@dataclass(frozen=True)
class FewFeatures(Pass):
    """Afterwards, convolutions with few output features have those of several taps side by side where that takes less
    time."""

    NAME: ClassVar[str] = "few-features"

    vector_bytes: int

    def run(self, module: Module) -> bool:
        found = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution) and _is_possible(op)]
        turned = [(op, dimensions) for op in found if (dimensions := self._dimensions(op))]
        for op, dimensions in turned:
            _rewrite(op, dimensions)
        return bool(turned)

    def _dimensions(self, op: ops.Convolution) -> Sequence[int]:
        """Returns the spatial dimensions whose taps are to be side by side."""
        lanes = self.vector_bytes // op.result.type.dtype.itemsize
        strides = _each(op.window_strides, op)
        possible = [d for d, taps in enumerate(_taps(op)) if taps > 1 == strides[d]]
        every = itertools.chain(*(itertools.combinations(possible, n) for n in range(1, len(possible) + 1)))
        costs = {some: _cost(op, some, lanes) for some in every}
        best = min(costs, key=costs.__getitem__, default=())
        return best if best and costs[best] <= GAIN * _cost(op, (), lanes) else ()


def _cost(op: ops.Convolution, dimensions: Sequence[int], lanes: int) -> float:
    """Returns the cost of an element of the result, in products of vectors."""
    features, inputs = _features(op), op.rhs.type.static_shape[op.dimension_numbers.kernel_input_feature_dimension]
    last = operand_order(op.lhs)[1][-1] == op.dimension_numbers.input_feature_dimension
    terms, taps = op.rhs.type.size // features, math.prod(_taps(op)[d] for d in dimensions)
    if not dimensions:
        return terms * (-(-features // lanes) if last else PACKED + features / lanes)
    wide, left = features * taps, terms // taps
    size = op.result.type.size * op.result.type.dtype.itemsize * taps
    moved = wide * (MOVED if size <= LARGE else MOVED_FAR)
    turned = 0 if last else PACKED * left if left == inputs else TURNED * inputs
    return -(-wide // lanes) * left + moved + turned


def _is_possible(op: ops.Convolution) -> bool:
    """Whether a convolution can be rewritten, and its result has its features last."""
    if not is_plain(op) or any(op.window_reversal or ()) or op.result.type.size == 0 or op.rhs.type.size == 0:
        return False
    return op.dimension_numbers.output_feature_dimension == op.result.type.rank - 1


def _features(op: ops.Convolution) -> int:
    return op.rhs.type.static_shape[op.dimension_numbers.kernel_output_feature_dimension]


def _taps(op: ops.Convolution) -> list[int]:
    return [op.rhs.type.static_shape[d] for d in op.dimension_numbers.kernel_spatial_dimensions]


def _each(given: Sequence[int] | None, op: ops.Convolution) -> list[int]:
    """Returns a number for each spatial dimension."""
    return list(given or (1,) * (op.result.type.rank - 2))


def _rewrite(op: ops.Convolution, dimensions: Sequence[int]) -> None:
    rewriter, features, sizes = Rewriter(op), _features(op), [_taps(op)[d] for d in dimensions]
    apart = [_each(op.rhs_dilation, op)[d] for d in dimensions]
    wide = _wide(rewriter, op, dimensions)
    numbers, shape = op.dimension_numbers, op.result.type.static_shape
    moved = []
    for number, tap in enumerate(itertools.product(*map(range, sizes))):
        starts = [0] * len(shape)
        for dimension, position, step in zip(dimensions, tap, apart, strict=True):
            starts[numbers.output_spatial_dimensions[dimension]] = position * step
        starts[numbers.output_feature_dimension] = number * features
        limits = [start + extent for start, extent in zip(starts, shape, strict=True)]
        moved.append(rewriter.add(ops.Slice(wide, starts, limits, [1] * len(shape))))
    rewriter.replace(functools.reduce(lambda total, one: rewriter.add(ops.Add(total, one)), moved))


def _wide(rewriter: Rewriter, op: ops.Convolution, dimensions: Sequence[int]) -> Value:
    """Returns the features of each tap along `dimensions`, of as much of the image as the taps reach."""
    numbers, sizes = op.dimension_numbers, _taps(op)
    apart, shape = _each(op.rhs_dilation, op), list(op.result.type.static_shape)
    for d in dimensions:
        shape[numbers.output_spatial_dimensions[d]] += (sizes[d] - 1) * apart[d]
    shape[numbers.output_feature_dimension] *= math.prod(sizes[d] for d in dimensions)
    kept = [d for d in range(len(sizes)) if d not in dimensions]
    order = [
        *(numbers.kernel_spatial_dimensions[d] for d in kept), numbers.kernel_input_feature_dimension,
        *(numbers.kernel_spatial_dimensions[d] for d in dimensions), numbers.kernel_output_feature_dimension,
    ]  # fmt: skip
    inputs = op.rhs.type.static_shape[numbers.kernel_input_feature_dimension]
    window = [1 if d in dimensions else size for d, size in enumerate(sizes)]
    kernel = rewriter.add(ops.Transpose(op.rhs, permutation=order))
    kind = op.rhs.type.with_shape((*window, inputs, shape[numbers.output_feature_dimension]))
    kernel = rewriter.add(ops.Reshape(kernel, result=kind))
    turned = replace(
        numbers,
        kernel_spatial_dimensions=tuple(range(len(sizes))),
        kernel_input_feature_dimension=len(sizes),
        kernel_output_feature_dimension=len(sizes) + 1,
    )
    dilation = tuple(1 if d in dimensions else step for d, step in enumerate(apart))
    attributes = {**op.attributes, "dimension_numbers": turned, "rhs_dilation": dilation}
    types = [op.result.type.with_shape(tuple(shape))]
    new = type(op).create([op.lhs, kernel], types, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    return new.results[0]
