"""Elementwise ops on numbers at the edges of their types, compared with XLA: zeros of both signs, NaN, infinities, the
largest and the smallest numbers, results that wrap around and results that are rounded."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ir import xla
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse
from trivium.ir.types import type_of

pytestmark = pytest.mark.jax

INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
NARROW_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz")
NARROW_FLOATS += ("float8_e3m4", "float8_e4m3")
NARROW_INTEGERS = ("int4", "uint4", "int2", "uint2")


def edges(name: str) -> np.ndarray:
    """Returns numbers at the edges of a type. Subnormal numbers are not among them, because XLA's CPU treats them as
    zero."""
    dtype = np.dtype(name) if hasattr(np, name) else np.dtype(getattr(ml_dtypes, name))
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind == "c":
        parts = [0.0, -0.0, 1.0, -2.5, 0.5, np.inf, -np.inf, np.nan, 40.0]
        return np.array([complex(x, y) for x, y in itertools.product(parts, parts)], dtype)
    if "int" in name:
        info = ml_dtypes.iinfo(dtype)
        numbers = [
            info.min,
            info.min + 1,
            *(-64, -33, -7, -2, -1, 0, 1, 2, 3, 7, 31, 32, 33, 63),
            info.max - 1,
            info.max,
        ]
        return np.array([number for number in numbers if info.min <= number <= info.max], object).astype(dtype)
    info = ml_dtypes.finfo(dtype)
    numbers = [0.0, 1.0, np.inf, np.nan, 0.5, 1.5, 2.5, 3.7, 10.3, 87.0, 1e-3, info.tiny, info.max, info.max / 2]
    numbers += [1 + info.eps, 0.49999997, 127.5, 255.5, 2.0**31, 2.0**63, 2.0**64]
    with np.errstate(all="ignore"):
        array = np.array([sign * float(number) for number in numbers for sign in (1, -1)]).astype(dtype)
        wide = array.astype(np.float64)
    return array[~(np.abs(wide) < float(info.tiny)) | (wide == 0)]


def pairs(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


def expect_equal_to_xla(
    lines: Sequence[str], *arrays: np.ndarray, result: str = "", ulps: int = 0, dialect: str = "stablehlo"
) -> None:
    """Requires the same numbers, zeros of the same sign, and NaN for NaN. The lines are ops of one program; `T` stands
    for the type of their operands, `R` for that of their results."""
    kind = str(type_of(arrays[0]))
    names = [f"%{index}" for index in range(len(lines))]
    body = [
        f"{name} = {dialect}.{line.format(T=kind, R=result or kind)}" for name, line in zip(names, lines, strict=True)
    ]
    results = ", ".join([result or kind] * len(lines))
    arguments = ", ".join(f"%{name}: {kind}" for name, _ in zip("abc", arrays, strict=False))
    body.append(f"return {', '.join(names)} : {results}")
    text = f"func.func @main({arguments}) -> ({results}) {{\n" + "\n".join(body) + "\n}"
    module = parse(text)
    module.verify()
    for line, value, expected in zip(lines, evaluate(module, *arrays), xla.run(text, arrays), strict=True):
        expect_same(line, value, expected, ulps)


def expect_same(line: str, value: np.ndarray, expected: np.ndarray, ulps: int) -> None:
    assert value.dtype == expected.dtype
    if value.dtype.kind in "biu" or "int" in value.dtype.name:
        np.testing.assert_array_equal(value, expected, line)
        return
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    tolerance = ulps * float(ml_dtypes.finfo(value.dtype).eps)
    value, expected = value.astype(wide), expected.astype(wide)
    np.testing.assert_allclose(value, expected, rtol=tolerance, err_msg=line)
    if wide is np.float64:
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(value[zero]), np.signbit(expected[zero]), line)


UNARY, BINARY = "{} %a : {{T}}", "{} %a, %b : {{T}}"
ARITHMETIC = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum")
BITS = ("and", "or", "xor")
SHIFTS = ("shift_left", "shift_right_logical", "shift_right_arithmetic")
ROUNDING = ("negate", "abs", "sign", "ceil", "floor", "round_nearest_afz", "round_nearest_even")
FUNCTIONS = ("exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "sqrt", "rsqrt", "cbrt")
FUNCTIONS += ("sine", "cosine", "tan", "tanh")


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    numbers = edges(name)
    expect_equal_to_xla(list(map(BINARY.format, (*ARITHMETIC, *BITS, *SHIFTS))), *pairs(numbers))
    signed = ("abs", "sign") if name[0] == "i" else ()
    expect_equal_to_xla(list(map(UNARY.format, ("negate", "not", "popcnt", "count_leading_zeros", *signed))), numbers)


def test_booleans():
    ops = ("add", "multiply", "maximum", "minimum", *BITS)
    expect_equal_to_xla(list(map(BINARY.format, ops)), *pairs(edges("bool")))


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name):
    numbers = edges(name)
    expect_equal_to_xla(list(map(UNARY.format, ROUNDING)), numbers)
    expect_equal_to_xla(list(map(UNARY.format, FUNCTIONS)), numbers, ulps=8)
    operations = (np.add, np.subtract, np.multiply, np.divide, np.fmod, np.maximum, np.minimum)
    for op, operation in zip(ARITHMETIC, operations, strict=True):
        expect_equal_to_xla([BINARY.format(op)], *away_from_subnormals(operation, *pairs(numbers)))
    for op, operation in (("power", np.power), ("atan2", np.divide)):
        expect_equal_to_xla([BINARY.format(op)], *away_from_subnormals(operation, *pairs(numbers)), ulps=8)


@pytest.mark.parametrize("name", FLOATS)
def test_chlo(name):
    wide = np.abs(edges(name).astype(np.float64))
    large = edges(name)[~(wide < 1e-3) | (wide == 0)]  # XLA may treat half of a smaller one as zero
    numbers = np.concatenate([large, np.linspace(-6, 6, 50).astype(name), np.linspace(-1, 1, 50).astype(name)])
    functions = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "erf", "erfc", "erf_inv")
    lines = [f"{op} %a : {{T}} -> {{T}}" for op in (*functions, "bessel_i1e")]
    expect_equal_to_xla(lines, numbers, ulps=64 if numbers.itemsize > 2 else 2, dialect="chlo")
    expect_equal_to_xla(["next_after %a, %b : {T}, {T} -> {T}"], *pairs(edges(name)), dialect="chlo")


def away_from_subnormals(operation: Callable[..., Any], *operands: np.ndarray) -> list[np.ndarray]:
    """Returns the operands whose result is not subnormal, because XLA would treat that as zero."""
    with np.errstate(all="ignore"):
        outcome = np.abs(operation(*(operand.astype(np.float64) for operand in operands)))
    keep = ~(outcome < 2 * float(ml_dtypes.finfo(operands[0].dtype).tiny)) | (outcome == 0)
    return [operand[keep] for operand in operands]


@pytest.mark.parametrize("name", NARROW_INTEGERS)
def test_narrow_integers(name):
    info = ml_dtypes.iinfo(name)
    numbers = np.arange(info.min, info.max + 1).astype(name)
    expect_equal_to_xla(list(map(BINARY.format, (*ARITHMETIC, *BITS, *SHIFTS))), *pairs(numbers))
    expect_equal_to_xla(list(map(UNARY.format, ("negate", "not", "count_leading_zeros"))), numbers)


@pytest.mark.parametrize("name", NARROW_FLOATS)
def test_narrow_floats(name):
    """Every third float of the type. Results are rounded once, whatever type they are computed in."""
    numbers = np.arange(0, 256, 3, np.uint8).view(name)
    ops = [op for op in ARITHMETIC if op != "remainder"]
    expect_equal_to_xla(list(map(BINARY.format, ops)), *pairs(numbers))
    expect_equal_to_xla(list(map(UNARY.format, ROUNDING)), numbers)
    questions = [
        f"compare {question}, TOTALORDER : ({{T}}, {{T}}) -> {{R}}" for question in ("LT, %a, %b", "EQ, %a, %b")
    ]
    expect_equal_to_xla(questions, *pairs(numbers), result=f"tensor<{numbers.size**2}xi1>")


@pytest.mark.parametrize("name", FLOATS)
def test_clamp(name):
    low, value, high = np.array(list(itertools.product(edges(name)[:8], repeat=3))).T
    expect_equal_to_xla(["clamp %a, %b, %c : {T}"], *map(np.ascontiguousarray, (low, value, high)))


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
def test_compare(name):
    lhs, rhs = pairs(np.concatenate([edges(name), -edges(name)]) if name in FLOATS else edges(name))
    kinds = ("FLOAT", "TOTALORDER") if name in FLOATS else ("SIGNED" if name.startswith("i") else "UNSIGNED",)
    questions = itertools.product(("EQ", "NE", "GE", "GT", "LE", "LT"), kinds)
    lines = [f"compare {direction}, %a, %b, {kind} : ({{T}}, {{T}}) -> {{R}}" for direction, kind in questions]
    expect_equal_to_xla(lines, lhs, rhs, result=f"tensor<{len(lhs)}xi1>")


@pytest.mark.parametrize("name", FLOATS)
def test_reduce_precision(name):
    forms = ("e8m23", "e5m10", "e8m7", "e4m3", "e5m2", "e2m1", "e11m52", "e1m5")
    expect_equal_to_xla([f"reduce_precision %a, format = {form} : {{T}}" for form in forms], edges(name))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_functions(name):
    """Only where the result is a number: XLA returns NaN more often than necessary."""
    numbers = edges(name)
    numbers = numbers[np.isfinite(numbers.imag) & (numbers.real != 0) & ~np.signbit(numbers.imag)]
    ops = ("exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "sqrt", "rsqrt", "tanh")
    expect_equal_to_xla(list(map(UNARY.format, ops)), numbers, ulps=20)
    lhs, rhs = pairs(edges(name))
    lhs, rhs = lhs[np.isfinite(lhs)], rhs[np.isfinite(lhs)]
    expect_equal_to_xla(list(map(BINARY.format, ("add", "subtract", "divide"))), lhs, rhs, ulps=8)


TYPES = ("bool", *INTEGERS, *FLOATS, *NARROW_FLOATS, *NARROW_INTEGERS, "complex64")


@pytest.mark.parametrize("name", TYPES)
def test_convert(name):
    """Every type is converted to every other one, in one program, since compiling takes longer than running."""
    numbers = edges(name)
    types = [f"tensor<{len(numbers)}x{type_of(edges(other)).element_type}>" for other in TYPES if other != name]
    kind = type_of(numbers)
    lines = [f"%{index} = stablehlo.convert %a : ({kind}) -> {to}" for index, to in enumerate(types)]
    lines.append(f"return {', '.join(f'%{index}' for index in range(len(types)))} : {', '.join(types)}")
    text = f"func.func @main(%a: {kind}) -> ({', '.join(types)}) {{\n" + "\n".join(lines) + "\n}"
    for result, expected in zip(evaluate(parse(text), numbers), xla.run(text, [numbers]), strict=True):
        assert result.dtype == expected.dtype
        wide = np.complex128 if result.dtype.kind == "c" else np.float64
        np.testing.assert_array_equal(result.astype(wide), expected.astype(wide), str(result.dtype))
