"""Elementwise ops: arithmetic, functions, comparisons and selections, bits, and conversions among all element types."""

from __future__ import annotations

import numpy as np

from tests.random_programs.generator import INTEGERS, Generator, Rejected, scalars
from trivium.ir import ops
from trivium.ir.builder import Builder, region
from trivium.ir.core import Value
from trivium.ir.types import (
    BF16,
    C64,
    C128,
    F16,
    F32,
    F64,
    I1,
    is_boolean,
    is_complex,
    is_float,
    is_integer,
    tensor,
)

SMOOTH = (
    ops.Tanh, ops.Exponential, ops.Logistic, ops.Sine, ops.Cosine, ops.ExponentialMinusOne, ops.Cbrt, ops.Erf,
    ops.Atan, ops.Square,
)  # fmt: skip
POSITIVE = (ops.Log, ops.LogPlusOne, ops.Sqrt, ops.Rsqrt)
STEPS = (ops.Sign, ops.Floor, ops.Ceil, ops.RoundNearestAfz, ops.RoundNearestEven)
ARITHMETIC = (ops.Add, ops.Add, ops.Subtract, ops.Multiply, ops.Multiply, ops.Maximum, ops.Minimum)
BITS = (ops.And, ops.Or, ops.Xor)
SHIFTS = (ops.ShiftLeft, ops.ShiftRightLogical, ops.ShiftRightArithmetic)
NUMBERS = (F32, F32, F32, F64, BF16, F16, I1, *INTEGERS, C64, C128)


def unary(g: Generator) -> None:
    value = g.float_value()
    if g.chance(0.25):
        value = g.add(ops.Abs(value))
        half = g.constant(np.float32(0.5), value.type.element_type)
        half = g.add(ops.BroadcastInDim(half, broadcast_dimensions=(), result=value.type))
        g.offer(g.add(g.pick(POSITIVE)(g.add(ops.Add(value, half)))))
    elif g.chance(0.25):
        g.offer(g.add(g.pick((*STEPS, ops.Negate, ops.Abs))(value)))
    else:
        g.offer(g.add(g.pick(SMOOTH)(value)))


def binary(g: Generator) -> None:
    lhs = g.value(lambda kind: not is_boolean(kind))
    kind = lhs.type.element_type
    choices = ARITHMETIC[:5] if is_complex(kind) else ARITHMETIC
    if not is_complex(kind) and g.chance(0.15):
        choices = (ops.Divide, ops.Remainder, *((ops.Power, ops.Atan2) if is_float(kind) else ()))
    operands = [lhs, g.like(lhs)]
    if g.chance(0.3):
        operands.reverse()
    g.offer(g.add(g.pick(choices)(*operands)))


def known_power(g: Generator) -> None:
    """A constant is the exponent: some of them are computed otherwise than the rest."""
    value = g.float_value()
    exponent = g.constant(np.float32(g.pick((0.5, 1.5, 2.0, 3.0))), value.type.element_type)
    exponent = g.add(ops.BroadcastInDim(exponent, broadcast_dimensions=(), result=value.type))
    g.offer(g.add(ops.Power(value, exponent)))


def square(g: Generator) -> None:
    """Both operands are the same value."""
    value = g.value(lambda kind: not is_boolean(kind))
    g.offer(g.add(g.pick((ops.Add, ops.Multiply, ops.Subtract))(value, value)))


def chain(g: Generator) -> None:
    """A chain of ops, all of which other ops may read."""
    value = g.float_value()
    for _ in range(g.number(2, 4)):
        operands = [value] if g.chance(0.5) else [value, g.like(value)]
        value = g.add(g.pick(SMOOTH if len(operands) == 1 else ARITHMETIC)(*operands))
        if g.chance(0.4):
            g.offer(value)
    g.offer(value)


def choice(g: Generator) -> None:
    lhs = g.value()
    rhs = g.like(lhs)
    directions = list(ops.ComparisonDirection)
    if is_complex(lhs.type.element_type):
        directions = [ops.ComparisonDirection.EQ, ops.ComparisonDirection.NE]
    total = is_float(lhs.type.element_type) and g.chance(0.2)
    kind = ops.ComparisonType.TOTALORDER if total else None
    pred = g.add(ops.Compare(lhs, rhs, g.pick(directions), compare_type=kind))
    if g.chance(0.2):
        g.offer(pred)
        return
    scalar = g.chance(0.1)
    if scalar:
        pred = g.add(ops.IsFinite(g.fresh((), F32)))
    on_true = g.value()
    if tuple(on_true.type.shape) != tuple(lhs.type.shape) and not scalar:
        on_true = rhs
    g.offer(g.add(ops.Select(pred, on_true, g.like(on_true))))


