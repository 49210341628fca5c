"""Arithmetic, activations, comparison and conversion."""

from __future__ import annotations

import math

import onnx

from trivium.importers.emit import accumulation_type, in_single
from trivium.importers.onnx.context import Context, axis_of, element_type, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.declare import Op
from trivium.ir.types import BF16, F64, I64, UI8, is_boolean, is_integer

UNARY = {
    "Acos": ops.Acos,
    "Acosh": ops.Acosh,
    "Asin": ops.Asin,
    "Asinh": ops.Asinh,
    "Atan": ops.Atan,
    "Atanh": ops.Atanh,
    "BitwiseNot": ops.Not,
    "Ceil": ops.Ceil,
    "Cos": ops.Cosine,
    "Cosh": ops.Cosh,
    "Erf": ops.Erf,
    "Exp": ops.Exponential,
    "Floor": ops.Floor,
    "Log": ops.Log,
    "Neg": ops.Negate,
    "Not": ops.Not,
    "Round": ops.RoundNearestEven,
    "Sigmoid": ops.Logistic,
    "Sin": ops.Sine,
    "Sinh": ops.Sinh,
    "Sqrt": ops.Sqrt,
    "Tan": ops.Tan,
    "Tanh": ops.Tanh,
}
BINARY = {
    "Add": ops.Add,
    "And": ops.And,
    "BitwiseAnd": ops.And,
    "BitwiseOr": ops.Or,
    "BitwiseXor": ops.Xor,
    "Div": ops.Divide,
    "Mul": ops.Multiply,
    "Or": ops.Or,
    "Sub": ops.Subtract,
    "Xor": ops.Xor,
}
COMPARISONS = {"Equal": "EQ", "Greater": "GT", "GreaterOrEqual": "GE", "Less": "LT", "LessOrEqual": "LE"}


def _unary(op: type[Op]):
    return lambda ctx, x: ctx.add(op(x))


def _binary(op: type[Op]):
    return lambda ctx, a, b: ctx.binary(op, a, b)


def _comparison(direction: str):
    return lambda ctx, a, b: ctx.compare(direction, a, b)


for _name, _op in UNARY.items():
    rule.add(_name, _unary(_op))
for _name, _op in BINARY.items():
    rule.add(_name, _binary(_op), since=7)
for _name, _direction in COMPARISONS.items():
    rule.add(_name, _comparison(_direction), since=7)


@rule("Sign")
def sign(ctx: Context, x: Value) -> Value:
    """Sign(input)"""
    return ctx.sign(x)


@rule("Abs")
def absolute(ctx: Context, x: Value) -> Value:
    """Abs(X)"""
    kind = x.type.element_type
    return x if is_integer(kind) and not kind.is_signed else ctx.add(ops.Abs(x))


@rule("Identity")
def identity(ctx: Context, x: Value) -> Value:
    """Identity(input)"""
    return x


@rule("Reciprocal")
def reciprocal(ctx: Context, x: Value) -> Value:
    """Reciprocal(X)"""
    return ctx.over(ctx.full_like(x, 1), x)


@rule("IsNaN")
def is_nan(ctx: Context, x: Value) -> Value:
    """IsNaN(X)"""
    return ctx.compare("NE", x, x)


@rule("IsInf")
def is_inf(ctx: Context, x: Value, detect_negative: int = 1, detect_positive: int = 1) -> Value:
    """IsInf(X)"""
    positive = ctx.compare("EQ", x, ctx.full_like(x, math.inf if detect_positive else math.nan))
    negative = ctx.compare("EQ", x, ctx.full_like(x, -math.inf if detect_negative else math.nan))
    return ctx.add(ops.Or(positive, negative))


@rule("Max", "Min")
def extreme(ctx: Context, *values: Value) -> Value:
    """Max(data_0, ...)"""
    op = ops.Maximum if ctx.op == "Max" else ops.Minimum
    result = values[0]
    for value in values[1:]:
        result = ctx.binary(op, result, value)
    return result


@rule("Sum", "Mean")
def total(ctx: Context, *values: Value) -> Value:
    """Sum(data_0, ...)"""
    result = values[0]
    for value in values[1:]:
        result = ctx.plus(result, value)
    return result if ctx.op == "Sum" else ctx.scaled(result, 1 / len(values))


@rule("Pow", since=7)
def power(ctx: Context, x: Value, y: Value) -> Value:
    """Pow(X, Y): the result has X's type"""
    if is_integer(kind := x.type.element_type) and not is_integer(y.type.element_type):
        return ctx.convert(ctx.binary(ops.Power, ctx.convert(x, F64), ctx.convert(y, F64)), kind)
    return ctx.binary(ops.Power, x, ctx.convert(y, x.type.element_type))


