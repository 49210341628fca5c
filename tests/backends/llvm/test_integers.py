"""Integer operations compared with Python's: for wide types at extreme and random numbers, for narrow ones at every
pair of values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from tests.backends.harness import elementwise, run
from trivium.compiler.kernel import numpy_dtype
from trivium.compiler.kernel.dtypes import SIGNED, bit_width

COUNT = 37
INTEGERS = ["i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"]


def integers(dtype: str, seed: int = 0) -> np.ndarray:
    """Returns small and random numbers, and both ends of the range."""
    limits = np.iinfo(numpy_dtype(dtype))
    random = np.random.default_rng(seed)
    values = random.integers(limits.min, limits.max, COUNT, dtype=limits.dtype, endpoint=True)
    values[:6] = [0, 1, limits.max, limits.min, 3, 7]
    return random.permutation(values)


def apply(op: str, *operands: np.ndarray, dtype: str) -> np.ndarray:
    return run(elementwise(op, [dtype] * len(operands), dtype, len(operands[0])), *operands)


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


@pytest.mark.parametrize("dtype", ["i16", "ui16", "i32", "ui32"])
def test_quotients_next_to_integers(dtype: str) -> None:
    """Vectors divide in floats, which must not round up to the next integer."""
    limits = np.iinfo(numpy_dtype(dtype))
    if limits.bits == 16:
        b = np.arange(1, limits.max + 1, dtype=np.int64)
    else:
        drawn = np.random.default_rng(7).integers(1, limits.max, 30_000, dtype=np.int64)
        b = np.concatenate([np.arange(1, 30_000), drawn, limits.max - np.arange(100)])
    most = limits.max // b * b
    a = np.concatenate([most, most - 1, np.maximum(most - b - 1, 0), np.full_like(b, limits.max)])
    b = np.tile(b, 4)
    if limits.min:
        a, b = np.concatenate([a, -a, a, -a]), np.concatenate([b, b, -b, -b])
    expected = np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)
    a, b = a.astype(limits.dtype), b.astype(limits.dtype)
    np.testing.assert_array_equal(apply("divide", a, b, dtype=dtype), expected)
    np.testing.assert_array_equal(apply("remainder", a, b, dtype=dtype), a - expected * b)


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


NARROW = ["i2", "ui2", "i4", "ui4", "i8", "ui8"]


def all_values(dtype: str) -> range:
    bits = bit_width(dtype)
    return range(-(1 << bits - 1), 1 << bits - 1) if dtype in SIGNED else range(1 << bits)


def wrapped(number: int, dtype: str) -> int:
    """Modulo 2^width, in the type's range."""
    bits = bit_width(dtype)
    rest = number % (1 << bits)
    return rest - (1 << bits) if dtype in SIGNED and rest >> (bits - 1) else rest


def divided(a: int, b: int, dtype: str) -> int:
    """Rounded toward zero; all ones if there is no quotient."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted_by(b: int, dtype: str) -> int:
    """Amounts beyond the width, and negative ones, act like the width."""
    bits = bit_width(dtype)
    return b if 0 <= b < bits else bits


def power(a: int, b: int, dtype: str) -> int:
    if b >= 0:
        return a**b
    return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)


OPERATIONS: dict[str, Callable[[int, int, str], int]] = {
    "divide": divided,
    "remainder": lambda a, b, dtype: a if b == 0 else a - divided(a, b, dtype) * b,
    "shift_left": lambda a, b, dtype: a << shifted_by(b, dtype),
    "shift_right_logical": lambda a, b, dtype: a % (1 << bit_width(dtype)) >> shifted_by(b, dtype),
    "shift_right_arithmetic": lambda a, b, dtype: (
        wrapped(a, f"i{bit_width(dtype)}") >> min(shifted_by(b, dtype), bit_width(dtype) - 1)
    ),
    "power": power,
    "maximum": lambda a, b, _: max(a, b),
    "minimum": lambda a, b, _: min(a, b),
}


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("op", OPERATIONS)
def test_every_pair(op: str, dtype: str) -> None:
    pairs = list(product(all_values(dtype), repeat=2))
    a, b = (np.array(side).astype(numpy_dtype(dtype)) for side in zip(*pairs, strict=True))
    expected = [wrapped(OPERATIONS[op](x, y, dtype), dtype) for x, y in pairs]
    assert apply(op, a, b, dtype=dtype).astype(np.int64).tolist() == expected


@pytest.mark.parametrize("dtype", NARROW)
def test_every_value(dtype: str) -> None:
    """The smallest number has no positive counterpart: the result is the number itself."""
    bits, values = bit_width(dtype), list(all_values(dtype))
    a = np.array(values).astype(numpy_dtype(dtype))
    leading = apply("count_leading_zeros", a, dtype=dtype).astype(np.int64) % (1 << bits)
    assert leading.tolist() == [(bits - (x % (1 << bits)).bit_length()) % (1 << bits) for x in values]
    if dtype in SIGNED:
        assert apply("abs", a, dtype=dtype).astype(np.int64).tolist() == [wrapped(abs(x), dtype) for x in values]
        assert apply("sign", a, dtype=dtype).astype(np.int64).tolist() == [(x > 0) - (x < 0) for x in values]