def mapped(g: Generator) -> None:
    """The same computation for each element, as a region."""
    value = g.value(lambda kind: not is_boolean(kind) and not is_complex(kind))
    other, element = g.like(value), value.type.element_type

    def body(b: Builder, x: Value, y: Value) -> Value:
        above = b.add(ops.Compare(x, y, ops.ComparisonDirection.GT))
        return b.add(ops.Select(above, b.add(ops.Subtract(x, y)), b.add(ops.Negate(x))))

    dimensions = tuple(range(value.type.rank))
    g.offer(g.add(ops.Map([value, other], dimensions, computation=region(scalars(element, 2), body))))


def clamp(g: Generator) -> None:
    value = g.value(lambda kind: not is_boolean(kind) and not is_complex(kind))
    low, high = (g.constant(np.int8(number), value.type.element_type) for number in (0, 2))
    if g.chance(0.3):
        low = g.like(value)
    g.offer(g.add(ops.Clamp(low, value, high)))


def bits(g: Generator) -> None:
    value = g.value(lambda kind: is_integer(kind) or is_boolean(kind))
    if g.chance(0.25):
        unary_ops = (ops.Not,) if is_boolean(value.type.element_type) else (ops.Not, ops.Popcnt, ops.CountLeadingZeros)
        g.offer(g.add(g.pick(unary_ops)(value)))
        return
    shifts = is_integer(value.type.element_type) and g.chance(0.4)
    g.offer(g.add(g.pick(SHIFTS if shifts else BITS)(value, g.like(value))))


def convert(g: Generator) -> None:
    value = g.value()
    kinds = [k for k in NUMBERS if k is not value.type.element_type]
    if is_complex(value.type.element_type):
        kinds = [k for k in kinds if is_complex(k)]
    g.offer(g.add(ops.Convert(value, result=value.type.with_element(g.pick(kinds)))))


def rounded(g: Generator) -> None:
    """A number rounded to fewer bits, in its own type."""
    value = g.float_value()
    g.offer(g.add(ops.ReducePrecision(value, g.pick((5, 8)), g.pick((2, 7, 10)))))


def complex_parts(g: Generator) -> None:
    found = [v for v in g.pool if is_complex(v.type.element_type)]
    if found and g.chance(0.6):
        g.offer(g.add(g.pick((ops.Real, ops.Imag, ops.Abs))(g.pick(found))))
        return
    value = g.value(lambda kind: kind in (F32, F64))
    g.offer(g.add(ops.Complex(value, g.like(value))))


def same_bits(g: Generator) -> None:
    """Bits read as another type."""
    value = g.value(lambda kind: not is_boolean(kind) and not is_complex(kind))
    width = value.type.dtype.itemsize
    same = [k for k in NUMBERS if k is not I1 and not is_complex(k) and tensor(of=k).dtype.itemsize == width]
    g.offer(g.add(ops.BitcastConvert(value, result=value.type.with_element(g.pick(same)))))


def iota(g: Generator) -> None:
    shape = g.shape(1)
    if not shape:
        raise Rejected
    element = g.element(lambda kind: not is_boolean(kind))
    g.offer(g.add(ops.Iota(g.number(0, len(shape) - 1), result=tensor(*shape, of=element))))


def random_bits(g: Generator) -> None:
    state = g.constant(g.rng.integers(0, 1 << 60, 2).astype(np.uint64))
    kind = g.element(is_integer)
    algorithm = g.pick(list(ops.RngAlgorithm))
    op = ops.RngBitGenerator(
        state, rng_algorithm=algorithm, output_state=state.type, output=tensor(*g.shape(1), of=kind)
    )
    following, drawn = g.add(op)
    g.offer(drawn)
    if g.chance(0.3):
        g.offer(following)


FAMILIES = (
    *(unary,) * 3, *(binary,) * 6, known_power, square, *(chain,) * 3, choice, choice, mapped, clamp, bits,
    *(convert,) * 3, rounded, complex_parts, same_bits, iota, random_bits,
)  # fmt: skip
