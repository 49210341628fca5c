"""Bit casts for which kernels have no single operation: of booleans, each of which takes a byte, and of complex
numbers, which are pairs."""

from __future__ import annotations

from trivium.compiler.passes.decompositions.table import (
    broadcast,
    is_static,
    joined,
    operands_of,
    part,
    pattern,
    reduced,
    reshape,
)
from trivium.ir.decompositions.tensors import Tensor, complex_of, imag, real
from trivium.ir.ops import BitcastConvert, Iota, Or, ShiftLeft
from trivium.ir.ops.common import bits_of
from trivium.ir.types import I1, ComplexType, IntegerType, Type, is_complex


@pattern(BitcastConvert)
def bitcast_convert(op):
    """Uses shifts of single bits, or the real and imaginary parts of complex numbers."""
    before, after = op.operand.type.element_type, op.result.type.element_type
    if before is after:
        return op.operand
    if not is_static(op):
        return None
    (x,) = operands_of(op)
    if before is I1:
        return _from_booleans(x, after).value
    if after is I1:
        return _to_booleans(x).value
    if is_complex(before) and is_complex(after):
        return _between_complex(x, after).value
    return None


def _places(like: Tensor) -> Tensor:
    """Returns the index along the last dimension."""
    return like.of(Iota(like.type.rank - 1, result=like.type))


def _unsigned(kind: Type) -> IntegerType:
    return IntegerType(bits_of(kind), "u")


def _from_booleans(x: Tensor, kind: Type) -> Tensor:
    """Packs each row of bits into one element, the lowest bit first."""
    digits = x.to(_unsigned(kind))
    placed = digits.of(ShiftLeft(digits.value, _places(digits).value))
    return reduced(placed, (x.type.rank - 1,), Or).bits_as(kind)


def _to_booleans(x: Tensor) -> Tensor:
    """Unpacks each element into a row of bits."""
    word = x.bits_as(_unsigned(x.element_type)) if x.element_type is not _unsigned(x.element_type) else x
    rank, width = x.type.rank, bits_of(x.element_type)
    row = broadcast(word, (*x.type.static_shape, width), range(rank))
    return ((row >> _places(row)) & 1).to(I1)


def _between_complex(x: Tensor, kind: ComplexType) -> Tensor:
    """Casts by way of floats, two for each complex number, along a new last dimension."""
    element = x.element_type.element_type
    wider = bits_of(element) < bits_of(kind.element_type)
    part_type, shape = kind.element_type, x.type.static_shape
    pairs = joined(len(shape), *(reshape(each, *shape, 1) for each in (real(x), imag(x))))
    # (..., 2 numbers, 2 parts): each part of a number becomes half of a part, or the other way round.
    whole = shape if wider else (*shape, 2, 2)
    floats = pairs.of(BitcastConvert(pairs.value, result=pairs.type.with_element(part_type).with_shape(whole)))
    axis = len(whole) - 1
    return complex_of(*(reshape(part(floats, axis, place, place + 1), *whole[:-1]) for place in range(2)))
