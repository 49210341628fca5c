"""Elementwise arithmetic, comparisons and logic: one number in, one number out, broadcast by NumPy's rule."""

from __future__ import annotations

import math
from functools import partial, reduce

import numpy as np
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.python.framework.tensor_shape import as_shape

from trivium.importers.emit import BroadcastError
from trivium.importers.tensorflow.context import Context, Operand, Tensor, rule
from trivium.importers.tensorflow.lists import sum_of, zeros_of
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import is_complex, is_float, is_integer

# Ops that are one op of the language.
UNARY = {
    "Abs": ops.Abs,
    "Acos": ops.Acos,
    "Acosh": ops.Acosh,
    "Asin": ops.Asin,
    "Asinh": ops.Asinh,
    "Atan": ops.Atan,
    "Atanh": ops.Atanh,
    "BesselI1e": ops.BesselI1e,
    "Ceil": ops.Ceil,
    "Cos": ops.Cosine,
    "Cosh": ops.Cosh,
    "ComplexAbs": ops.Abs,
    "Digamma": ops.Digamma,
    "Erf": ops.Erf,
    "Erfc": ops.Erfc,
    "Erfinv": ops.ErfInv,
    "Exp": ops.Exponential,
    "Expm1": ops.ExponentialMinusOne,
    "Floor": ops.Floor,
    "Imag": ops.Imag,
    "Invert": ops.Not,
    "IsFinite": ops.IsFinite,
    "Lgamma": ops.Lgamma,
    "Log": ops.Log,
    "Log1p": ops.LogPlusOne,
    "LogicalNot": ops.Not,
    "Neg": ops.Negate,
    "Real": ops.Real,
    "Rint": ops.RoundNearestEven,
    "Rsqrt": ops.Rsqrt,
    "Sigmoid": ops.Logistic,
    "Sin": ops.Sine,
    "Sinh": ops.Sinh,
    "Sqrt": ops.Sqrt,
    "Tan": ops.Tan,
    "Tanh": ops.Tanh,
}
BINARY = {
    "Add": ops.Add,
    "AddV2": ops.Add,
    "Atan2": ops.Atan2,
    "BitwiseAnd": ops.And,
    "BitwiseOr": ops.Or,
    "BitwiseXor": ops.Xor,
    "Complex": ops.Complex,
    "Div": ops.Divide,
    "LogicalAnd": ops.And,
    "LogicalOr": ops.Or,
    "Maximum": ops.Maximum,
    "Minimum": ops.Minimum,
    "Mul": ops.Multiply,
    "NextAfter": ops.NextAfter,
    "Pow": ops.Power,
    "RealDiv": ops.Divide,
    "Sub": ops.Subtract,
    "TruncateMod": ops.Remainder,
}
COMPARISONS = {"Greater": "GT", "GreaterEqual": "GE", "Less": "LT", "LessEqual": "LE"}


def _register() -> None:
    for name, op in UNARY.items():
        rule.add(name, lambda ctx, x, op=op: ctx.add(op(x)))
    for name, op in BINARY.items():
        rule.add(name, lambda ctx, x, y, op=op: ctx.binary(op, x, y))
    for name, direction in COMPARISONS.items():
        rule.add(name, lambda ctx, x, y, direction=direction: ctx.compare(direction, x, y))


_register()


# Sums, products, quotients


@rule("DivNoNan")
def div_no_nan(ctx: Context, x: Value, y: Value) -> Value:
    """DivNoNan(x, y) -> z"""
    zero = ctx.constant_like(y, 0)
    return ctx.select(ctx.compare("EQ", y, zero), zero, ctx.over(x, y))


@rule("MulNoNan")
def mul_no_nan(ctx: Context, x: Value, y: Value) -> Value:
    """MulNoNan(x, y) -> z"""
    zero = ctx.constant_like(y, 0)
    return ctx.select(ctx.compare("EQ", y, zero), zero, ctx.times(x, y))


