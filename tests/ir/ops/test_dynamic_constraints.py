"""The constraints of ops whose sizes are operands, each broken once."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ir.ops.constraints import breaks, value
from tests.ir.ops.dynamic_operands import TWO, constant, run
from trivium.ir.core import Value
from trivium.ir.errors import ConstraintKind
from trivium.ir.ops import (
    DynamicBroadcastInDim,
    DynamicIota,
    DynamicPad,
    DynamicReshape,
    GetDimensionSize,
    RealDynamicSlice,
    SetDimensionSize,
)
from trivium.ir.types import F64, I1, I32, I64, INDEX, TOKEN, TensorType, Type, tensor

RUN_TIME = ConstraintKind.RUN_TIME
X = np.zeros((2, 3), np.float32)


def test_dynamic_iota_i1() -> None:
    with breaks("I1"):
        DynamicIota(value(2), 0, result=tensor(2, 3))
    DynamicIota(value(2, of=INDEX), 0, result=tensor(2, 3))


def test_dynamic_iota_o1() -> None:
    with breaks("O1"):
        DynamicIota(TWO, 0, result=tensor(2, 3, of=I1))


def test_dynamic_iota_c1() -> None:
    with breaks("C1"):
        DynamicIota(TWO, 2, result=tensor(2, 3))


def test_dynamic_iota_c2() -> None:
    with breaks("C2"):
        DynamicIota(TWO, 0, result=tensor(2, 3, 4))
    with breaks("C2"):
        DynamicIota(constant(-1), 0, result=tensor(None))
    with breaks("C2"):
        DynamicIota(constant(2, 4), 0, result=tensor(2, 3))
    with breaks("C2", RUN_TIME):
        run(DynamicIota, np.int64([2, 4]), iota_dimension=0, result=tensor(2, 3))


def test_dynamic_reshape_i1() -> None:
    with breaks("I1"):
        DynamicReshape(Value(TOKEN), TWO, result=tensor(2, 3))


def test_dynamic_reshape_i2() -> None:
    with breaks("I2"):
        DynamicReshape(value(6), value(1, 2, of=I64), result=tensor(2, 3))


def test_dynamic_reshape_c1() -> None:
    with breaks("C1"):
        DynamicReshape(value(6), TWO, result=tensor(2, 3, of=F64))


def test_dynamic_reshape_c2() -> None:
    with breaks("C2"):
        DynamicReshape(value(6), TWO, result=tensor(2, 4))
    with breaks("C2"):
        DynamicReshape(value(6), constant(2, 4), result=tensor(None, None))
    with breaks("C2", RUN_TIME):
        run(DynamicReshape, X, np.int64([2, 2]), result=tensor(None, None))


def test_dynamic_reshape_c4() -> None:
    with breaks("C4"):
        DynamicReshape(value(6), TWO, result=tensor(None))
    with breaks("C4"):
        DynamicReshape(value(6), constant(3, 2), result=tensor(2, 3))
    with breaks("C4", RUN_TIME):
        run(DynamicReshape, X, np.int64([3, 2]), result=tensor(2, 3))


def broadcast(
    operand: Value | None = None,
    output_dimensions: Value = TWO,
    dimensions: tuple[int, ...] = (1,),
    result: TensorType | None = None,
    **known: Any,
) -> None:
    DynamicBroadcastInDim(
        operand or value(3), output_dimensions, dimensions, result=result or tensor(None, None), **known
    )


def test_dynamic_broadcast_in_dim_i1() -> None:
    with breaks("I1"):
        broadcast(Value(TOKEN))


def test_dynamic_broadcast_in_dim_i2() -> None:
    with breaks("I2"):
        broadcast(output_dimensions=value(2))


def test_dynamic_broadcast_in_dim_c1() -> None:
    with breaks("C1"):
        broadcast(result=tensor(2, 3, of=I32))


def test_dynamic_broadcast_in_dim_c2() -> None:
    with breaks("C2"):
        broadcast(dimensions=(0, 1))


def test_dynamic_broadcast_in_dim_c3() -> None:
    with breaks("C3"):
        broadcast(dimensions=(2,))


def test_dynamic_broadcast_in_dim_c4() -> None:
    with breaks("C4"):
        broadcast(value(3, 3), dimensions=(1, 1))


def test_dynamic_broadcast_in_dim_c5() -> None:
    with breaks("C5"):
        broadcast(result=tensor(3, 4))
    with breaks("C5"):
        DynamicBroadcastInDim(value(3), constant(2, 4), (1,), result=tensor(2, None))
    with breaks("C5", RUN_TIME):
        run(DynamicBroadcastInDim, X[0], np.int64([2, 4]), broadcast_dimensions=(1,), result=tensor(2, None))


def test_dynamic_broadcast_in_dim_c7() -> None:
    with breaks("C7"):
        broadcast(output_dimensions=value(3, of=I64))
    with breaks("C7"):
        DynamicBroadcastInDim(value(3), constant(3, 3), (1,), result=tensor(2, 3))
    with breaks("C7", RUN_TIME):
        run(DynamicBroadcastInDim, X[0], np.int64([3, 3]), broadcast_dimensions=(1,), result=tensor(2, 3))


def test_dynamic_broadcast_in_dim_c8() -> None:
    with breaks("C8"):
        broadcast(known_expanding_dimensions=(0,), known_nonexpanding_dimensions=(0,))


def test_dynamic_broadcast_in_dim_c9() -> None:
    with breaks("C9"):
        broadcast(known_expanding_dimensions=(1,))


def test_dynamic_broadcast_in_dim_c10() -> None:
    with breaks("C10"):
        broadcast(known_nonexpanding_dimensions=(-1,))


def test_get_dimension_size_i1() -> None:
    with breaks("I1"):
        GetDimensionSize(Value(TOKEN), 0)


def test_get_dimension_size_o1() -> None:
    with breaks("O1"):
        GetDimensionSize(value(3), 0, result=tensor(of=I64))


def test_get_dimension_size_c1() -> None:
    with breaks("C1"):
        GetDimensionSize(value(3), 1)


def set_size(operand: Value | None = None, size: Value | None = None, dimension: int = 0, **results: Any) -> None:
    SetDimensionSize(operand or value(3, 4), size or value(of=I32), dimension, **results)


def test_set_dimension_size_i1() -> None:
    with breaks("I1"):
        set_size(Value(TOKEN))


def test_set_dimension_size_i2() -> None:
    with breaks("I2"):
        set_size(size=value(of=I64))


def test_set_dimension_size_c1() -> None:
    with breaks("C1"):
        set_size(dimension=2)


def test_set_dimension_size_c2() -> None:
    with breaks("C2"):
        set_size(result=tensor(None, 4, of=F64))


def test_set_dimension_size_c3() -> None:
    with breaks("C3"):
        set_size(result=tensor(3, 5))
    with breaks("C3"):
        set_size(result=tensor(5, 4))


def pad(
    operand: Value | None = None,
    padding_value: Value | None = None,
    low: Value = TWO,
    high: Value = TWO,
    interior: Value = TWO,
    result: Type | None = None,
) -> None:
    operands = operand or value(3, 4), padding_value or value(), low, high, interior
    DynamicPad(*operands, result=result or tensor(None, None))


def test_dynamic_pad_i1() -> None:
    with breaks("I1"):
        pad(Value(TOKEN))


def test_dynamic_pad_i2() -> None:
    with breaks("I2"):
        pad(padding_value=value(1))


def test_dynamic_pad_i3() -> None:
    with breaks("I3"):
        pad(low=value(2))


def test_dynamic_pad_c1() -> None:
    with breaks("C1"):
        pad(padding_value=value(of=F64))


def test_dynamic_pad_c2() -> None:
    with breaks("C2"):
        pad(low=value(3, of=I64))


def test_dynamic_pad_c3() -> None:
    with breaks("C3", RUN_TIME):
        run(DynamicPad, X[0], np.float32(0), *(np.int64([edge]) for edge in (0, 0, -1)), result=tensor(None))
    with breaks("C3"):
        pad(interior=constant(-1, 0))


def test_dynamic_pad_c4() -> None:
    with breaks("C4"):
        pad(result=tensor(None))
    with breaks("C4"):
        pad(low=constant(1, 1), high=constant(0, 0), interior=constant(0, 0), result=tensor(4, 4))


def real_slice(operand: Value | None = None, start: Value = TWO, limit: Value = TWO, result: Any = None) -> None:
    RealDynamicSlice(operand or value(3, 4), start, limit, TWO, result=result or tensor(None, None))


def test_real_dynamic_slice_i1() -> None:
    with breaks("I1"):
        real_slice(Value(TOKEN))


def test_real_dynamic_slice_i2() -> None:
    with breaks("I2"):
        real_slice(start=value(2))


def test_real_dynamic_slice_c1() -> None:
    with breaks("C1"):
        real_slice(limit=value(3, of=I64))


def test_real_dynamic_slice_c2() -> None:
    with breaks("C2"):
        real_slice(limit=value(2, of=I32))


def test_real_dynamic_slice_c3() -> None:
    with breaks("C3"):
        real_slice(result=tensor(2, 2, of=F64))


def test_real_dynamic_slice_c4() -> None:
    with breaks("C4"):
        real_slice(result=tensor(2))
