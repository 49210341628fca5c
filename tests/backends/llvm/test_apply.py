"""Scalar operations on the CPU compared with NumPy, including the special cases that StableHLO defines and hardware
does not."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.backends.harness import elementwise, program_of, run
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import host
from trivium.compiler.kernel import numpy_dtype

COUNT = 37
INTEGERS = ["i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"]


def integers(dtype: str, seed: int = 0) -> np.ndarray:
    """Returns small and random numbers and both ends of the range."""
    limits = np.iinfo(numpy_dtype(dtype))
    random = np.random.default_rng(seed)
    values = random.integers(limits.min, limits.max, COUNT, dtype=limits.dtype, endpoint=True)
    values[:6] = [0, 1, limits.max, limits.min, 3, 7]
    return random.permutation(values)


def apply(op: str, *operands: np.ndarray, dtype: str, result: str | None = None, **attributes: object) -> np.ndarray:
    kernel = elementwise(op, [dtype] * len(operands), result or dtype, len(operands[0]), **attributes)
    return run(kernel, *operands)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", BINARY)
def test_integer_arithmetic_wraps(op: str, dtype: str) -> None:
    a, b = integers(dtype, 1), integers(dtype, 2)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(apply(op, a, b, dtype=dtype), BINARY[op](a, b))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("by_instruction", [True, False])
def test_extrema_propagate_nan(by_instruction: bool, dtype: str) -> None:
    type_, target = numpy_dtype(dtype), replace(host(), extrema=by_instruction)
    a = np.array([1, np.nan, -0.0, 0.0, np.inf, -3], type_)
    b = np.array([np.nan, 2, 0.0, -0.0, 1, -3], type_)
    expected = {"maximum": [np.nan, np.nan, 0.0, 0.0, np.inf, -3], "minimum": [np.nan, np.nan, -0.0, -0.0, 1, -3]}
    for op, wanted in expected.items():
        program = program_of(elementwise(op, [dtype] * 2, dtype, len(a)))
        (result,) = CpuExecutable(assemble_program(program, target)).execute(a, b)
        np.testing.assert_array_equal(result, np.array(wanted, type_))
        np.testing.assert_array_equal(np.signbit(result[2:]), np.signbit(np.array(wanted, type_)[2:]))


FLOAT_UNARY = {
    "negate": np.negative, "abs": np.abs, "sign": np.sign, "ceil": np.ceil, "floor": np.floor, "sqrt": np.sqrt,
    "round_nearest_even": np.rint,
    "round_nearest_afz": lambda x: np.trunc(x) + np.copysign(np.abs(x - np.trunc(x)) >= 0.5, x),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("op", FLOAT_UNARY)
def test_exact_float_operations(op: str, dtype: str) -> None:
    values = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.75, 7.25, np.inf, -np.inf, np.nan, 1e-3, 100.5, 0.49999997]
    x = np.array(values, numpy_dtype(dtype))
    with np.errstate(invalid="ignore"):
        expected = FLOAT_UNARY[op](x.astype(np.float64)).astype(x.dtype)
    # NumPy does not recognize NaN in ml_dtypes' types.
    np.testing.assert_array_equal(apply(op, x, dtype=dtype).astype(np.float64), expected.astype(np.float64))


def _converted(x: np.ndarray, source: str, target: str) -> np.ndarray:
    return run(elementwise("convert", [source], target, len(x), dtype=target), x)


@pytest.mark.parametrize("source", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("target", ["i4", "ui4", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "i1"])
def test_floats_to_integers_saturate(target: str, source: str) -> None:
    """In vectors, and in the single elements after them."""
    edges = [0.0, -0.0, 0.5, 1.75, 7.5, 8.0, 15.5, 127.5, 128.0, 255.5, 256.0, 300.0, 32768.0, 65536.0, 1e30, np.inf]
    x = np.array([*edges, *(-edge for edge in edges), np.nan] * 2, numpy_dtype(source))
    got = _converted(x, source, target)
    if target == "i1":
        np.testing.assert_array_equal(got, x != 0)
        return
    limits = ml_dtypes.iinfo(numpy_dtype(target))
    low, high = int(limits.min), int(limits.max)
    expected = [0 if np.isnan(v) else low if v < low else high if v > high else int(v) for v in x.astype(np.float64)]
    assert [int(v) for v in got] == expected


def test_integer_conversions_wrap_and_extend() -> None:
    x = np.array([0, 1, -1, 127, 128, 255, 256, -129, 2**31 - 1], np.int32)
    for target in INTEGERS:
        np.testing.assert_array_equal(_converted(x, "i32", target), x.astype(numpy_dtype(target)))
    np.testing.assert_array_equal(_converted(x, "i32", "f32"), x.astype(np.float32))
    u = x.view(np.uint32)
    np.testing.assert_array_equal(_converted(u, "ui32", "f32"), u.astype(np.float32))


def test_bitcasts_keep_bits() -> None:
    x = np.array([1.0, -2.0, np.inf, 3.5], np.float32)
    np.testing.assert_array_equal(
        run(elementwise("bitcast_convert", ["f32"], "i32", 4, dtype="i32"), x), x.view(np.int32)
    )
    h = np.array([1.0, -2.0, np.inf, 3.5], ml_dtypes.bfloat16)
    got = run(elementwise("bitcast_convert", ["bf16"], "ui16", 4, dtype="ui16"), h)
    np.testing.assert_array_equal(got, h.view(np.uint16))


DIRECTIONS = {
    "EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_comparisons(direction: str) -> None:
    compare = DIRECTIONS[direction]
    a = np.array([1, 2, np.nan, np.nan, -0.0, np.inf], np.float32)
    b = np.array([1, 3, 1, np.nan, 0.0, -np.inf], np.float32)
    np.testing.assert_array_equal(apply("compare", a, b, dtype="f32", result="i1", direction=direction), compare(a, b))
    for dtype in ("i32", "ui32"):
        x, y = integers(dtype, 7), integers(dtype, 8)
        got = apply("compare", x, y, dtype=dtype, result="i1", direction=direction)
        np.testing.assert_array_equal(got, compare(x, y))


def test_total_order() -> None:
    ordered = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    ordered[0] = np.copysign(np.float32(np.nan), np.float32(-1))
    a, b = ordered[:-1].copy(), ordered[1:].copy()
    attributes = {"direction": "LT", "total_order": True}
    assert apply("compare", a, b, dtype="f32", result="i1", **attributes).all()


def test_clamp_and_select_and_finite() -> None:
    x = np.array([-5, 0.5, 5, np.nan, np.inf], np.float32)
    low, high = np.zeros_like(x), np.ones_like(x)
    np.testing.assert_array_equal(apply("clamp", low, x, high, dtype="f32"), np.clip(x, 0, 1))
    np.testing.assert_array_equal(apply("is_finite", x, dtype="f32", result="i1"), np.isfinite(x))
    kernel = elementwise("select", ["i1", "f32", "f32"], "f32", 5)
    pred = np.array([True, False, True, False, True])
    np.testing.assert_array_equal(run(kernel, pred, low, high), np.where(pred, low, high))


def test_remainder_is_that_of_c() -> None:
    a = np.array([5.5, -5.5, 1e10, np.inf, 3.0], np.float32)
    b = np.array([2.0, 2.0, 3.0, 2.0, 0.0], np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(apply("remainder", a, b, dtype="f32"), np.fmod(a, b))


def test_next_after() -> None:
    a = np.array([0, -0.0, 1, 1, -1, np.inf, 3, np.nan, 1e-45], np.float32)
    b = np.array([1, -1, 2, 0, -2, 0, 3, 1, -1], np.float32)
    np.testing.assert_array_equal(apply("next_after", a, b, dtype="f32"), np.nextafter(a, b))


def test_reduce_precision() -> None:
    x = np.array([1.0, 3.14159, 1e-6, 70000.0, -70000.0, 65504.0, np.nan, np.inf, -0.0], np.float32)
    got = apply("reduce_precision", x, dtype="f32", exponent_bits=8, mantissa_bits=7)
    np.testing.assert_array_equal(got, x.astype(ml_dtypes.bfloat16).astype(np.float32))
    got = apply("reduce_precision", x, dtype="f32", exponent_bits=5, mantissa_bits=10)
    expected = x.astype(np.float16).astype(np.float32)
    # Numbers that are subnormal in f16 become zero.
    expected[2] = 0
    np.testing.assert_array_equal(got, expected)