@rule("FloorDiv")
def floor_div(ctx: Context, x: Value, y: Value) -> Value:
    """FloorDiv(x, y) -> z"""
    kind = x.type.element_type
    quotient = ctx.over(x, y)
    if is_complex(kind):
        ctx.unsupported("x", f"element type {kind}", "real numbers")
    if is_float(kind):
        return ctx.add(ops.Floor(quotient))
    if not kind.is_signed:
        return quotient
    zero = ctx.scalar(0, kind)
    remainder = ctx.binary(ops.Remainder, x, y)
    differs = ctx.compare("NE", ctx.compare("LT", remainder, zero), ctx.compare("LT", y, zero))
    below = ctx.binary(ops.And, ctx.compare("NE", remainder, zero), differs)
    return ctx.select(below, ctx.minus(quotient, ctx.scalar(1, kind)), quotient)


@rule("TruncateDiv")
def truncate_div(ctx: Context, x: Value, y: Value) -> Value:
    """TruncateDiv(x, y) -> z"""
    quotient = ctx.over(x, y)
    if not is_float(x.type.element_type):
        return quotient
    below = ctx.compare("LT", quotient, ctx.constant_like(quotient, 0))
    return ctx.select(below, ctx.add(ops.Ceil(quotient)), ctx.add(ops.Floor(quotient)))


@rule("Sign")
def sign(ctx: Context, x: Value) -> Value:
    """Sign(x) -> y"""
    return ctx.sign(x)


@rule("FloorMod", "Mod")
def floor_mod(ctx: Context, x: Value, y: Value) -> Value:
    """FloorMod(x, y) -> z"""
    kind = x.type.element_type
    remainder = ctx.binary(ops.Remainder, x, y)
    if (is_integer(kind) and not kind.is_signed) or ctx.op == "Mod":
        return remainder
    zero = ctx.scalar(0, kind)
    differs = ctx.compare("NE", ctx.compare("LT", remainder, zero), ctx.compare("LT", y, zero))
    wrong = ctx.binary(ops.And, ctx.compare("NE", remainder, zero), differs)
    return ctx.select(wrong, ctx.plus(remainder, y), remainder)


@rule("AddN")
def add_n(ctx: Context, inputs: list[Operand]) -> Operand:
    """AddN(N * inputs) -> sum"""
    return reduce(partial(sum_of, ctx), inputs)


@rule("Square")
def square(ctx: Context, x: Value) -> Value:
    """Square(x) -> y"""
    return ctx.times(x, x)


@rule("SquaredDifference")
def squared_difference(ctx: Context, x: Value, y: Value) -> Value:
    """SquaredDifference(x, y) -> z"""
    difference = ctx.minus(x, y)
    return ctx.times(difference, conj(ctx, difference))


@rule("Reciprocal", "Inv")
def reciprocal(ctx: Context, x: Value) -> Value:
    """Reciprocal(x) -> y"""
    return ctx.over(ctx.constant_like(x, 1), x)


@rule("Round")
def round(ctx: Context, x: Value) -> Value:
    """Round(x) -> y"""
    return ctx.add(ops.RoundNearestEven(x)) if is_float(x.type.element_type) else x


@rule("LeftShift", "RightShift")
def shift(ctx: Context, x: Value, y: Value) -> Value:
    """LeftShift(x, y) -> z"""
    kind = x.type.element_type
    to_the_right = ops.ShiftRightArithmetic if kind.is_signed else ops.ShiftRightLogical
    # TensorFlow's kernels clamp the amount; the op itself leaves those beyond the width open.
    amount = ctx.add(ops.Clamp(ctx.scalar(0, kind), y, ctx.scalar(kind.width - 1, kind)))
    return ctx.binary(ops.ShiftLeft if ctx.op == "LeftShift" else to_the_right, x, amount)


@rule("PopulationCount")
def population_count(ctx: Context, x: Value) -> Value:
    """PopulationCount(x) -> y"""
    return ctx.convert(ctx.add(ops.Popcnt(x)), ctx.element_type)


@rule("Xlogy")
def xlogy(ctx: Context, x: Value, y: Value) -> Value:
    """Xlogy(x, y) -> z"""
    return _no_matter_if_zero(ctx, x, ctx.times(x, ctx.add(ops.Log(y))))


@rule("Xlog1py")
def xlog1py(ctx: Context, x: Value, y: Value) -> Value:
    """Xlog1py(x, y) -> z"""
    return _no_matter_if_zero(ctx, x, ctx.times(x, ctx.add(ops.LogPlusOne(y))))


@rule("Xdivy")
def xdivy(ctx: Context, x: Value, y: Value) -> Value:
    """Xdivy(x, y) -> z"""
    return _no_matter_if_zero(ctx, x, ctx.over(x, y))