@rule("Mod")
def mod(ctx: Context, a: Value, b: Value, fmod: int = 0) -> Value:
    """Mod(A, B, fmod): with fmod 0 the sign is B's"""
    remainder = ctx.binary(ops.Remainder, a, b)
    if fmod:
        return remainder
    zero = ctx.full_like(remainder, 0)
    nonzero, below = ctx.compare("NE", remainder, zero), ctx.compare("LT", b, ctx.full_like(b, 0))
    differs = ctx.compare("NE", ctx.compare("LT", remainder, zero), below)
    moved = ctx.select(ctx.add(ops.And(nonzero, differs)), ctx.plus(remainder, b), remainder)
    if is_integer(a.type.element_type):
        return moved
    signed_zero = ctx.select(below, ctx.full_like(b, -0.0), ctx.full_like(b, 0.0))
    return ctx.select(ctx.compare("EQ", remainder, zero), signed_zero, moved)


@rule("BitShift")
def bit_shift(ctx: Context, x: Value, y: Value, direction: str) -> Value:
    """BitShift(X, Y, direction): to the right, the sign fills what is vacated. An amount that is negative, or
    reaches the width, moves every bit out."""
    if direction not in ("LEFT", "RIGHT"):
        ctx.unsupported("direction", direction, "LEFT or RIGHT")
    to_the_right = ops.ShiftRightArithmetic if x.type.element_type.is_signed else ops.ShiftRightLogical
    return ctx.binary(ops.ShiftLeft if direction == "LEFT" else to_the_right, x, y)


@rule("Where")
def where(ctx: Context, condition: Value, x: Value, y: Value) -> Value:
    """Where(condition, X, Y)"""
    return ctx.select(condition, x, y)


