"""Scalar operations on the CPU against NumPy, with the corners that StableHLO defines and hardware does not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.backends.harness import elementwise, run
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


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_never_traps(dtype: str) -> None:
    limits = np.iinfo(numpy_dtype(dtype))
    a = integers(dtype, 3)
    b = integers(dtype, 4)
    a[0], b[0] = limits.min, limits.max if limits.min == 0 else -1
    b[1] = 0
    quotients, rests = apply("divide", a, b, dtype=dtype), apply("remainder", a, b, dtype=dtype)
    bits = limits.bits
    for x, y, quotient, rest in zip(a.tolist(), b.tolist(), quotients.tolist(), rests.tolist(), strict=True):
        expected = (
            (limits.max if limits.min == 0 else -1) if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        )
        assert (quotient - expected) % (1 << bits) == 0
        assert rest == (x if y == 0 else x - expected * y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_beyond_the_width(dtype: str) -> None:
    bits = np.iinfo(numpy_dtype(dtype)).bits
    a = integers(dtype, 5)
    by = np.arange(COUNT).astype(numpy_dtype(dtype)) % (bits + 4)
    mask = (1 << bits) - 1
    left, logical, arithmetic = (
        apply(op, a, by, dtype=dtype) for op in ("shift_left", "shift_right_logical", "shift_right_arithmetic")
    )
    for n, (x, s) in enumerate(zip(a.tolist(), by.tolist(), strict=True)):
        signed = (x & mask) - ((x & mask) >> (bits - 1) << bits)
        assert int(left[n]) & mask == (x << s if s < bits else 0) & mask
        assert int(logical[n]) & mask == (x & mask) >> s
        assert int(arithmetic[n]) & mask == (signed >> min(s, bits - 1)) & mask


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_are_counted(dtype: str) -> None:
    bits = np.iinfo(numpy_dtype(dtype)).bits
    a = integers(dtype, 6)
    mask = (1 << bits) - 1
    np.testing.assert_array_equal(apply("popcnt", a, dtype=dtype), [(int(x) & mask).bit_count() for x in a])
    zeros = [bits - (int(x) & mask).bit_length() for x in a]
    np.testing.assert_array_equal(apply("count_leading_zeros", a, dtype=dtype), zeros)


@pytest.mark.parametrize("dtype", ["i32", "i64", "ui32"])
def test_integer_power(dtype: str) -> None:
    base = np.array([0, 1, 2, 3, 5, 7, 10] * 3).astype(numpy_dtype(dtype))
    exponent = np.repeat([0, 1, 9], 7).astype(numpy_dtype(dtype))
    np.testing.assert_array_equal(apply("power", base, exponent, dtype=dtype), base**exponent)
    if dtype != "ui32":
        base = np.array([1, -1, -1, 2, -3], base.dtype)
        exponent = np.array([-5, -4, -3, -1, -2], base.dtype)
        np.testing.assert_array_equal(apply("power", base, exponent, dtype=dtype), [1, 1, -1, 0, 0])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_extrema_propagate_nan(dtype: str) -> None:
    type_ = numpy_dtype(dtype)
    a = np.array([1, np.nan, -0.0, 0.0, np.inf], type_)
    b = np.array([np.nan, 2, 0.0, -0.0, 1], type_)
    np.testing.assert_array_equal(apply("maximum", a, b, dtype=dtype), np.array([np.nan, np.nan, 0, 0, np.inf], type_))
    np.testing.assert_array_equal(apply("minimum", a, b, dtype=dtype), np.array([np.nan, np.nan, 0, 0, 1], type_))


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


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide"])
def test_narrow_floats_are_rounded_after_each_operation(op: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(COUNT).astype(numpy_dtype(dtype)) for _ in range(2))
    exact = getattr(np, op)(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_array_equal(apply(op, a, b, dtype=dtype), exact.astype(a.dtype))


SMALL = [
    "f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2", "f8E5M2FNUZ", "f4E2M1FN", "f6E2M3FN",
    "f6E3M2FN", "f16", "bf16",
]  # fmt: skip


@pytest.mark.parametrize("dtype", SMALL)
def test_small_floats_from_and_to_f32(dtype: str) -> None:
    type_ = numpy_dtype(dtype)
    count = min(1 << 16, 1 << (16 if type_.itemsize == 2 else int("".join(filter(str.isdigit, dtype.split("E")[0])))))
    codes = np.arange(count).astype(np.uint16 if type_.itemsize == 2 else np.uint8).view(type_)
    wide = _converted(codes, dtype, "f32")
    np.testing.assert_array_equal(wide, codes.astype(np.float32))
    random = np.random.default_rng(1)
    values = (random.standard_normal(4000) * np.exp(random.uniform(-14, 8, 4000))).astype(np.float32)
    finite = wide[np.isfinite(wide)]
    between = np.unique(finite)
    ties = ((between[1:].astype(np.float64) + between[:-1]) / 2).astype(np.float32)
    for x in (values, finite, ties):
        with np.errstate(over="ignore", invalid="ignore"):
            np.testing.assert_array_equal(
                _converted(x, "f32", dtype).astype(np.float32), x.astype(type_).astype(np.float32)
            )


def _converted(x: np.ndarray, source: str, target: str) -> np.ndarray:
    return run(elementwise("convert", [source], target, len(x), dtype=target), x)


@pytest.mark.parametrize("target", ["i8", "ui8", "i32", "ui32", "i64", "i1"])
def test_floats_to_integers_saturate(target: str) -> None:
    x = np.array([0.0, 1.9, -1.9, 300.0, -300.0, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    got = _converted(x, "f32", target)
    if target == "i1":
        np.testing.assert_array_equal(got, x != 0)
        return
    limits = np.iinfo(numpy_dtype(target))
    expected = [0 if np.isnan(v) else int(np.clip(np.trunc(float(v)), limits.min, limits.max)) for v in x]
    assert got.tolist() == [min(e, limits.max) for e in expected]


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
