"""Arithmetic, comparison and conversion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jax import lax

from trivium.importers.jax.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.types import IntegerType, is_boolean, is_complex, is_float

UNARY = {
    "abs": ops.Abs,
    "acos": ops.Acos,
    "acosh": ops.Acosh,
    "asin": ops.Asin,
    "asinh": ops.Asinh,
    "atan": ops.Atan,
    "atanh": ops.Atanh,
    "bessel_i1e": ops.BesselI1e,
    "cbrt": ops.Cbrt,
    "ceil": ops.Ceil,
    "clz": ops.CountLeadingZeros,
    "cos": ops.Cosine,
    "cosh": ops.Cosh,
    "digamma": ops.Digamma,
    "erf": ops.Erf,
    "erf_inv": ops.ErfInv,
    "erfc": ops.Erfc,
    "exp": ops.Exponential,
    "expm1": ops.ExponentialMinusOne,
    "floor": ops.Floor,
    "imag": ops.Imag,
    "is_finite": ops.IsFinite,
    "lgamma": ops.Lgamma,
    "log": ops.Log,
    "log1p": ops.LogPlusOne,
    "logistic": ops.Logistic,
    "neg": ops.Negate,
    "not": ops.Not,
    "population_count": ops.Popcnt,
    "real": ops.Real,
    "rsqrt": ops.Rsqrt,
    "sin": ops.Sine,
    "sinh": ops.Sinh,
    "sqrt": ops.Sqrt,
    "tan": ops.Tan,
    "tanh": ops.Tanh,
}
BINARY = {
    "add": ops.Add,
    "add_any": ops.Add,
    "and": ops.And,
    "atan2": ops.Atan2,
    "complex": ops.Complex,
    "div": ops.Divide,
    "max": ops.Maximum,
    "min": ops.Minimum,
    "mulhi": ops.Mulhi,
    "nextafter": ops.NextAfter,
    "or": ops.Or,
    "polygamma": ops.Polygamma,
    "rem": ops.Remainder,
    "shift_left": ops.ShiftLeft,
    "shift_right_arithmetic": ops.ShiftRightArithmetic,
    "shift_right_logical": ops.ShiftRightLogical,
    "sub": ops.Subtract,
    "xor": ops.Xor,
    "zeta": ops.Zeta,
}
COMPARISONS = ("eq", "ne", "ge", "gt", "le", "lt")


def _unary(op: type[Op]) -> Callable[[Context, Value], Value]:
    def convert(ctx: Context, x: Value) -> Value:
        return ctx.add(op(x))

    return convert


def _binary(op: type[Op]) -> Callable[[Context, Value, Value], Value]:
    def convert(ctx: Context, lhs: Value, rhs: Value) -> Value:
        return ctx.binary(op, lhs, rhs)

    return convert


def _comparison(name: str) -> Callable[[Context, Value, Value], Value]:
    def convert(ctx: Context, lhs: Value, rhs: Value) -> Value:
        return ctx.compare(name.upper(), lhs, rhs)

    return convert


for _name, _op in UNARY.items():
    rule.add(_name, _unary(_op))
for _name, _op in BINARY.items():
    rule.add(_name, _binary(_op))
for _name in COMPARISONS:
    rule.add(_name, _comparison(_name))


@rule("sign")
def sign(ctx: Context, x: Value) -> Value:
    """sign(x)"""
    kind = x.type.element_type
    return ctx.sign(x) if isinstance(kind, IntegerType) and not kind.is_signed else ctx.add(ops.Sign(x))


@rule("pow")
def pow(ctx: Context, x: Value, y: Value) -> Value:
    """pow(x, y): an integer exponent of a float or complex base counts as one"""
    return ctx.binary(ops.Power, x, ctx.convert(y, x.type.element_type))


@rule("mul")
def mul(ctx: Context, lhs: Value, rhs: Value) -> Value:
    """mul(lhs, rhs, out_dtype)"""
    kind = ctx.result.element_type
    return ctx.times(ctx.convert(lhs, kind), ctx.convert(rhs, kind))


@rule("eq_to", "le_to", "lt_to")
def total_order(ctx: Context, lhs: Value, rhs: Value) -> Value:
    """Compares by the total order of floats: -NaN < -inf < ... < -0 < +0 < ... < +inf < NaN."""
    kind = ops.ComparisonType.TOTALORDER if is_float(lhs.type.element_type) else None
    shape = np.broadcast_shapes(lhs.type.shape, rhs.type.shape)
    lhs, rhs = ctx.broadcast(lhs, shape), ctx.broadcast(rhs, shape)
    direction = ops.ComparisonDirection(ctx.op[:2].upper())
    return ctx.add(ops.Compare(lhs, rhs, comparison_direction=direction, compare_type=kind))


@rule("conj")
def conj(ctx: Context, x: Value) -> Value:
    """conj(x)"""
    if not is_complex(x.type.element_type):
        return ctx.add(ops.Complex(x, ctx.full_like(x, 0)))
    return ctx.add(ops.Complex(ctx.add(ops.Real(x)), ctx.add(ops.Negate(ctx.add(ops.Imag(x))))))


@rule("exp2")
def exp2(ctx: Context, x: Value) -> Value:
    """exp2(x), as JAX computes it: exp(log(2) * x)"""
    return ctx.add(ops.Exponential(ctx.scaled(x, np.log(2))))


@rule("square")
def square(ctx: Context, x: Value) -> Value:
    """square(x)"""
    return ctx.times(x, x)


@rule("integer_pow")
def integer_pow(ctx: Context, x: Value, y: int) -> Value:
    """integer_pow(x, y): by repeated squaring; a negative power is the reciprocal of the positive one"""
    if y == 0:
        return ctx.full_like(x, 1)
    power, result, left = x, None, abs(y)
    while left:
        if left & 1:
            result = power if result is None else ctx.times(result, power)
        left >>= 1
        power = ctx.times(power, power) if left else power
    assert result is not None
    return result if y > 0 else ctx.over(ctx.full_like(x, 1), result)


@rule("round")
def round(ctx: Context, x: Value, rounding_method: lax.RoundingMethod) -> Value:
    """round(x, rounding_method)"""
    even = rounding_method == lax.RoundingMethod.TO_NEAREST_EVEN
    return ctx.add((ops.RoundNearestEven if even else ops.RoundNearestAfz)(x))


@rule("clamp")
def clamp(ctx: Context, low: Value, x: Value, high: Value) -> Value:
    """clamp(min, operand, max)"""
    return ctx.add(ops.Clamp(low, x, high))


@rule("select_n")
def select_n(ctx: Context, which: Value, *cases: Value) -> Value:
    """select_n(which, *cases): the case that `which` counts to, for each element"""
    extra = len(cases[0].type.shape) - which.type.rank
    if which.type.rank and extra:  # keys: the words of one key are selected together
        which = ctx.broadcast_in_dim(which, cases[0].type.shape, range(which.type.rank))
    if is_boolean(which.type.element_type):
        return cases[0] if len(cases) == 1 else ctx.select(which, cases[1], cases[0])
    result = cases[-1]
    for index in reversed(range(len(cases) - 1)):
        here = ctx.compare("LE", which, ctx.full_like(which, index))
        result = ctx.select(here, cases[index], result)
    return result


@rule("convert_element_type")
def convert_element_type(ctx: Context, x: Value) -> Value:
    """convert_element_type(x, new_dtype)"""
    kind = ctx.result.element_type
    if is_boolean(kind) and not is_boolean(x.type.element_type):
        real = ctx.add(ops.Real(x)) if is_complex(x.type.element_type) else x
        return ctx.compare("NE", real, ctx.full_like(real, 0))
    return ctx.convert(x, kind)


@rule("bitcast_convert_type")
def bitcast_convert_type(ctx: Context, x: Value) -> Value:
    """bitcast_convert_type(x, new_dtype)"""
    return ctx.add(ops.BitcastConvert(x, result=ctx.result))


@rule("reduce_precision")
def reduce_precision(ctx: Context, x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """reduce_precision(x, exponent_bits, mantissa_bits)"""
    return ctx.add(ops.ReducePrecision(x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits))


@rule(
    "copy",
    "copy_p",
    "stop_gradient",
    "pvary",
    "reduce_to",
    "random_clone",
    "layout_constraint",
    "reshard",
    "stage",
    "with_memory_space_constraint",
)
def identity(ctx: Context, x: Value) -> Value:
    """x"""
    return x


@rule("tie")
def tie(ctx: Context, x: Value, y: Value) -> Value:
    """tie(x, y): y, computed after x"""
    return y


@rule("dce_sink")
def dce_sink(ctx: Context, x: Value, prevent_mlir_dce: bool) -> Sequence[Value]:
    """dce_sink(x): means something to JAX's own passes only"""
    return ()


@rule("name")
def checkpoint_name(ctx: Context, x: Value) -> Value:
    """checkpoint_name(x, name): means something to autodiff only"""
    return x


@rule("device_put")
def device_put(ctx: Context, *values: Value) -> tuple[Value, ...]:
    """device_put(*values): a program runs on one device"""
    return values


@rule("optimization_barrier")
def optimization_barrier(ctx: Context, *values: Value) -> tuple[Value, ...]:
    """optimization_barrier(*values)"""
    return ctx.add(ops.OptimizationBarrier(list(values)))