@rule("Clip", since=11)
def clip(ctx: Context, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """Clip(input, min, max)"""
    x = x if low is None else ctx.binary(ops.Maximum, x, low)
    return x if high is None else ctx.binary(ops.Minimum, x, high)


# Activations


@rule("Relu")
def relu(ctx: Context, x: Value) -> Value:
    """Relu(X)"""
    zero = ctx.full_like(x, 0)
    return ctx.select(ctx.compare("LT", x, zero), zero, x)


@rule("LeakyRelu")
def leaky_relu(ctx: Context, x: Value, alpha: float = 0.01) -> Value:
    """LeakyRelu(X, alpha)"""
    return ctx.select(ctx.compare("LT", x, ctx.full_like(x, 0)), ctx.scaled(x, alpha), x)


@rule("PRelu", since=7)
def prelu(ctx: Context, x: Value, slope: Value) -> Value:
    """PRelu(X, slope)"""
    return ctx.select(ctx.compare("LT", x, ctx.full_like(x, 0)), ctx.times(x, slope), x)


@rule("Elu", "Celu", "Selu", since=6)
@in_single
def elu(ctx: Context, x: Value, alpha: float | None = None, gamma: float = 1.05070102214813232421875) -> Value:
    """Elu(X, alpha), Celu(X, alpha), Selu(X, alpha, gamma)"""
    alpha = alpha if alpha is not None else 1.67326319217681884765625 if ctx.op == "Selu" else 1.0
    if ctx.op == "Celu" and not alpha:
        ctx.unsupported("alpha", alpha, "another number")
    inner = ctx.scaled(x, 1 / alpha) if ctx.op == "Celu" else x
    negative = ctx.scaled(ctx.add(ops.ExponentialMinusOne(inner)), alpha)
    result = ctx.select(ctx.compare("GT", x, ctx.full_like(x, 0)), x, negative)
    return ctx.scaled(result, gamma) if ctx.op == "Selu" else result


@rule("HardSigmoid")
@in_single
def hard_sigmoid(ctx: Context, x: Value, alpha: float = 0.2, beta: float = 0.5) -> Value:
    """HardSigmoid(X, alpha, beta)"""
    kind = x.type.element_type
    line = ctx.plus(ctx.scaled(x, alpha), ctx.scalar(beta, kind))
    return ctx.add(ops.Clamp(ctx.scalar(0, kind), line, ctx.scalar(1, kind)))


@rule("HardSwish")
@in_single
def hard_swish(ctx: Context, x: Value) -> Value:
    """HardSwish(X)"""
    return ctx.times(x, hard_sigmoid(ctx, x, 1 / 6, 0.5))


@rule("Softplus")
@in_single
def softplus(ctx: Context, x: Value) -> Value:
    """Softplus(X): log(1 + exp(x)), without overflow"""
    folded = ctx.add(ops.LogPlusOne(ctx.add(ops.Exponential(ctx.add(ops.Negate(ctx.add(ops.Abs(x))))))))
    return ctx.plus(ctx.add(ops.Maximum(x, ctx.full_like(x, 0))), folded)


@rule("Softsign")
@in_single
def softsign(ctx: Context, x: Value) -> Value:
    """Softsign(X)"""
    return ctx.over(x, ctx.plus(ctx.full_like(x, 1), ctx.add(ops.Abs(x))))


@rule("Mish")
@in_single
def mish(ctx: Context, x: Value) -> Value:
    """Mish(X)"""
    return ctx.times(x, ctx.add(ops.Tanh(softplus(ctx, x))))


@rule("Gelu")
@in_single
def gelu(ctx: Context, x: Value, approximate: str = "none") -> Value:
    """Gelu(X, approximate)"""
    if approximate == "tanh":
        cubic = ctx.plus(x, ctx.scaled(ctx.times(ctx.times(x, x), x), 0.044715))
        inner = ctx.add(ops.Tanh(ctx.scaled(cubic, math.sqrt(2 / math.pi))))
    else:
        inner = ctx.add(ops.Erf(ctx.scaled(x, math.sqrt(0.5))))
    return ctx.times(ctx.scaled(x, 0.5), ctx.plus(ctx.full_like(x, 1), inner))


@rule("Softmax", "LogSoftmax", since=13)
def softmax(ctx: Context, x: Value, axis: int = -1) -> Value:
    """Softmax(input, axis): narrow floats are rounded after each step, as ONNX's definition has it"""
    axis = axis_of(axis, x.type.rank)
    kind = x.type.element_type
    shifted = ctx.minus(x, ctx.reduce(ops.Maximum, x, [axis], keep=True))
    powers = ctx.add(ops.Exponential(shifted))
    # ONNX sums f16 in 32 bits. It sums bf16 in bf16, with an error of a few units, and a large error in long rows.
    extent = x.type.shape[axis]
    short = kind is BF16 and extent is not None and extent <= 32
    wide = powers if short else ctx.convert(powers, accumulation_type(kind))
    sums = ctx.convert(ctx.reduce(ops.Add, wide, [axis], keep=True), kind)
    return ctx.minus(shifted, ctx.add(ops.Log(sums))) if ctx.op == "LogSoftmax" else ctx.over(powers, sums)


@rule("Hardmax", since=13)
def hardmax(ctx: Context, x: Value, axis: int = -1) -> Value:
    """Hardmax(input, axis): 1 at the first greatest element, 0 elsewhere"""
    axis = axis_of(axis, x.type.rank)
    _, places = ctx.arg_reduce("GT", x, axis)
    hot = ctx.compare("EQ", ctx.iota_like(x, axis), ctx.unsqueeze(places, [axis]))
    return ctx.convert(hot, x.type.element_type)


@rule("Shrink")
@in_single
def shrink(ctx: Context, x: Value, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """Shrink(input, bias, lambd): the sums of integers and a fraction are rounded toward zero"""
    if is_integer(x.type.element_type):
        return ctx.convert(ctx.convert(shrink(ctx, ctx.convert(x, F64), bias, lambd), I64), x.type.element_type)
    zero, step, edge = (ctx.full_like(x, number) for number in (0, bias, lambd))
    below = ctx.select(ctx.compare("LT", x, ctx.full_like(x, -lambd)), ctx.plus(x, step), zero)
    return ctx.select(ctx.compare("GT", x, edge), ctx.minus(x, step), below)


@rule("BitCast")
def bit_cast(ctx: Context, x: Value, to: int) -> Value:
    """BitCast(input, to): the same bits in an element type of the same width"""
    kind = element_type(to)
    if is_boolean(kind):
        return ctx.compare("NE", bit_cast(ctx, x, onnx.TensorProto.UINT8), ctx.full(ctx.extents(x), 0, UI8))
    if is_boolean(x.type.element_type):
        x = ctx.convert(x, UI8)
    return x if kind is x.type.element_type else ctx.add(ops.BitcastConvert(x, result=x.type.with_element(kind)))


@rule("ai.onnx.ml::Binarizer")
def binarizer(ctx: Context, x: Value, threshold: float = 0.0) -> Value:
    """Binarizer(X, threshold)"""
    return ctx.convert(ctx.compare("GT", x, ctx.full_like(x, threshold)), x.type.element_type)
