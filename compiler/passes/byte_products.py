"""Products of quantized numbers: of 8-bit integers that are converted to 32 bits, less a zero point, (x - a) * (y - b).
The sums of such products are those of products of bytes, which backends compute fast, less the sums of each factor
times the zero point of the other one. All of this is exact, because integers wrap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.passes.patterns.matching import constant, splat
from trivium.ir import ops
from trivium.ir.builder import Rewriter, region
from trivium.ir.core import Region, Value
from trivium.ir.func import Module
from trivium.ir.types import I8, I32, UI8, TensorType


@dataclass(frozen=True)
class ByteProducts(Pass):
    """Afterwards, products and convolutions in i32 of bytes less a zero point multiply signed bytes."""

    NAME: ClassVar[str] = "byte-products"

    def run(self, module: Module) -> bool:
        products = [op for block in blocks(module) for op in block if isinstance(op, ops.DotGeneral | ops.Convolution)]
        found = [(op, factors) for op in products if (factors := _factors(op)) is not None]
        for op, (lhs, rhs) in found:
            rewriter = Rewriter(op)
            replace = _replace_product if isinstance(op, ops.DotGeneral) else _replace_convolution
            replace(rewriter, op, _signed(rewriter, lhs), _signed(rewriter, rhs))  # type: ignore[arg-type]
        return bool(found)


@dataclass(frozen=True)
class Factor:
    """The numbers `stored` - `zero`: bytes, those of a constant as an array with sign, and a number or a scalar of 32
    bits."""

    stored: Value | np.ndarray
    zero: int | Value

    @property
    def signed_zero(self) -> int | None:
        """The zero point of bytes with a sign, if it is known: those without one lie 128 above."""
        if not isinstance(self.zero, int):
            return None
        signed = isinstance(self.stored, np.ndarray) or self.stored.type.element_type is I8
        return self.zero if signed else self.zero - 128

    @property
    def zero_is_byte(self) -> bool:
        """Whether the zero point is one of the numbers that the bytes can be."""
        known = self.signed_zero
        if known is not None:
            return -128 <= known <= 127
        assert not isinstance(self.zero, int)
        assert not isinstance(self.stored, np.ndarray)
        op = self.zero.defining_op
        while isinstance(op, ops.Reshape | ops.BroadcastInDim):
            op = op.operand.defining_op
        return isinstance(op, ops.Convert) and op.operand.type.element_type is self.stored.type.element_type


@dataclass(frozen=True)
class Signed:
    """A factor of bytes with a sign."""

    stored: Value
    zero: int | Value


def _factors(op: ops.DotGeneral | ops.Convolution) -> tuple[Factor, Factor] | None:
    """Returns the factors of a product that can be replaced. The image of a convolution is padded with zeros: its zero
    point must be a byte to be padded with. A kernel with groups must have no zero point: sums of the windows of each
    group take as long as the products."""
    if op.result.type.element_type is not I32 or not op.result.type.is_static:
        return None
    lhs, rhs = _factor(op.lhs), _factor(op.rhs)
    if lhs is None or rhs is None:
        return None
    if isinstance(op, ops.DotGeneral):
        return (lhs, rhs) if op.algorithm is None else None
    centered = rhs.signed_zero == 0 or op.feature_group_count == op.batch_group_count == 1
    return (lhs, rhs) if centered and (lhs.zero_is_byte or not _pads(op)) else None


def _factor(value: Value) -> Factor | None:
    """Returns a value of 32 bits as a factor, if it is one."""
    zero: int | Value = 0
    known, op = constant(value), value.defining_op
    if known is not None:
        return _known_factor(known)
    if isinstance(op, ops.Subtract):
        found = _scalar(op.rhs)
        if found is None:
            return None
        zero, op = found, op.lhs.defining_op
    if not isinstance(op, ops.Convert) or op.operand.type.element_type not in (I8, UI8):
        return None
    return Factor(op.operand, zero) if op.result.type.element_type is I32 else None


def _known_factor(numbers: np.ndarray) -> Factor | None:
    """Returns a constant of 32 bits as a factor: small ones are folded, and are no longer conversions of bytes."""
    if not numbers.size or numbers.dtype != np.int32:
        return None
    least, greatest = int(numbers.min()), int(numbers.max())
    if greatest - least > 255:
        return None
    zero = 0 if least >= -128 and greatest <= 127 else -128 - least
    return Factor((numbers.astype(np.int64) + zero).astype(np.int8), zero)


def _scalar(value: Value) -> int | Value | None:
    """Returns the number that is everywhere in a value, if there is one."""
    known = splat(value)
    if known is not None:
        return int(known)
    op = value.defining_op
    return op.operand if isinstance(op, ops.BroadcastInDim) and not op.operand.type.rank else None


def _replace_product(rewriter: Rewriter, op: ops.DotGeneral, lhs: Signed, rhs: Signed) -> None:
    """(x - a) * (y - b) == x * y - b * sums of x - a * (sums of y - b * terms)"""
    numbers = op.dot_dimension_numbers
    sides = (
        (numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions, op.lhs.type.rank),
        (numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, op.rhs.type.rank),
    )
    places, first = [], len(numbers.lhs_batching_dimensions)
    for batch, summed, rank in sides:
        free = [d for d in range(rank) if d not in (*batch, *summed)]
        order = [*batch, *free]
        of_result = [*range(len(batch)), *range(first, first + len(free))]
        places.append([of_result[order.index(d)] for d in range(rank) if d not in summed])
        first += len(free)
    of_lhs = _sums(rewriter, lhs.stored, numbers.lhs_contracting_dimensions)
    of_rhs = _sums(rewriter, rhs.stored, numbers.rhs_contracting_dimensions)
    terms = math.prod(op.lhs.type.static_shape[d] for d in numbers.lhs_contracting_dimensions)
    of_rhs = _centered(rewriter, of_rhs, terms, rhs.zero)
    total = _like(rewriter, op, lhs.stored, rhs.stored)
    total = _minus(rewriter, total, _times(rewriter, of_lhs, rhs.zero), places[0])
    rewriter.replace(_minus(rewriter, total, _times(rewriter, of_rhs, lhs.zero), places[1]))


def _replace_convolution(rewriter: Rewriter, op: ops.Convolution, image: Signed, kernel: Signed) -> None:
    """(x - a) * (y - b) == x * y - a * (sums of y - b * terms) - b * sums of windows of x, where x is padded with a"""
    numbers, padded, changes = op.dimension_numbers, image.stored, {}
    if (image.zero != 0 or kernel.zero != 0) and _pads(op):
        padded, changes = _padded(rewriter, op, image), _without_padding(op)
    total = _like(rewriter, op, padded, kernel.stored, **changes)
    summed = [d for d in range(op.rhs.type.rank) if d != numbers.kernel_output_feature_dimension]
    of_kernel = _sums(rewriter, kernel.stored, summed)
    terms = math.prod(op.rhs.type.static_shape[d] for d in summed)
    of_kernel = _centered(rewriter, of_kernel, terms, kernel.zero)
    total = _minus(rewriter, total, _times(rewriter, of_kernel, image.zero), [numbers.output_feature_dimension])
    if kernel.zero != 0:
        of_windows = _times(rewriter, _window_sums(rewriter, op, padded), kernel.zero)
        places = {numbers.input_batch_dimension: numbers.output_batch_dimension}
        places |= zip(numbers.input_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
        total = _minus(rewriter, total, of_windows, [places[d] for d in sorted(places)])
    rewriter.replace(total)


def _window_sums(rewriter: Rewriter, op: ops.Convolution, image: Value) -> Value:
    """Returns the sums of the windows of an image that is padded already, without its dimension of features."""
    numbers = op.dimension_numbers
    of_features = _sums(rewriter, image, [numbers.input_feature_dimension])
    kept = [d for d in range(image.type.rank) if d != numbers.input_feature_dimension]
    sizes, strides, steps = [1] * len(kept), [1] * len(kept), [1] * len(kept)
    for i, d in enumerate(numbers.input_spatial_dimensions):
        place = kept.index(d)
        sizes[place] = op.rhs.type.static_shape[numbers.kernel_spatial_dimensions[i]]
        strides[place] = op.window_strides[i] if op.window_strides else 1
        steps[place] = op.rhs_dilation[i] if op.rhs_dilation else 1
    windows = ops.ReduceWindow(
        [of_features],
        [_zero(rewriter)],
        window_dimensions=tuple(sizes),
        window_strides=tuple(strides),
        window_dilations=tuple(steps),
        body=_addition(),
    )
    return rewriter.add(windows)[0]


def _signed(rewriter: Rewriter, factor: Factor) -> Signed:
    """Returns a factor as bytes with a sign, and their zero point."""
    if isinstance(factor.stored, np.ndarray):
        return Signed(rewriter.add(ops.Constant(factor.stored)), factor.zero)
    if factor.stored.type.element_type is I8:
        return Signed(factor.stored, factor.zero)
    turned = rewriter.add(ops.Xor(factor.stored, _splat(rewriter, 128, factor.stored)))
    stored = rewriter.add(ops.BitcastConvert(turned, result=factor.stored.type.with_element(I8)))
    if factor.signed_zero is not None:
        return Signed(stored, factor.signed_zero)
    assert not isinstance(factor.zero, int)
    return Signed(stored, rewriter.add(ops.Subtract(factor.zero, _splat(rewriter, 128, factor.zero))))


def _sums(rewriter: Rewriter, stored: Value, dimensions: Sequence[int]) -> Value:
    """Returns sums of bytes in 32 bits; those of a constant are known."""
    known = constant(stored)
    if known is not None:
        total = known.sum(axis=tuple(dimensions), dtype=np.int32)
        return rewriter.add(ops.Constant(np.asarray(total, np.int32)))
    wide = rewriter.add(ops.Convert(stored, result=stored.type.with_element(I32)))
    return rewriter.add(ops.Reduce([wide], [_zero(rewriter)], tuple(dimensions), _addition()))[0]


def _zero(rewriter: Rewriter) -> Value:
    return rewriter.add(ops.Constant(np.zeros((), np.int32)))


def _addition() -> Region:
    kind = TensorType((), I32)
    return region([kind, kind], lambda builder, one, other: builder.add(ops.Add(one, other)))


def _times(rewriter: Rewriter, value: Value, zero: int | Value) -> Value | None:
    """Returns a value times a zero point; None if that is 0."""
    if isinstance(zero, int):
        return rewriter.add(ops.Multiply(value, _splat(rewriter, zero, value))) if zero else None
    everywhere = rewriter.add(ops.BroadcastInDim(zero, (), result=value.type))
    return rewriter.add(ops.Multiply(value, everywhere))


def _centered(rewriter: Rewriter, sums: Value, terms: int, zero: int | Value) -> Value:
    """Returns the sums of numbers less a zero point, from those of `terms` numbers each."""
    counted = _times(rewriter, _splat(rewriter, terms, sums), zero) if zero != 0 else None
    return sums if counted is None else rewriter.add(ops.Subtract(sums, counted))


def _minus(rewriter: Rewriter, total: Value, sums: Value | None, dimensions: Sequence[int]) -> Value:
    """Returns `total` less `sums`, if there are any, along some of its dimensions."""
    if sums is None:
        return total
    everywhere = rewriter.add(ops.BroadcastInDim(sums, tuple(dimensions), result=total.type))
    return rewriter.add(ops.Subtract(total, everywhere))


def _splat(rewriter: Rewriter, number: int, like: Value) -> Value:
    scalar = rewriter.add(ops.Constant(np.asarray(number, like.type.dtype)))
    return rewriter.add(ops.BroadcastInDim(scalar, (), result=like.type))


def _like(rewriter: Rewriter, op: ops.DotGeneral | ops.Convolution, *operands: Value, **changes: object) -> Value:
    """Returns the same op of other operands."""
    attributes = {**op.attributes, **changes}
    new = type(op).create(operands, op.result_types, attributes, [], op.extra, op.location, op.segments)
    return rewriter.add(new)


# Padding


def _pads(op: ops.Convolution) -> bool:
    """Whether a convolution reads zeros around or between the elements of its image."""
    return any(amount for pair in op.padding or () for amount in pair) or any(
        step != 1 for step in op.lhs_dilation or ()
    )


def _padded(rewriter: Rewriter, op: ops.Convolution, image: Signed) -> Value:
    """Returns the bytes of an image with its zero point where there is padding."""
    rank, spatial = image.stored.type.rank, op.dimension_numbers.input_spatial_dimensions
    low, high, between = [0] * rank, [0] * rank, [0] * rank
    padding = op.padding or [(0, 0)] * len(spatial)
    for d, (before, after), step in zip(spatial, padding, op.lhs_dilation or [1] * len(spatial), strict=True):
        low[d], high[d], between[d] = before, after, step - 1
    zero = image.zero
    if isinstance(zero, Value):
        value = rewriter.add(ops.Convert(zero, result=zero.type.with_element(I8)))
    else:
        value = rewriter.add(ops.Constant(np.asarray(zero, np.int8)))
    return rewriter.add(ops.Pad(image.stored, value, low, high, between))


def _without_padding(op: ops.Convolution) -> dict[str, object]:
    count = len(op.dimension_numbers.input_spatial_dimensions)
    return {"padding": ((0, 0),) * count, "lhs_dilation": (1,) * count}
