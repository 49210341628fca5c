"""The constraints of CHLO's ops, each broken once. CHLO has no specification; the labels are numbered as StableHLO's
are."""

from __future__ import annotations

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.ops import Acos, BesselI1e, Erf, IsInf, NextAfter, Polygamma, TopK, Zeta
from trivium.ir.types import C64, F32, F64, I1, I32, I64, TOKEN, tensor


def test_float_unary_i1() -> None:
    with breaks("I1"):
        Erf(value(3, of=C64))
    with breaks("I1"):
        BesselI1e(value(3, of=C64))
    with breaks("I1"):
        Erf(Value(TOKEN))


def test_complex_unary_i1() -> None:
    with breaks("I1"):
        Acos(value(3, of=I32))


def test_float_test_i1() -> None:
    with breaks("I1"):
        IsInf(value(3, of=I32))
    with breaks("I1"):
        IsInf(Value(TOKEN))


def test_float_test_o1() -> None:
    with breaks("O1"):
        IsInf(value(3), result=tensor(3))


def test_float_test_c1() -> None:
    with breaks("C1"):
        IsInf(value(3), result=tensor(4, of=I1))


def test_polygamma_i1() -> None:
    with breaks("I1"):
        Polygamma(value(3, of=I32), value(3, of=I32))


def test_polygamma_c1() -> None:
    with breaks("C1"):
        Polygamma(value(3), value(4))
    with breaks("C1"):
        Polygamma(value(3), value(3), result=tensor(3, of=F64))


def test_zeta_i1() -> None:
    with breaks("I1"):
        Zeta(value(of=I1), value(of=I1))


def test_zeta_c1() -> None:
    with breaks("C1"):
        Zeta(value(of=F32), value(of=F64))


def test_next_after_i1() -> None:
    with breaks("I1"):
        NextAfter(value(of=C64), value(of=C64))


def test_next_after_c1() -> None:
    with breaks("C1"):
        NextAfter(value(3), value(4))


def test_top_k_i1() -> None:
    with breaks("I1"):
        TopK(Value(TOKEN), 1)


def test_top_k_c1() -> None:
    with breaks("C1"):
        TopK(value(), 1)


def test_top_k_c2() -> None:
    with breaks("C2"):
        TopK(value(3, 4), 5)
    with breaks("C2"):
        TopK(value(3, 4), -1)


def test_top_k_c3() -> None:
    with breaks("C3"):
        TopK(value(3, 4), 2, values=tensor(3, 4))


def test_top_k_c4() -> None:
    with breaks("C4"):
        TopK(value(3, 4), 2, indices=tensor(3, 2, of=I64))
