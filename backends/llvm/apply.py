"""Compiles scalar operations to LLVM: one function for each kind of operand type. They work on scalars and vectors
alike; all operands have one shape."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll
import ml_dtypes
import numpy as np

from trivium.backends.llvm import integers, math
from trivium.backends.llvm.code import F64, I32, Code, element, mangle, shaped
from trivium.backends.llvm.math.remainder import remainder, remainder_of_quotient
from trivium.backends.llvm.narrow import (
    computed_type,
    from_memory,
    held_type,
    is_narrow,
    memory_type,
    reordered,
    rounded,
    sign_bit,
    to_memory,
    widened,
    wrapped,
)
from trivium.compiler.kernel.dtypes import FLOATS, SIGNED, UNSIGNED, bit_width, numpy_dtype, storage_bytes
from trivium.compiler.kernel.structure import Apply
from trivium.ir.errors import CompileError

_RELATIONS = {"EQ": "==", "NE": "!=", "GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}

_INTRINSICS = {
    "sqrt": "llvm.sqrt", "ceil": "llvm.ceil", "floor": "llvm.floor", "abs": "llvm.fabs",
    "round_nearest_even": "llvm.roundeven", "round_nearest_afz": "llvm.round",
    "maximum": "llvm.maximum", "minimum": "llvm.minimum",
}  # fmt: skip


def apply(code: Code, instruction: Apply, values: list[ll.Value]) -> ll.Value:
    """Returns the result of `instruction` from the held values of its operands."""
    dtype = instruction.arguments[-1].dtype
    match instruction.op:
        case "select":
            return code.builder.select(*values)
        case "convert":
            return convert(code, values[0], dtype, instruction.result.dtype)
        case "compare":
            return _compare(code, instruction, dtype, *values)
        case "bitcast_convert":
            return _bitcast(code, values[0], dtype, instruction.result.dtype)
        case "reduce_precision":
            return _reduce_precision(code, values[0], dtype, **instruction.attributes)  # type: ignore[arg-type]
    if dtype in FLOATS:
        return _float(code, instruction, dtype, values)
    return _boolean(code, instruction.op, values) if dtype == "i1" else _integer(code, instruction.op, dtype, values)


def convert(code: Code, value: ll.Value, source: str, target: str) -> ll.Value:
    """Converts float to integer by rounding toward zero and saturating, NaN to 0; integers wrap; to i1 is `!= 0`."""
    if source == target:
        return value
    value = widened(code, value, source)
    builder, type_ = code.builder, shaped(computed_type(target), value.type)
    if target == "i1":
        return code.compare("!=", value, 0.0) if source in FLOATS else code.icompare("!=", value, 0)
    if source in FLOATS and target in FLOATS:
        return rounded(code, _resize(code, value, type_), target)
    if source in FLOATS:
        return _saturated(code, value, target)
    signed = source in SIGNED
    if target in FLOATS:
        return rounded(code, builder.sitofp(value, type_) if signed else builder.uitofp(value, type_), target)
    widths = element(value.type).width, element(type_).width
    if widths[0] >= widths[1]:
        return wrapped(code, value if widths[0] == widths[1] else builder.trunc(value, type_), target)
    return builder.sext(value, type_) if signed else builder.zext(value, type_)


def _saturated(code: Code, value: ll.Value, target: str) -> ll.Value:
    """Returns a float as an integer."""
    type_, signed, bits = shaped(held_type(target), value.type), target not in UNSIGNED, bit_width(target)
    largest = (1 << (bits - signed)) - 1
    least = -largest - 1 if signed else 0
    if isinstance(value.type, ll.VectorType):
        if bits < 32:
            return code.builder.trunc(_saturated_lanes(code, value, least, largest), type_)
        return _saturated_wide_lanes(code, value, type_, least, largest)
    kind = "llvm.fptosi.sat" if signed else "llvm.fptoui.sat"
    result = code.call(f"{kind}.{mangle(type_)}.{mangle(value.type)}", type_, value)
    if bits < 8:
        result = integers.extremum(code, "minimum", result, code.like(result, largest), signed)
        if signed:
            result = integers.extremum(code, "maximum", result, code.like(result, least), signed)
    return result


def _saturated_lanes(code: Code, value: ll.Value, least: int, largest: int) -> ll.Value:
    """Returns floats as integers of 32 bits within limits that floats represent. LLVM's saturating conversions would
    convert lanes one by one."""
    if least:
        value = code.select(code.is_nan(value), 0.0, value)
    value = code.select(code.compare(">", value, float(least)), value, float(least))  # NaN is not above 0
    value = code.select(code.compare("<", value, float(largest)), value, float(largest))
    return code.builder.fptosi(value, shaped(I32, value.type))


def _saturated_wide_lanes(code: Code, value: ll.Value, type_: ll.Type, least: int, largest: int) -> ll.Value:
    """Does the same for 32 or 64 bits, of which floats may not represent the largest number, but the one after it."""
    above_least = code.select(code.compare(">", value, float(least)), value, float(least))  # NaN is not above it
    converted = code.builder.fptosi(above_least, type_) if least else code.builder.fptoui(above_least, type_)
    result = code.select(code.compare(">=", value, float(largest + 1)), code.like(converted, largest), converted)
    return code.select(code.is_nan(value), 0, result) if least else result


def combine(code: Code, op: str, dtype: str, a: ll.Value, b: ll.Value) -> ll.Value:
    """Returns the associative operation `op`, for reductions by name."""
    if dtype in FLOATS:
        return rounded(code, _ARITHMETIC[op](code, widened(code, a, dtype), widened(code, b, dtype)), dtype)
    return _boolean(code, op, [a, b]) if dtype == "i1" else _integer(code, op, dtype, [a, b])


def _resize(code: Code, value: ll.Value, type_: ll.Type) -> ll.Value:
    if value.type == type_:
        return value
    widen = element(type_) == ll.DoubleType()
    return code.builder.fpext(value, type_) if widen else code.builder.fptrunc(value, type_)


def _compare(code: Code, instruction: Apply, dtype: str, a: ll.Value, b: ll.Value) -> ll.Value:
    relation = _RELATIONS[str(instruction.attributes["direction"])]
    if dtype not in FLOATS:
        return code.icompare(relation, a, b, signed=dtype in SIGNED)
    if instruction.attributes.get("total_order"):
        return code.icompare(relation, _ordered_bits(code, a, dtype), _ordered_bits(code, b, dtype))
    return code.compare(relation, widened(code, a, dtype), widened(code, b, dtype))


def _ordered_bits(code: Code, value: ll.Value, dtype: str) -> ll.Value:
    """Returns integers that are ordered as the floats are in total order. Narrow floats with several NaNs have their
    own bits ordered, since all of these become the same f32."""
    if sign_bit(dtype) == 1 << (8 * storage_bytes(dtype) - 1):
        return reordered(code, value)
    wide = widened(code, value, dtype)
    return reordered(code, code.bits(wide, ll.IntType(64 if element(wide.type) == F64 else 32)))


def _bitcast(code: Code, value: ll.Value, source: str, target: str) -> ll.Value:
    return from_memory(code, code.bits(to_memory(code, value, source), memory_type(target)), target)


def _negate(code: Code, a: ll.Value) -> ll.Value:
    return code.builder.fneg(a)


def _sign(code: Code, a: ll.Value) -> ll.Value:
    """Returns -1 or 1 with the sign of a; zeros and NaN are returned unchanged."""
    nonzero = code.either(code.compare("<", a, 0.0), code.compare(">", a, 0.0))
    return code.select(nonzero, code.copysign(code.like(a, 1.0), a), a)


def _is_finite(code: Code, a: ll.Value) -> ll.Value:
    return code.compare("<", code.abs(a), float("inf"))


def _remainder(code: Code, a: ll.Value, b: ll.Value) -> ll.Value:
    """Computes the exact remainder, with the sign of a."""
    if not code.target.remainder:
        return remainder(code, a, b)
    return remainder_of_quotient(code, a, b) if code.target.fma else code.builder.frem(a, b)


def _extremum(name: str) -> Callable[..., ll.Value]:
    """Returns the function that computes `maximum` or `minimum`: NaN if an operand is NaN, and -0 is less than 0."""

    def function(code: Code, a: ll.Value, b: ll.Value) -> ll.Value:
        if code.target.extrema:
            return code.intrinsic(_INTRINSICS[name], a, b)
        integer = ll.IntType(64 if element(a.type) == ll.DoubleType() else 32)
        combined = (code.both if name == "maximum" else code.either)(code.bits(a, integer), code.bits(b, integer))
        chosen = code.builder.fcmp_unordered(">" if name == "maximum" else "<", a, b)
        result = code.select(chosen, a, code.select(code.compare("==", a, b), code.bits(combined, element(a.type)), b))
        return code.select(code.is_nan(b), b, result)

    return function


def _clamp(code: Code, low: ll.Value, a: ll.Value, high: ll.Value) -> ll.Value:
    return _ARITHMETIC["minimum"](code, _ARITHMETIC["maximum"](code, low, a), high)


def _next_after(code: Code, a: ll.Value, b: ll.Value) -> ll.Value:
    """Returns the neighbour of a toward b: one step of its bits, upward if that moves away from zero."""
    width = 64 if element(a.type) == ll.DoubleType() else 32
    integer = ll.IntType(width)
    bits = code.bits(a, integer)
    away = code.builder.xor(code.compare("<", a, b), code.compare("<", a, 0.0))
    stepped = code.iadd(bits, code.select(away, code.like(bits, 1), -1))
    sign = code.both(code.bits(b, integer), -(1 << (width - 1)))
    stepped = code.select(code.compare("==", a, 0.0), code.either(sign, 1), stepped)
    result = code.select(code.compare("==", a, b), b, code.bits(stepped, element(a.type)))
    return code.select(code.builder.fcmp_unordered("uno", a, b), code.add(a, b), result)


_ARITHMETIC: dict[str, Callable[..., ll.Value]] = {
    "add": Code.add, "subtract": Code.sub, "multiply": Code.mul, "divide": Code.div, "fma": Code.fused,
    "negate": _negate, "sign": _sign, "is_finite": _is_finite, "remainder": _remainder, "clamp": _clamp,
    "next_after": _next_after, "maximum": _extremum("maximum"), "minimum": _extremum("minimum"),
}  # fmt: skip


def _float(code: Code, instruction: Apply, dtype: str, values: list[ll.Value]) -> ll.Value:
    op = instruction.op
    if op == "next_after" and is_narrow(dtype):
        raise CompileError(f"next_after: not available for {dtype}; expected f32 or f64")
    if is_narrow(dtype) and op in ("negate", "abs") and (sign := sign_bit(dtype)):
        (bits,) = values
        return code.builder.xor(bits, code.like(bits, sign)) if op == "negate" else code.both(bits, sign - 1)
    result = _computed(code, op, [widened(code, value, dtype) for value in values])
    return rounded(code, result, instruction.result.dtype)


def _computed(code: Code, op: str, values: list[ll.Value]) -> ll.Value:
    if op in _ARITHMETIC:
        return _ARITHMETIC[op](code, *values)
    if op in _INTRINSICS:
        return code.intrinsic(_INTRINSICS[op], *values)
    return math.function(op, values[0].type)(code.strict(), *values)


def _reduce_precision(code: Code, value: ll.Value, dtype: str, exponent_bits: int, mantissa_bits: int) -> ll.Value:
    """Rounds the mantissa to nearest even; exponents out of range become infinity, or zero of the same sign. A format
    without a mantissa has no NaN, which becomes infinity. Computes with the bits of the type as it is stored: those of
    a subnormal number of f16 are others than those of the f32 that it is widened to."""
    info = ml_dtypes.finfo(numpy_dtype(dtype))
    mantissa, bias, sign = info.nmant, (1 << (info.nexp - 1)) - 1, 1 << (info.bits - 1)
    infinity = int(np.array(np.inf, numpy_dtype(dtype)).view(f"u{storage_bytes(dtype)}"))  # NaN where there is none
    if is_narrow(dtype):
        bits = code.builder.zext(value, shaped(I32, value.type))
    else:
        bits = code.bits(value, ll.IntType(info.bits))
    magnitude = code.both(bits, sign - 1)
    if dropped := max(0, mantissa - mantissa_bits):
        odd = code.both(code.lshr(magnitude, dropped), 1)
        magnitude = code.iadd(code.iadd(magnitude, (1 << (dropped - 1)) - 1), odd)
        magnitude = code.both(magnitude, -(1 << dropped))
        magnitude = code.select(code.icompare(">", magnitude, infinity), infinity, magnitude)
    reach = (1 << (exponent_bits - 1)) - 1
    if exponent_bits < info.nexp:
        too_large = code.icompare(">=", magnitude, (bias + reach + 1) << mantissa)
        too_small = code.icompare("<", magnitude, (bias - reach + 1) << mantissa)
        magnitude = code.select(too_large, infinity, code.select(too_small, 0, magnitude))
    is_nan = code.is_nan(widened(code, value, dtype))
    result = code.either(magnitude, code.both(bits, sign))
    result = code.select(is_nan, bits if mantissa_bits else infinity, result)
    return code.builder.trunc(result, value.type) if is_narrow(dtype) else code.bits(result, element(value.type))


def _boolean(code: Code, op: str, values: list[ll.Value]) -> ll.Value:
    builder = code.builder
    match op:
        case "not":
            return builder.not_(values[0])
        case "add" | "or" | "maximum":
            return builder.or_(*values)
        case "multiply" | "and" | "minimum":
            return builder.and_(*values)
        case "xor":
            return builder.xor(*values)
        case "clamp":
            low, operand, high = values
            return builder.and_(builder.or_(low, operand), high)
    raise CompileError(f"{op}: not available for i1")


def _integer(code: Code, op: str, dtype: str, values: list[ll.Value]) -> ll.Value:
    if bit_width(dtype) >= 8:
        return _whole_bytes(code, op, dtype, values)
    # The bits above the type's own are copies of its sign, or zeros.
    if op in ("popcnt", "count_leading_zeros", "shift_right_logical"):
        values = [wrapped(code, values[0], f"ui{bit_width(dtype)}"), *values[1:]]
    if op == "shift_right_arithmetic":
        values = [wrapped(code, values[0], f"i{bit_width(dtype)}"), *values[1:]]
    result = _whole_bytes(code, op, dtype, values)
    if op == "count_leading_zeros":
        result = code.isub(result, 8 - bit_width(dtype))
    return wrapped(code, result, dtype)


def _whole_bytes(code: Code, op: str, dtype: str, values: list[ll.Value]) -> ll.Value:
    builder, signed = code.builder, dtype in SIGNED
    direct = {
        "add": builder.add, "subtract": builder.sub, "multiply": builder.mul, "negate": builder.neg,
        "and": builder.and_, "or": builder.or_, "xor": builder.xor, "not": builder.not_,
    }  # fmt: skip
    match op:
        case _ if op in direct:
            return direct[op](*values)
        case "divide":
            return integers.divide(code, *values, signed=signed)
        case "remainder":
            return integers.remainder(code, *values, signed=signed)
        case "power":
            return integers.power(code, *values, signed=signed)
        case "maximum" | "minimum":
            return integers.extremum(code, op, *values, signed=signed)
        case "clamp":
            low, operand, high = values
            raised = integers.extremum(code, "maximum", low, operand, signed)
            return integers.extremum(code, "minimum", raised, high, signed)
        case "shift_left" | "shift_right_arithmetic" | "shift_right_logical":
            return integers.shift(code, op, *values)
        case "abs":
            return integers.absolute(code, *values)
        case "sign":
            return integers.sign(code, *values)
        case "popcnt":
            return code.intrinsic("llvm.ctpop", *values)
        case "count_leading_zeros":
            return integers.count_leading_zeros(code, *values)
    raise CompileError(f"{op}: not available for {dtype}")