def _no_matter_if_zero(ctx: Context, x: Value, result: Value) -> Value:
    """Returns the result, or `x` where that is zero, of either sign."""
    return ctx.select(ctx.compare("EQ", x, ctx.constant_like(x, 0)), x, result)


@rule("Conj")
def conj(ctx: Context, x: Value) -> Value:
    """Conj(input) -> output"""
    if not is_complex(x.type.element_type):
        return x
    return ctx.add(ops.Complex(ctx.add(ops.Real(x)), ctx.add(ops.Negate(ctx.add(ops.Imag(x))))))


@rule("Angle")
def angle(ctx: Context, x: Value) -> Value:
    """Angle(input) -> output"""
    return ctx.add(ops.Atan2(ctx.add(ops.Imag(x)), ctx.add(ops.Real(x))))


# Comparisons and choices


@rule("Equal")
def equal(ctx: Context, x: Value, y: Value, *, incompatible_shape_error: bool) -> Value:
    """Equal(x, y; incompatible_shape_error=true) -> z"""
    return _equality(ctx, "EQ", x, y, incompatible_shape_error)


@rule("NotEqual")
def not_equal(ctx: Context, x: Value, y: Value, *, incompatible_shape_error: bool) -> Value:
    """NotEqual(x, y; incompatible_shape_error=true) -> z"""
    return _equality(ctx, "NE", x, y, incompatible_shape_error)


def _equality(ctx: Context, direction: str, x: Value, y: Value, strict: bool) -> Value:
    try:
        ctx.common_shape(ctx.extents(x), ctx.extents(y))
    except BroadcastError:
        if strict:
            raise
        return ctx.scalar(direction == "NE", element_type_of(ctx.node.outputs[0].dtype))
    return ctx.compare(direction, x, y)


@rule("ApproximateEqual")
def approximate_equal(ctx: Context, x: Value, y: Value, *, tolerance: float) -> Value:
    """ApproximateEqual(x, y; tolerance=1e-5) -> z"""
    # TensorFlow's kernel accepts the tolerance itself, too.
    return ctx.compare("LE", ctx.add(ops.Abs(ctx.minus(x, y))), ctx.constant_like(x, tolerance))


@rule("IsNan")
def is_nan(ctx: Context, x: Value) -> Value:
    """IsNan(x) -> y"""
    return ctx.compare("NE", x, x)


@rule("IsInf")
def is_inf(ctx: Context, x: Value) -> Value:
    """IsInf(x) -> y"""
    return ctx.compare("EQ", ctx.add(ops.Abs(x)), ctx.constant_like(x, math.inf))


@rule("SelectV2")
def select(ctx: Context, condition: Value, t: Value, e: Value) -> Value:
    """SelectV2(condition, t, e) -> output"""
    return ctx.select(condition, t, e)


@rule("Select")
def select_rows(ctx: Context, condition: Value, t: Value, e: Value) -> Value:
    """Select(condition, t, e) -> output"""
    if condition.type.rank == 1 and t.type.rank > 1:  # selects rows
        condition = ctx.broadcast_in_dim(condition, ctx.extents(t), [0])
    return ctx.select(condition, t, e)


@rule("ClipByValue")
def clip_by_value(ctx: Context, x: Value, low: Value, high: Value) -> Value:
    """ClipByValue(t, clip_value_min, clip_value_max) -> output"""
    for bound, argument in ((low, "clip_value_min"), (high, "clip_value_max")):
        if bound.type.rank and bound.type.shape != x.type.shape:
            ctx.unsupported(argument, f"shape {list(bound.type.shape)}", f"one number, or shape {list(x.type.shape)}")
    if is_complex(x.type.element_type):
        parts = [[ctx.add(part(v)) for v in (x, low, high)] for part in (ops.Real, ops.Imag)]
        return ctx.binary(ops.Complex, *(clip_by_value(ctx, *part) for part in parts))
    # A bound that is NaN has no effect.
    x = ctx.select(ctx.compare("GT", x, high), high, x)
    return ctx.select(ctx.compare("LT", x, low), low, x)


# Gradients of elementwise ops, each a function of the op's result and of the incoming gradient


