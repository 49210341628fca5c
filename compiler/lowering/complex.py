"""Complex arithmetic on pairs of real scalars."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from trivium.compiler.kernel import KernelBuilder, Register
from trivium.ir import ops
from trivium.ir.core import Operation
from trivium.ir.errors import CompileError

Pair = tuple[Register, Register]


def apply(b: KernelBuilder, name: str, operands: list[Any]) -> Any:
    """Applies the operation `name` to complex operands."""
    rule = _RULES.get(name)
    if rule is None:
        raise CompileError(f"{name} of complex numbers cannot be compiled")
    return rule(b, *operands)


def knows(op: Operation) -> bool:
    """Whether the op can be computed on complex numbers."""
    return op.NAME.partition(".")[2] in _RULES or isinstance(op, _STRUCTURAL)


def compare(b: KernelBuilder, direction: str, lhs: Pair, rhs: Pair) -> Register:
    """Compares the real parts first, then the imaginary parts."""
    if direction in ("EQ", "NE"):
        parts = (b.compare(direction, x, y) for x, y in zip(lhs, rhs, strict=True))
        return b.apply("and" if direction == "EQ" else "or", *parts)
    strict = b.compare(direction.replace("E", "T"), lhs[0], rhs[0])
    tie = b.apply("and", b.compare("EQ", lhs[0], rhs[0]), b.compare(direction, lhs[1], rhs[1]))
    return b.apply("or", strict, tie)


def add(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    return b.add(x[0], y[0]), b.add(x[1], y[1])


def subtract(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    return b.subtract(x[0], y[0]), b.subtract(x[1], y[1])


def multiply(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    real = b.subtract(b.multiply(x[0], y[0]), b.multiply(x[1], y[1]))
    return real, b.add(b.multiply(x[0], y[1]), b.multiply(x[1], y[0]))


def divide(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    """Smith's method: divides the smaller part of the divisor by the larger one, so that no intermediate overflows. As
    in the interpreter, a divisor of zero divides both parts, and finite numbers over infinity are zero."""
    endless = tuple(b.compare("EQ", b.apply("abs", part), float("inf")) for part in y)
    infinite, zero = b.apply("or", *endless), b.constant(0.0, y[0].dtype)

    def direction(i: int) -> Register:
        return b.select(infinite, b.select(endless[i], b.apply("sign", y[i]), zero), y[i])

    divisor = direction(0), direction(1)
    sizes = b.apply("abs", divisor[0]), b.apply("abs", divisor[1])
    swap = b.compare("LT", *sizes)
    large, small = b.select(swap, *divisor[::-1]), b.select(swap, *divisor)
    by_zero = b.apply("and", b.compare("EQ", large, 0.0), b.compare("EQ", small, 0.0))
    ratio = b.divide(small, large)
    scale = b.select(by_zero, large, b.add(large, b.multiply(small, ratio)))
    first, second = b.select(swap, x[1], x[0]), b.select(swap, x[0], x[1])
    real = b.divide(b.select(by_zero, first, b.add(first, b.multiply(second, ratio))), scale)
    imaginary = b.divide(b.select(by_zero, second, b.subtract(second, b.multiply(first, ratio))), scale)
    share = b.select(infinite, zero, _one(b, zero))
    return b.multiply(real, share), b.multiply(b.select(swap, b.apply("negate", imaginary), imaginary), share)


def negate(b: KernelBuilder, x: Pair) -> Pair:
    return b.apply("negate", x[0]), b.apply("negate", x[1])


def absolute(b: KernelBuilder, x: Pair) -> Register:
    """max * sqrt(1 + (min / max)^2), which overflows only if the result does."""
    one, other = b.apply("abs", x[0]), b.apply("abs", x[1])
    high, low = b.apply("maximum", one, other), b.apply("minimum", one, other)
    ratio = b.divide(low, high)
    length = b.multiply(high, b.apply("sqrt", b.add(b.multiply(ratio, ratio), 1.0)))
    infinite = b.compare("EQ", high, float("inf"))
    return b.select(b.apply("or", b.compare("EQ", high, 0.0), infinite), high, length)


def square(b: KernelBuilder, x: Pair) -> Pair:
    """(a - b) (a + b) + 2 a b i, which overflows only if the result does."""
    one, other = b.apply("abs", x[0]), b.apply("abs", x[1])
    product = b.multiply(x[0], x[1])
    real = b.multiply(b.subtract(x[0], x[1]), b.add(x[0], x[1]))
    return b.select(b.compare("EQ", one, other), b.multiply(one, 0.0), real), b.add(product, product)


def exponential(b: KernelBuilder, x: Pair) -> Pair:
    """exp(a) (cos(b) + i sin(b)), in two factors if exp(a) overflows. An imaginary part of zero stays zero."""
    length, half = b.apply("exponential", x[0]), b.apply("exponential", b.multiply(x[0], 0.5))
    whole, again = _polar(b, length, x[1]), _polar(b, half, x[1])
    infinite = b.compare("EQ", length, float("inf"))
    real, imaginary = (b.select(infinite, b.multiply(half, z), y) for y, z in zip(whole, again, strict=True))
    return real, b.select(b.compare("EQ", x[1], 0.0), x[1], imaginary)


def maximum(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    return _first(b, compare(b, "GE", x, y), x, y)


def minimum(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    return _first(b, compare(b, "LE", x, y), x, y)


def _first(b: KernelBuilder, holds: Register, x: Pair, y: Pair) -> Pair:
    """Returns x if the condition holds or x is NaN, else y."""
    nan = b.apply("or", b.compare("NE", x[0], x[0]), b.compare("NE", x[1], x[1]))
    holds = b.apply("or", holds, nan)
    return b.select(holds, x[0], y[0]), b.select(holds, x[1], y[1])


def _polar(b: KernelBuilder, length: Register, angle: Register) -> Pair:
    return b.multiply(length, b.apply("cosine", angle)), b.multiply(length, b.apply("sine", angle))


def exponential_minus_one(b: KernelBuilder, x: Pair) -> Pair:
    """The real part is expm1(a) cos(b) - 2 sin(b / 2)^2, which is exact near zero, or that of the exponential itself if
    expm1(a) overflows."""
    half = b.apply("sine", b.multiply(x[1], 0.5))
    length = b.apply("exponential_minus_one", x[0])
    real = b.subtract(b.multiply(length, b.apply("cosine", x[1])), b.multiply(b.multiply(half, half), 2.0))
    whole, imaginary = exponential(b, x)
    return b.select(b.compare("EQ", length, float("inf")), whole, real), imaginary


def log(b: KernelBuilder, x: Pair) -> Pair:
    """log(|x|) + i arg(x)"""
    parts, exponent = _scaled(b, x)
    length = b.add(b.apply("log", absolute(b, parts)), b.multiply(exponent, math.log(2)))
    return length, b.apply("atan2", x[1], x[0])


def _scaled(b: KernelBuilder, x: Pair) -> tuple[Pair, Register]:
    """Scales a number by a power of two if its modulus might otherwise overflow or lose digits. Returns the scaled
    number and the exponent that was removed."""
    larger = b.apply("maximum", b.apply("abs", x[0]), b.apply("abs", x[1]))
    huge, tiny = b.compare("GT", larger, 2.0**100), b.compare("LT", larger, 2.0**-60)

    def chosen(high: float, low: float, plain: float) -> Register:
        high_, low_, plain_ = (b.constant(number, larger.dtype) for number in (high, low, plain))
        return b.select(huge, high_, b.select(tiny, low_, plain_))

    scale = chosen(2.0**-60, 2.0**60, 1.0)
    return (b.multiply(x[0], scale), b.multiply(x[1], scale)), chosen(60.0, -60.0, 0.0)


def log_plus_one(b: KernelBuilder, x: Pair) -> Pair:
    """log(|1 + x|) = log1p(a (2 + a) + b^2) / 2, exact near zero, and where that sum is nearly zero."""
    near = _sum_of_products(b, (x[0], b.add(x[0], 2.0)), (x[1], x[1]))
    # Corrects the rounding error of 2 + a.
    near = b.add(near, b.multiply(x[0], b.subtract(x[0], b.subtract(b.add(x[0], 2.0), 2.0))))
    small = b.compare("LT", b.apply("abs", near), 0.9)
    moved = b.add(x[0], 1.0), x[1]
    length, angle = log(b, moved)
    return b.select(small, b.multiply(b.apply("log_plus_one", near), 0.5), length), angle


def _sum_of_products(b: KernelBuilder, one: Pair, other: Pair) -> Register:
    """Returns the sum of two products that nearly cancel: their rounding errors are added afterwards."""
    products = b.multiply(*one), b.multiply(*other)
    rests = (b.apply("fma", *pair, b.apply("negate", p)) for pair, p in zip((one, other), products, strict=True))
    return b.add(b.add(*products), b.add(*rests))


def sqrt(b: KernelBuilder, x: Pair) -> Pair:
    """sqrt((|x| + |a|) / 2) is the larger part; the other follows from b."""
    parts, exponent = _scaled(b, x)
    large = b.apply("sqrt", b.multiply(b.add(absolute(b, parts), b.apply("abs", parts[0])), 0.5))
    back = b.select(b.compare("GT", exponent, 0.0), b.constant(2.0**30, large.dtype), _one(b, large))
    back = b.select(b.compare("LT", exponent, 0.0), b.constant(2.0**-30, large.dtype), back)
    large, height = b.multiply(large, back), b.apply("abs", x[1])
    small = b.select(b.compare("EQ", large, 0.0), large, b.divide(height, b.multiply(large, 2.0)))
    small = b.select(b.compare("EQ", height, float("inf")), height, small)
    right = b.compare("GE", x[0], 0.0)
    real, imaginary = b.select(right, large, small), b.select(right, small, large)
    below = b.compare("LT", x[1], 0.0, total_order=True)
    return real, b.select(below, b.apply("negate", imaginary), imaginary)


def _one(b: KernelBuilder, like: Register) -> Register:
    return b.constant(1.0, like.dtype)


def rsqrt(b: KernelBuilder, x: Pair) -> Pair:
    return reciprocal(b, sqrt(b, x))


def reciprocal(b: KernelBuilder, x: Pair) -> Pair:
    return divide(b, (_one(b, x[0]), b.constant(0.0, x[0].dtype)), x)


def cbrt(b: KernelBuilder, x: Pair) -> Pair:
    third = b.divide(b.apply("atan2", x[1], x[0]), 3.0)
    return _polar(b, b.apply("cbrt", absolute(b, x)), third)


def atan2(b: KernelBuilder, y: Pair, x: Pair) -> Pair:
    """-i log(u / sqrt(u v)) for u = x + i y and v = x - i y. The modulus of that quotient is the square root of
    |u| / |v|; its logarithm is computed from the difference of u and v, which stays exact if the difference is
    small."""
    u = b.subtract(x[0], y[1]), b.add(x[1], y[0])
    v = b.add(x[0], y[1]), b.subtract(x[1], y[0])
    turned = divide(b, u, sqrt(b, add(b, multiply(b, x, x), multiply(b, y, y))))
    difference = b.multiply(b.subtract(b.multiply(x[1], y[0]), b.multiply(x[0], y[1])), 4.0)
    positive = b.compare("GT", difference, 0.0)
    larger = tuple(b.select(positive, *parts) for parts in zip(u, v, strict=True))
    square = b.add(*(b.multiply(part, part) for part in larger))
    ratio = b.apply("negate", b.divide(b.apply("abs", difference), square))
    height = b.multiply(b.apply("log_plus_one", ratio), 0.25)
    return b.apply("atan2", turned[1], turned[0]), b.select(positive, height, b.apply("negate", height))


def power(b: KernelBuilder, x: Pair, y: Pair) -> Pair:
    """exp(y log(x)); a power of 0 is 0, except that its power 0 is 1."""
    result = exponential(b, multiply(b, y, log(b, x)))
    zero = b.apply("and", b.compare("EQ", x[0], 0.0), b.compare("EQ", x[1], 0.0))
    none = b.apply("and", b.compare("EQ", y[0], 0.0), b.compare("EQ", y[1], 0.0))
    at_zero = b.select(none, _one(b, x[0]), b.constant(0.0, x[0].dtype))
    return b.select(zero, at_zero, result[0]), b.select(zero, b.constant(0.0, x[0].dtype), result[1])


def sine(b: KernelBuilder, x: Pair) -> Pair:
    real = _factor(b, b.apply("sine", x[0]), b.apply("cosh", x[1]))
    return real, b.multiply(b.apply("cosine", x[0]), b.apply("sinh", x[1]))


def cosine(b: KernelBuilder, x: Pair) -> Pair:
    real = b.multiply(b.apply("cosine", x[0]), b.apply("cosh", x[1]))
    return real, b.apply("negate", _factor(b, b.apply("sine", x[0]), b.apply("sinh", x[1])))


def _factor(b: KernelBuilder, x: Register, scale: Register) -> Register:
    """Multiplies by a scale that may overflow: zero stays zero."""
    return b.select(b.compare("EQ", x, 0.0), x, b.multiply(x, scale))


def tanh(b: KernelBuilder, x: Pair) -> Pair:
    """With t = tan(b), h = tanh(a): (h (1 + t^2) + i t (1 - h^2)) / (1 + h^2 t^2). If a is infinite, b has no influence
    on the result, even if b is infinite or NaN."""
    t, h = b.apply("tan", x[1]), b.apply("tanh", x[0])
    infinite = b.compare("EQ", b.apply("abs", x[0]), float("inf"))
    t = b.select(b.apply("and", infinite, b.compare("NE", t, t)), b.constant(0.0, t.dtype), t)
    squares = b.multiply(t, t), b.multiply(h, h)
    scale = b.add(b.multiply(*squares), 1.0)
    rest = b.divide(_one(b, h), b.apply("cosh", x[0]))
    real = b.divide(b.multiply(h, b.add(squares[0], 1.0)), scale)
    return real, b.divide(b.multiply(t, b.multiply(rest, rest)), scale)


def tan(b: KernelBuilder, x: Pair) -> Pair:
    """tan(x) = -i tanh(i x)"""
    real, imaginary = tanh(b, (b.apply("negate", x[1]), x[0]))
    return imaginary, b.apply("negate", real)


def logistic(b: KernelBuilder, x: Pair) -> Pair:
    real, imaginary = exponential(b, negate(b, x))
    return reciprocal(b, (b.add(real, 1.0), imaginary))


def sign(b: KernelBuilder, x: Pair) -> Pair:
    length = absolute(b, x)
    zero = b.compare("EQ", length, 0.0)
    length = b.select(zero, _one(b, length), length)
    return b.divide(x[0], length), b.divide(x[1], length)


_RULES: dict[str, Callable[..., Any]] = {
    "add": add, "subtract": subtract, "multiply": multiply, "divide": divide, "negate": negate, "abs": absolute,
    "exponential": exponential, "exponential_minus_one": exponential_minus_one, "log": log,
    "log_plus_one": log_plus_one, "sqrt": sqrt, "rsqrt": rsqrt, "cbrt": cbrt, "power": power, "sine": sine,
    "cosine": cosine, "maximum": maximum, "minimum": minimum, "tanh": tanh, "tan": tan, "logistic": logistic,
    "sign": sign, "atan2": atan2,
}  # fmt: skip

_STRUCTURAL = (ops.Select, ops.Compare, ops.Convert, ops.Complex, ops.Real, ops.Imag, ops.Map, ops.Square, ops.Conj)
"""Ops whose rules handle pairs themselves."""
