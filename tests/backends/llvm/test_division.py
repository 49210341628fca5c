"""Divisions of long rows by one number have the bits of plain divisions: also where quotients are subnormal, halfway
between two numbers, or not finite."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.harness import run
from trivium.backends.cpu.target import host
from trivium.backends.llvm.division import LONG
from trivium.compiler.kernel import Kernel, KernelBuilder

pytestmark = pytest.mark.skipif(not host().wide_products, reason="this processor has no wide vectors")

COUNT = 16 * LONG + 9
"""A row of vectors of any width, and a remainder."""


def quotients(rows: int) -> Kernel:
    b = KernelBuilder("quotients")
    x, y = b.input("x", "f32", (rows, COUNT)), b.input("y", "f32", (rows,))
    z = b.output("z", "f32", (rows, COUNT))
    with b.parallel(rows) as (row,):
        divisor = b.load(y, row)
        with b.parallel(COUNT) as (column,):
            b.store(z, b.divide(b.load(x, row, column), divisor), row, column)
    return b.build()


def expect_division(x: np.ndarray, y: np.ndarray) -> None:
    x = np.resize(x.astype(np.float32), (len(y), COUNT))
    y = y.astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = x / y[:, None]
    got = run(quotients(len(y)), x, y)
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), nan)
    np.testing.assert_array_equal(got[~nan].view(np.int32), wanted[~nan].view(np.int32))


def test_every_exponent() -> None:
    random = np.random.default_rng(0)
    any_bits = random.integers(0, 2**32, (500, COUNT), dtype=np.uint32).view(np.float32)
    expect_division(any_bits, random.integers(0, 2**32, 500, dtype=np.uint32).view(np.float32))
    expect_division(random.standard_normal((500, COUNT)), random.uniform(1, 2, 500))


def test_subnormal_quotients_halfway_between_two() -> None:
    divisors = 2 * np.arange(1, 400) + 1
    factors = 2 * np.arange(COUNT) + 1
    expect_division((factors * divisors[:, None]).astype(np.float64) * 2.0**-110, divisors * 2.0**40)


def test_quotients_close_to_halfway() -> None:
    """a 2^24 = (2 m + 1) b +- 1 for numbers b of 24 bits: a / b is as close to a number of 25 bits as it can be."""
    random = np.random.default_rng(0)
    divisors = random.integers(2**22, 2**23, 200) * 2 + 1
    rows = []
    for b in divisors.tolist():
        numbers = {pow(2**shift, -1, b) * sign % b for shift in range(22, 27) for sign in (1, -1, 3, -3)}
        rows.append(np.resize(sorted(numbers), COUNT))
    expect_division(np.array(rows), divisors)


def test_infinities_and_zeros() -> None:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-45, 3e38, -3e38, 1e-38, 65536.0])
    expect_division(np.tile(special, (len(special), COUNT))[:, :COUNT], special)


@pytest.mark.parametrize("literal", [255.0, -0.229, 3.0, 4.0, 2.0**127, 1e-45, 0.0, -np.inf, np.nan])
def test_literals(literal: float) -> None:
    b = KernelBuilder("quotients")
    x, z = b.input("x", "f32", (COUNT,)), b.output("z", "f32", (COUNT,))
    with b.parallel(COUNT) as (column,):
        b.store(z, b.divide(b.load(x, column), b.constant(literal, "f32")), column)
    a = np.random.default_rng(0).integers(0, 2**32, COUNT, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        wanted = a / np.float32(literal)
    np.testing.assert_array_equal(run(b.build(), a), wanted)