@rule("TanhGrad")
def tanh_grad(ctx: Context, y: Value, dy: Value) -> Value:
    """TanhGrad(y, dy) -> z"""
    return ctx.times(_shaped_as(ctx, dy, y), ctx.minus(ctx.constant_like(y, 1), square(ctx, y)))


@rule("SigmoidGrad")
def sigmoid_grad(ctx: Context, y: Value, dy: Value) -> Value:
    """SigmoidGrad(y, dy) -> z"""
    return ctx.times(_shaped_as(ctx, dy, y), ctx.times(y, ctx.minus(ctx.constant_like(y, 1), y)))


@rule("SqrtGrad")
def sqrt_grad(ctx: Context, y: Value, dy: Value) -> Value:
    """SqrtGrad(y, dy) -> z"""
    y, dy = _conjugate(ctx, y), _shaped_as(ctx, dy, y)
    return _no_gradient_if_zero(ctx, dy, ctx.over(ctx.scaled(dy, 0.5), y))


@rule("RsqrtGrad")
def rsqrt_grad(ctx: Context, y: Value, dy: Value) -> Value:
    """RsqrtGrad(y, dy) -> z"""
    y, dy = _conjugate(ctx, y), _shaped_as(ctx, dy, y)
    # In TensorFlow's order: in few bits, the third power of `y` alone is infinite too soon.
    return _no_gradient_if_zero(ctx, dy, ctx.times(ctx.times(dy, y), ctx.times(ctx.scaled(y, -0.5), y)))


@rule("ReciprocalGrad")
def reciprocal_grad(ctx: Context, y: Value, dy: Value) -> Value:
    """ReciprocalGrad(y, dy) -> z"""
    y, dy = _conjugate(ctx, y), _shaped_as(ctx, dy, y)
    return _no_gradient_if_zero(ctx, dy, ctx.times(ctx.add(ops.Negate(dy)), square(ctx, y)))


def _shaped_as(ctx: Context, dy: Value, y: Value) -> Value:
    """Returns an incoming gradient in the shape of the op's result: TensorFlow's kernels take any with as many
    elements."""
    if dy.type.is_static and y.type.is_static and dy.type.size != y.type.size:
        ctx.unsupported("dy", f"{dy.type.size} elements", f"as many as y, {y.type.size}")
    return ctx.reshape(dy, ctx.extents(y))


def _conjugate(ctx: Context, x: Value) -> Value:
    return ctx.add(ops.Conj(x)) if is_complex(x.type.element_type) else x


def _no_gradient_if_zero(ctx: Context, dy: Value, result: Value) -> Value:
    """TensorFlow's kernels do not return NaN where no gradient arrives."""
    zero = ctx.constant_like(dy, 0)
    return ctx.select(ctx.compare("EQ", dy, zero), zero, result)


# Ops that leave their operand unchanged


@rule("EnsureShape")
def ensure_shape(ctx: Context, input: Tensor, *, shape: TensorShapeProto) -> Tensor:
    """EnsureShape(input; shape) -> output"""
    expected = as_shape(shape)
    have = input.shape if isinstance(input, np.ndarray) else input.type.shape
    if not expected.is_compatible_with(have):
        ctx.unsupported("input", f"shape {have}", f"one compatible with {expected}")
    return input


@rule("Identity", "StopGradient", "Snapshot", "PreventGradient", "PlaceholderWithDefault", "GuaranteeConst")
def identity(ctx: Context, input: Operand) -> Operand:
    """Identity(input) -> output"""
    return input


@rule("IdentityN")
def identity_n(ctx: Context, input: list[Operand]) -> list[Operand]:
    """IdentityN(input...) -> output..."""
    return input


@rule("CheckNumerics", "CheckNumericsV2")
def check_numerics(ctx: Context, tensor: Value) -> Value:
    """CheckNumerics(tensor; message) -> output"""
    # A check that stops the program; the language has no such thing, and XLA drops it too.
    return tensor


@rule("ZerosLike")
def zeros_like(ctx: Context, x: Operand) -> Operand:
    """ZerosLike(x) -> y"""
    return zeros_of(ctx, x)


@rule("OnesLike")
def ones_like(ctx: Context, x: Value) -> Value:
    """OnesLike(x) -> y"""
    return ctx.full_like(x, 1)


@rule("NoOp", "ControlTrigger")
def no_op(ctx: Context) -> None:
    """NoOp()"""
