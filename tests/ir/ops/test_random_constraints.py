"""The constraints of random generators, each broken once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.ops import Constant, Rng, RngAlgorithm, RngBitGenerator, RngDistribution
from trivium.ir.types import F32, F64, I1, I32, I64, TOKEN, UI32, UI64, Type, tensor


def bits(state: Value | None = None, algorithm: RngAlgorithm = RngAlgorithm.THREE_FRY, **results: Any) -> None:
    state = state or value(2, of=UI64)
    results = {"output_state": state.type, "output": tensor(3, of=UI32), **results}
    RngBitGenerator(state, algorithm, **results)


def test_rng_bit_generator_i2() -> None:
    with breaks("I2"):
        bits(value(2, of=UI32))
    with breaks("I2"):
        bits(value(2, 1, of=UI64))


def test_rng_bit_generator_o2() -> None:
    with breaks("O2"):
        bits(output=tensor(3, of=I1))
    with breaks("O2"):
        bits(output=tensor(None, of=UI32))


def test_rng_bit_generator_c1() -> None:
    with breaks("C1"):
        bits(output_state=tensor(3, of=UI64))


def test_rng_bit_generator_c2() -> None:
    with breaks("C2"):
        bits(value(3, of=UI64))
    with breaks("C2"):
        bits(value(4, of=UI64), RngAlgorithm.PHILOX)
    bits(value(3, of=UI64), RngAlgorithm.PHILOX)


def test_rng_c3_where_the_shape_is_known() -> None:
    with breaks("C3"):
        rng(shape=Constant(np.int64([3, 5])).result)


def rng(
    a: Value | None = None,
    b: Value | None = None,
    shape: Value | None = None,
    distribution: RngDistribution = RngDistribution.UNIFORM,
    result: Type | None = None,
) -> None:
    Rng(a or value(), b or value(), shape or value(2, of=I64), distribution, result=result or tensor(3, 4))


def test_rng_i1() -> None:
    with breaks("I1"):
        rng(a=Value(TOKEN))
    with breaks("I1"):
        rng(a=value(1))


def test_rng_i2() -> None:
    with breaks("I2"):
        rng(b=value(1))


def test_rng_i3() -> None:
    with breaks("I3"):
        rng(shape=value(of=I64))


def test_rng_c1() -> None:
    with breaks("C1"):
        rng(b=value(of=F64))
    with breaks("C1"):
        rng(result=tensor(3, 4, of=I32))


def test_rng_c2() -> None:
    with breaks("C2"):
        rng(value(of=I32), value(of=I32), distribution=RngDistribution.NORMAL, result=tensor(3, 4, of=I32))


def test_rng_c3() -> None:
    with breaks("C3"):
        rng(shape=value(3, of=I64), result=tensor(3, 4, of=F32))
