"""The constraints of quantized elements: those of the two ops that convert to and from them, and those of other ops."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.ir.ops.constraints import breaks, value
from tests.ir.ops.records import collect
from tests.ir.quantized import per_axis, per_tensor
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import ExecutionError, VerificationError
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import ConvDimensionNumbers, Convolution, DotDimensionNumbers, DotGeneral, DynamicConv
from trivium.ir.types import (
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    TOKEN,
    PerTensorType,
    SubChannelType,
    storage_range,
    tensor,
)

QUANTIZED = per_tensor()
OTHER = per_tensor(0.25, -3)
BLOCKS = SubChannelType(I8, F32, *storage_range(I8), ((0, 1),), (2, 1), (0.5, 0.25), (0, 0))


def test_uniform_quantize_i1():
    for wrong in (I8, BLOCKS):
        with breaks("I1"):
            ops.UniformQuantize(value(2, 2, of=wrong), result=tensor(2, 2, of=QUANTIZED))


def test_uniform_quantize_o1():
    for wrong in (F32, BLOCKS):
        with breaks("O1"):
            ops.UniformQuantize(value(2, 2), result=tensor(2, 2, of=wrong))


def test_uniform_quantize_c1():
    with breaks("C1"):
        ops.UniformQuantize(value(2), result=tensor(3, of=QUANTIZED))


def test_uniform_quantize_c2():
    for wrong in (F16, per_tensor(number=F16)):
        with breaks("C2"):
            ops.UniformQuantize(value(2, of=wrong), result=tensor(2, of=QUANTIZED))
    ops.UniformQuantize(value(2, of=per_tensor(storage=I16)), result=tensor(2, of=QUANTIZED))


def test_uniform_dequantize_i1():
    for wrong in (F32, BLOCKS):
        with breaks("I1"):
            ops.UniformDequantize(value(2, 2, of=wrong), result=tensor(2, 2))


def test_uniform_dequantize_c1():
    with breaks("C1"):
        ops.UniformDequantize(value(2, of=QUANTIZED), result=tensor(3))


def test_uniform_dequantize_c2():
    with breaks("C2"):
        ops.UniformDequantize(value(2, of=QUANTIZED), result=tensor(2, of=F64))


# Any op


def test_checks_refuse_or_accept_any_quantized_type():
    kinds = [tensor(of=per_axis()), tensor(2, 3, of=per_axis(1)), tensor(None, of=per_axis(5)), tensor(2, 3, of=OTHER)]
    for record in {record.op: record for record in collect()}.values():
        (op, *_) = record.module().main.body.block
        for value_ in (*op.operands, *op.results) if op.CHECK is not None else ():
            kept = value_.type
            for value_.type in (*kinds, tensor(2, 2, of=BLOCKS)):
                with suppress(VerificationError):
                    op.CHECK(op)
            value_.type = kept


def test_arrays_have_an_element_for_each_scale():
    kind = tensor(None, of=per_axis())
    module = Module.build(functions=[Function.build("main", [kind], lambda b, x: b.add(ops.UniformDequantize(x)))])
    assert evaluate(module, np.array([2, 4], np.int8))[0].tolist() == [1.0, 1.0]
    for shape in (1, 3):
        with pytest.raises(ExecutionError, match="expected a scale for each slice"):
            evaluate(module, np.zeros(shape, np.int8))


def test_parameters_fit_the_tensor():
    for wrong in (per_axis(1), per_axis(0, (0.5,) * 3), BLOCKS, PerTensorType(I8, F32, -10, 10, 0.5, 11)):
        kind = tensor(2, of=wrong) if wrong is not BLOCKS else tensor(2, 2, of=wrong)
        with breaks("I1"):
            ops.Add(Value(kind), Value(kind), result=kind)


@pytest.mark.parametrize("op", [ops.Abs, ops.Negate, ops.Sine, ops.Floor, ops.Sqrt, ops.IsFinite, ops.Iota])
def test_most_ops_take_one_scale_for_all(op):
    kind = tensor(2, of=per_axis())
    with breaks("O1" if op is ops.Iota else "I1"):
        op(0, result=kind) if op is ops.Iota else op(Value(kind))
    op(0, result=tensor(2, of=OTHER)) if op is ops.Iota else op(value(2, of=OTHER))


def test_parameters_of_a_result_may_be_others():
    operand, result = value(2, of=QUANTIZED), tensor(2, of=OTHER)
    assert ops.Abs(operand, result=result).result.type is result
    ops.Multiply(operand, Value(result), result=tensor(2, of=per_tensor(4.0)))
    for wrong in (per_tensor(storage=I16), per_tensor(number=F16), PerTensorType(I8, F32, -100, 100, 0.5, 0), F32):
        with breaks("C1"):
            ops.Negate(operand, result=tensor(2, of=wrong))


def test_convert_o1():
    with breaks("I1"):
        ops.Convert(value(2, of=QUANTIZED), result=tensor(2))
    with breaks("O1"):
        ops.Convert(value(2), result=tensor(2, of=QUANTIZED))


def test_quantized_constants_and_bits_are_those_of_the_stored_integers():
    kind = tensor(2, of=per_axis())
    assert ops.Constant(np.array([1, 2], np.int8), result=kind).result.type is kind
    with breaks("C1"):
        ops.Constant(np.array([1, 2], np.int16), result=kind)
    ops.BitcastConvert(Value(kind), result=tensor(2, of=I8))
    with breaks("C1"):
        ops.BitcastConvert(Value(kind), result=tensor(2, of=I16))


def test_ops_that_move_elements_keep_their_parameters():
    operand = value(2, of=QUANTIZED)
    with breaks("C1"):
        ops.Reverse(operand, (0,), result=tensor(2, of=OTHER))
    with breaks("C1"):
        ops.Slice(operand, (0,), (1,), (1,), result=tensor(1, of=OTHER))
    with breaks("C1"):
        ops.Concatenate([operand, value(2, of=OTHER)], 0)


def test_collective_permute_i1():
    with breaks("I1"):
        ops.CollectivePermute(value(2, of=per_axis()), ())


def test_cross_replica_sum_i1():
    with breaks("I1"):
        ops.CrossReplicaSum(value(2, of=per_axis()), ())


def test_einsum_i1():
    with breaks("I1"):
        ops.Einsum(value(2, of=per_axis()), value(2, of=per_axis()), "a,a->a", result=tensor(2, of=per_axis()))


def test_einsum_i2():
    with breaks("I2"):
        ops.Einsum(value(2), value(2, of=per_axis()), "a,a->a", result=tensor(2))


def test_unary_einsum_i1():
    with breaks("I1"):
        ops.UnaryEinsum(value(2, of=per_axis()), "a->a", result=tensor(2, of=per_axis()))


def test_collective_broadcast_i1():
    with breaks("I1"):
        ops.CollectiveBroadcast([value(2, of=per_axis())], ())


# Sums


def add(lhs: Any, rhs: Any, result: Any) -> None:
    ops.Add(value(2, 2, of=lhs), value(2, 2, of=rhs), result=tensor(2, 2, of=result))


def test_add_i1():
    with breaks("I1"):
        ops.Add(Value(TOKEN), value(2), result=tensor(2))


def test_add_i2():
    with breaks("I2"):
        ops.Add(value(2), Value(TOKEN), result=tensor(2))


def test_add_c1():
    with breaks("C1"):
        ops.Add(value(2), value(3), result=tensor(2))
    with breaks("C1"):
        add(F32, F32, F64)


def test_add_c2():
    for wrong in ((QUANTIZED, F32, QUANTIZED), (F32, QUANTIZED, QUANTIZED), (QUANTIZED, QUANTIZED, F32)):
        with breaks("C2"):
            add(*wrong)


def test_add_c3():
    wide = per_tensor(storage=I16)
    for wrong in ((QUANTIZED, wide, QUANTIZED), (QUANTIZED, QUANTIZED, wide)):
        with breaks("C3"):
            add(*wrong)


def test_add_c4():
    half = per_tensor(number=F16)
    for wrong in ((QUANTIZED, half, QUANTIZED), (QUANTIZED, QUANTIZED, half)):
        with breaks("C4"):
            add(*wrong)


def test_add_c5():
    for wrong in ((QUANTIZED, QUANTIZED, per_axis()), (per_axis(), QUANTIZED, QUANTIZED)):
        with breaks("C5"):
            add(*wrong)
    add(per_axis(), QUANTIZED, per_axis())


def test_add_c6():
    with breaks("C6"):
        add(per_axis(), QUANTIZED, per_axis(1))


def test_add_c7():
    with breaks("C7"):
        add(QUANTIZED, per_axis(), per_axis(1))
    add(QUANTIZED, OTHER, per_tensor(2.0))


# Products


def dot(lhs: Any, rhs: Any, result: Any) -> None:
    """Computes a product of 2x2 matrices."""
    numbers = DotDimensionNumbers((), (), (1,), (0,))
    DotGeneral(value(2, 2, of=lhs), value(2, 2, of=rhs), numbers, result=tensor(2, 2, of=result))


def convolve(lhs: Any, rhs: Any, result: Any, op: Any = Convolution) -> None:
    """Computes a convolution without spatial dimensions: a product of 2x2 matrices."""
    numbers = ConvDimensionNumbers(0, 1, (), 0, 1, (), 0, 1, ())
    more = {"dimension_numbers": numbers, "feature_group_count": 1, "batch_group_count": 1}
    if op is DynamicConv:
        more["padding"] = value(0, 2, of=I64)
    op(value(2, 2, of=lhs), value(2, 2, of=rhs), result=tensor(2, 2, of=result), **more)


both = pytest.mark.parametrize("convolve", [convolve, partial(convolve, op=DynamicConv)])


WIDE = per_tensor(0.25, storage=I32)


def refuse_partly_quantized(label: str, multiply: Any) -> None:
    for wrong in ((QUANTIZED, F32, QUANTIZED), (QUANTIZED, QUANTIZED, F32), (F32, QUANTIZED, QUANTIZED)):
        with breaks(label):
            multiply(*wrong)


def refuse_other_expressed_types(label: str, multiply: Any) -> None:
    half = per_tensor(number=F16)
    for wrong in ((half, QUANTIZED, WIDE), (QUANTIZED, QUANTIZED, per_tensor(storage=I32, number=F16))):
        with breaks(label):
            multiply(*wrong)


def refuse_other_floats(label: str, multiply: Any) -> None:
    for wrong in ((F16, QUANTIZED, F32), (F32, QUANTIZED, F16)):
        with breaks(label):
            multiply(*wrong)
    multiply(F32, QUANTIZED, F32)


def test_dot_general_c14():
    refuse_partly_quantized("C14", dot)
    with breaks("I1"):
        dot(per_axis(), QUANTIZED, WIDE)


def test_dot_general_c15():
    for wrong in (per_tensor(0.5, 1), per_axis(1, zero_points=(0, 1))):
        with breaks("C15"):
            dot(OTHER, wrong, WIDE)
    dot(OTHER, per_axis(1), WIDE)


def test_dot_general_c16():
    with breaks("C16"):
        dot(QUANTIZED, per_axis(0), WIDE)


def test_dot_general_c17():
    with breaks("C17"):
        dot(per_tensor(storage=I16), QUANTIZED, WIDE)


def test_dot_general_c18():
    refuse_other_expressed_types("C18", dot)


def test_dot_general_c19():
    with breaks("C19"):
        dot(QUANTIZED, QUANTIZED, per_axis(1, storage=I32))


def test_dot_general_c20():
    refuse_other_floats("C20", dot)


@both
def test_convolution_c28(convolve):
    refuse_partly_quantized("C28", convolve)


@both
def test_convolution_c29(convolve):
    with breaks("C29"):
        convolve(QUANTIZED, per_axis(0), WIDE)


@both
def test_convolution_c30(convolve):
    with breaks("C30"):
        convolve(QUANTIZED, per_axis(1), per_axis(0, storage=I32))
    convolve(QUANTIZED, per_axis(1), per_axis(1, storage=I32))


@both
def test_convolution_c31(convolve):
    with breaks("C31"):
        convolve(per_tensor(storage=I16), QUANTIZED, WIDE)


@both
def test_convolution_c32(convolve):
    refuse_other_expressed_types("C32", convolve)


@both
def test_convolution_c33(convolve):
    with breaks("C33"):
        convolve(QUANTIZED, QUANTIZED, per_axis(1, storage=I32))


@both
def test_convolution_c34(convolve):
    refuse_other_floats("C34", convolve)


# Movement


def test_transpose_c4():
    operand = value(2, 3, of=per_axis())
    with breaks("C4"):
        ops.Transpose(value(2, 2, of=per_axis()), (1, 0), result=tensor(2, 2, of=per_axis()))
    with breaks("C1"):
        ops.Transpose(operand, (1, 0), result=tensor(3, 2, of=per_axis(1, (0.5, 1.0))))
    ops.Transpose(operand, (1, 0), result=tensor(3, 2, of=per_axis(1)))


def test_reshape_c3():
    with breaks("C3"):
        ops.Reshape(value(2, 2, of=per_axis()), result=tensor(2, 2, of=per_axis(1)))
    with breaks("C1"):
        ops.Reshape(value(2, 2, of=per_axis()), result=tensor(2, 2, of=QUANTIZED))
    ops.Reshape(value(2, 2, of=per_axis()), result=tensor(1, 2, 2, of=per_axis(1)))


def test_dynamic_reshape_c3():
    shape = value(2, of=I32)
    with breaks("C3"):
        ops.DynamicReshape(value(2, 2, of=per_axis()), shape, result=tensor(2, 2, of=per_axis(1)))
    ops.DynamicReshape(value(2, None, of=per_axis()), shape, result=tensor(2, None, of=per_axis()))


def test_dynamic_reshape_o1():
    with breaks("O1"):
        ops.DynamicReshape(value(2), value(1, of=I32), result=TOKEN)


def test_broadcast_in_dim_c6():
    with breaks("C6"):
        ops.BroadcastInDim(value(2, of=per_axis()), (0,), result=tensor(2, 2, of=per_axis(1)))
    with breaks("C6"):
        ops.BroadcastInDim(value(1, of=per_axis(0, (0.5,))), (0,), result=tensor(2, of=per_axis()))
    ops.BroadcastInDim(value(1, of=per_axis(0, (0.5,))), (0,), result=tensor(2, of=per_axis(0, (0.5, 0.5))))
    with breaks("C1"):
        ops.BroadcastInDim(value(2, of=QUANTIZED), (0,), result=tensor(2, of=OTHER))


def test_dynamic_broadcast_in_dim_c6():
    operand, shape = value(2, of=per_axis()), value(2, of=I32)
    with breaks("C6"):
        ops.DynamicBroadcastInDim(operand, shape, (0,), result=tensor(2, 2, of=per_axis(1)))
    ops.DynamicBroadcastInDim(operand, shape, (0,), result=tensor(2, None, of=per_axis()))


def test_dynamic_broadcast_in_dim_o1():
    with breaks("O1"):
        ops.DynamicBroadcastInDim(value(2), value(1, of=I32), (0,), result=TOKEN)


def test_quantized_elements_are_compared_as_floats():
    for order in (ops.ComparisonType.FLOAT, ops.ComparisonType.TOTALORDER):
        ops.Compare(value(2, of=QUANTIZED), value(2, of=QUANTIZED), ops.ComparisonDirection.LT, compare_type=order)
    with breaks("C3"):
        signed = ops.ComparisonType.SIGNED
        ops.Compare(value(2, of=QUANTIZED), value(2, of=QUANTIZED), ops.ComparisonDirection.LT, compare_type=signed)
