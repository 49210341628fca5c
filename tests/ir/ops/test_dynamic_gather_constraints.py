"""The constraints of gathers and convolutions whose sizes are operands, each broken once."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tests.ir.ops.constraints import breaks, value
from tests.ir.ops.dynamic_operands import TWO, constant, run
from trivium.ir.core import Value
from trivium.ir.errors import ConstraintKind
from trivium.ir.ops import (
    ConvDimensionNumbers,
    DynamicConv,
    DynamicGather,
    GatherDimensionNumbers,
    Precision,
)
from trivium.ir.types import F64, I32, I64, TOKEN, tensor

RUN_TIME = ConstraintKind.RUN_TIME
X = np.zeros((2, 3), np.float32)


ROWS = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1)


def gather(operand: Value | None = None, indices: Value | None = None, sizes: Value = TWO, result: Any = None) -> None:
    operands = operand or value(4, 5), indices or value(3, 1, of=I32), sizes
    DynamicGather(*operands, ROWS, result=result or tensor(3, None))


def test_dynamic_gather_i1() -> None:
    with breaks("I1"):
        gather(Value(TOKEN))


def test_dynamic_gather_i2() -> None:
    with breaks("I2"):
        gather(indices=value(3, 1))


def test_dynamic_gather_i3() -> None:
    with breaks("I3"):
        gather(sizes=value(2))


def numbered(**changed: Any) -> None:
    DynamicGather(value(4, 5), value(3, 1, of=I32), TWO, dataclasses.replace(ROWS, **changed), result=tensor(3, None))


def test_dynamic_gather_c1() -> None:
    with breaks("C1"):
        gather(value(4, 5, 6))


def test_dynamic_gather_c2() -> None:
    with breaks("C2"):
        numbered(index_vector_dim=3)


def test_dynamic_gather_c3() -> None:
    with breaks("C3"):
        gather(indices=value(3, 2, of=I32))


def test_dynamic_gather_c4() -> None:
    with breaks("C4"):
        numbered(offset_dims=(1, 1), collapsed_slice_dims=())


def test_dynamic_gather_c5() -> None:
    with breaks("C5"):
        numbered(offset_dims=(2,))


def test_dynamic_gather_c6() -> None:
    with breaks("C6"):
        numbered(offset_dims=(), collapsed_slice_dims=(1, 0))
    with breaks("C6"):
        numbered(offset_dims=(), collapsed_slice_dims=(0, 0))


def test_dynamic_gather_c7() -> None:
    with breaks("C7"):
        numbered(collapsed_slice_dims=(2,))


def test_dynamic_gather_c8() -> None:
    with breaks("C8"):
        gather(sizes=constant(2, 5))
    with breaks("C8", RUN_TIME):
        run(DynamicGather, X, np.int32([[1]]), np.int64([2, 3]), dimension_numbers=ROWS, result=tensor(1, None))


def test_dynamic_gather_c9() -> None:
    with breaks("C9"):
        DynamicGather(
            value(4, 5),
            value(3, 2, of=I32),
            TWO,
            dataclasses.replace(ROWS, start_index_map=(0, 0)),
            result=tensor(3, None),
        )


def test_dynamic_gather_c10() -> None:
    with breaks("C10"):
        numbered(start_index_map=(2,))


def test_dynamic_gather_c11() -> None:
    with breaks("C11"):
        gather(sizes=value(3, of=I64))


def test_dynamic_gather_c12() -> None:
    with breaks("C12"):
        gather(sizes=constant(1, 6))
    with breaks("C12", RUN_TIME):
        run(DynamicGather, X, np.int32([[1]]), np.int64([1, 4]), dimension_numbers=ROWS, result=tensor(1, None))


def test_dynamic_gather_c13() -> None:
    with breaks("C13"):
        gather(result=tensor(4, None))
    with breaks("C13"):
        gather(sizes=constant(1, 5), result=tensor(3, 4))


def test_dynamic_gather_c14() -> None:
    with breaks("C14"):
        gather(result=tensor(3, None, of=F64))


PLAIN = ConvDimensionNumbers(0, 1, (2,), 1, 0, (2,), 0, 1, (2,))


def conv(
    lhs: Value | None = None,
    rhs: Value | None = None,
    padding: Value | None = None,
    batch_group_count: int = 1,
    result: Any = None,
    **more: Any,
) -> None:
    operands = lhs or value(1, 1, 8), rhs or value(1, 1, 3), padding or value(1, 2, of=I64)
    named = {"dimension_numbers": PLAIN, "feature_group_count": 1, "batch_group_count": batch_group_count, **more}
    DynamicConv(*operands, **named, result=result or tensor(None, None, None))


def test_dynamic_conv_i3() -> None:
    with breaks("I3"):
        conv(padding=value(1, 2))
    with breaks("I3"):
        conv(padding=value(1, None, of=I64))


def test_dynamic_conv_c1() -> None:
    with breaks("C1"):
        conv(value(1, 1, 8, 8))


def test_dynamic_conv_c4() -> None:
    with breaks("C4"):
        conv(padding=value(2, 2, of=I64))


def test_dynamic_conv_c25() -> None:
    with breaks("C25"):
        conv(result=tensor(2, 1, None))
    with breaks("C25"):
        conv(padding=constant([0, 0]), result=tensor(1, 1, 7))


def test_dynamic_conv_c9() -> None:
    with breaks("C9"):
        conv(window_reversal=(True, False))


def test_dynamic_conv_c22() -> None:
    with breaks("C22"):
        conv(batch_group_count=0)


def test_dynamic_conv_c24() -> None:
    with breaks("C24"):
        conv(precision_config=(Precision.HIGH,))


def test_dynamic_conv_c26() -> None:
    with breaks("C26"):
        conv(result=tensor(1, 1))


def test_dynamic_conv_c27() -> None:
    with breaks("C27"):
        conv(rhs=value(1, 1, 3, of=F64))
