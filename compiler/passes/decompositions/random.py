"""Draws from hidden state: the host provides a state that no other draw uses, a kernel turns it into random bits, and
these become numbers."""

from __future__ import annotations

import math

from trivium.compiler.host import RANDOM_STATE, random_state
from trivium.compiler.passes.decompositions.table import is_static, operands_of, pattern
from trivium.ir.custom_calls import register_custom_call
from trivium.ir.decompositions.tensors import Tensor, maximum, where
from trivium.ir.ops import (
    BroadcastInDim,
    CustomCall,
    ErfInv,
    Mulhi,
    Rng,
    RngAlgorithm,
    RngBitGenerator,
    RngDistribution,
)
from trivium.ir.types import F32, I64, UI64, IntegerType, TensorType, is_float, tensor

register_custom_call(
    RANDOM_STATE, evaluate=lambda op: random_state(), infer=lambda op: [tensor(3, of=UI64)], effects=True
)


@pattern(Rng)
def rng(op):
    """Turns random bits into numbers between `a` and `b`, or into normal ones with mean `a` and deviation `b`."""
    if not is_static(op):
        return None
    a, b, _ = operands_of(op)
    kind = op.result.type
    if not is_float(kind.element_type):
        return _whole(_spread(a, kind), _spread(b, kind)).value
    computed = kind if kind.element_type.width >= 32 else kind.with_element(F32)
    a, b = (_spread(each, kind) for each in (a, b))
    wide = a.to(computed.element_type), b.to(computed.element_type)
    if op.rng_distribution is RngDistribution.NORMAL:
        deviates = wide[0].of(ErfInv(_centred(wide[0], computed).value))
        return (wide[0] + wide[1] * (deviates * math.sqrt(2))).to(kind.element_type).value
    share = _share(wide[0], computed)
    # As two products, which overflow only if a or b is infinite.
    drawn = maximum(wide[0] * (1 - share) + wide[1] * share, wide[0]).to(kind.element_type)
    # Some numbers are rounded up to b, which does not belong to the interval.
    return where(drawn < b, drawn, a).value


def _spread(number: Tensor, kind: TensorType) -> Tensor:
    return number.of(BroadcastInDim(number.value, (), result=kind))


def _bits(like: Tensor, shape: tuple[int, ...], width: int) -> Tensor:
    """Returns random words of a width."""
    (state,) = like.scope.add(CustomCall([], RANDOM_STATE, has_side_effect=True, results=[tensor(3, of=UI64)]))
    drawn = RngBitGenerator(
        state,
        rng_algorithm=RngAlgorithm.PHILOX,
        output_state=state.type,
        output=TensorType(shape, IntegerType(width, "u")),
    )
    return like.of(drawn)[1]


def _share(like: Tensor, kind: TensorType) -> Tensor:
    """Returns random multiples of the spacing of floats below 1, from 0 to below 1."""
    width, digits = _format(kind)
    return (_bits(like, kind.static_shape, width) >> (width - digits)).to(kind.element_type) * 2.0**-digits


def _centred(like: Tensor, kind: TensorType) -> Tensor:
    """Returns random odd multiples of a power of two, strictly between -1 and 1."""
    width, digits = _format(kind)
    count = (_bits(like, kind.static_shape, width) >> (width - digits + 1)).to(kind.element_type)
    return (count + 0.5) * 2.0 ** (2 - digits) - 1


def _format(kind: TensorType) -> tuple[int, int]:
    """Returns the width of a float, and its number of significant digits."""
    width = kind.element_type.width
    return width, {32: 24, 64: 53}[width]


def _whole(a: Tensor, b: Tensor) -> Tensor:
    """Returns a + floor(random * (b - a)), where random is a number below 1 with 128 digits."""
    kind, shape = a.element_type, a.type.static_shape
    unsigned = kind.signedness == "u" and kind.width == 64
    low, high = (each.to(UI64) if unsigned else each.to(I64).bits_as(UI64) for each in (a, b))
    extent = high - low
    upper, lower = (_bits(a, shape, 64) for _ in range(2))
    carried = a.of(Mulhi(lower.value, extent.value))
    middle = upper * extent + carried
    steps = a.of(Mulhi(upper.value, extent.value)) + (middle < carried).to(UI64)
    drawn = low + steps
    drawn = drawn if unsigned else drawn.bits_as(I64)
    return where(a < b, drawn.to(kind), a)
