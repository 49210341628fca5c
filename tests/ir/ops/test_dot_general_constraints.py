"""The constraints of dot products, each broken once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.ir.ops.constraints import breaks, value
from trivium.ir.core import Value
from trivium.ir.errors import VerificationError
from trivium.ir.ops import DotAlgorithm, DotDimensionNumbers, DotGeneral, Precision
from trivium.ir.types import BF16, F32, F64, FLOATS, TOKEN, tensor

NUMBERS = DotDimensionNumbers((0,), (0,), (2,), (1,))
ALGORITHM = DotAlgorithm(BF16, BF16, F32, 1, 1, 1, False)


def dot(lhs: Value | None = None, rhs: Value | None = None, result: Any = None, **more: Any) -> None:
    """A batched product of 3x4 and 4x5; `more` are dimension numbers and attributes."""
    names = NUMBERS.__dataclass_fields__
    numbers = replace(NUMBERS, **{name: more.pop(name) for name in list(more) if name in names})
    DotGeneral(lhs or value(2, 3, 4), rhs or value(2, 4, 5), numbers, result=result, **more)


def test_dot_general_i1() -> None:
    with breaks("I1"):
        dot(lhs=Value(TOKEN))


def test_dot_general_i2() -> None:
    with breaks("I2"):
        dot(rhs=Value(TOKEN))


def test_dot_general_c1() -> None:
    with breaks("C1"):
        dot(lhs_batching_dimensions=())


def test_dot_general_c2() -> None:
    with breaks("C2"):
        dot(rhs_contracting_dimensions=())


def test_dot_general_c3() -> None:
    with breaks("C3"):
        dot(lhs_contracting_dimensions=(0,))


def test_dot_general_c4() -> None:
    with breaks("C4"):
        dot(rhs_contracting_dimensions=(0,))


def test_dot_general_c5() -> None:
    with breaks("C5"):
        dot(lhs_batching_dimensions=(-1,))


def test_dot_general_c6() -> None:
    with breaks("C6"):
        dot(lhs_contracting_dimensions=(3,))


def test_dot_general_c7() -> None:
    with breaks("C7"):
        dot(rhs_batching_dimensions=(3,))


def test_dot_general_c8() -> None:
    with breaks("C8"):
        dot(rhs_contracting_dimensions=(-1,))


def test_dot_general_c9() -> None:
    with breaks("C9"):
        dot(rhs=value(3, 4, 5))


def test_dot_general_c10() -> None:
    with breaks("C10"):
        dot(rhs=value(2, 3, 5))


def test_dot_general_c11() -> None:
    with breaks("C11"):
        dot(precision_config=[Precision.HIGH])


def test_dot_general_c12() -> None:
    with breaks("C12"):
        dot(result=tensor(2, 3, 4))
    with breaks("C12"):
        dot(result=TOKEN)


def test_dot_general_c13() -> None:
    with breaks("C13"):
        dot(rhs=value(2, 4, 5, of=F64))


def test_dot_general_c21() -> None:
    with breaks("C21"):
        dot(algorithm=ALGORITHM, precision_config=[Precision.DEFAULT, Precision.HIGHEST])


def test_dot_general_c22() -> None:
    with breaks("C22"):
        dot(algorithm=replace(ALGORITHM, lhs_component_count=0))


def test_dot_general_c23() -> None:
    with breaks("C23"):
        dot(algorithm=replace(ALGORITHM, rhs_component_count=-1))


def test_dot_general_c24() -> None:
    with breaks("C24"):
        dot(algorithm=replace(ALGORITHM, num_primitive_operations=0))


@pytest.mark.parametrize(
    "changes",
    [
        {"num_primitive_operations": 2},
        {"lhs_component_count": 3},
        {"allow_imprecise_accumulation": True},
        {"lhs_precision_type": F32},
        {"accumulation_type": F64},
    ],
)
def test_dot_general_has_an_algorithm_of_some_hardware(changes) -> None:
    with pytest.raises(VerificationError, match="not one of any known hardware"):
        dot(algorithm=replace(ALGORITHM, **changes))


def test_dot_general_of_eight_bits_may_be_imprecise() -> None:
    dot(algorithm=DotAlgorithm(FLOATS["f8E4M3FN"], FLOATS["f8E5M2"], F32, 1, 1, 1, True))
