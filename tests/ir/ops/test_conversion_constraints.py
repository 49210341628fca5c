"""Comparison, selection, conversion, and parts of complex numbers: what their constraints refuse."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.ops.constraints import breaks, value
from tests.ir.quantized import per_tensor
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.ops import ComparisonDirection, ComparisonType
from trivium.ir.types import BF16, C64, C128, F32, F64, I1, I8, I32, TOKEN, tensor

LT = ComparisonDirection.LT


def test_compare_i1():
    with breaks("I1"):
        ops.Compare(Value(TOKEN), value(2), LT, result=tensor(2, of=I1))


def test_compare_i2():
    with breaks("I2"):
        ops.Compare(value(2), Value(TOKEN), LT)


def test_compare_c1():
    with breaks("C1"):
        ops.Compare(value(2), value(2, of=F64), LT)


def test_compare_c2():
    with breaks("C2"):
        ops.Compare(value(2), value(3), LT)


@pytest.mark.parametrize(
    ("element", "compare_type"),
    [(I32, "UNSIGNED"), (I1, "SIGNED"), (F32, "SIGNED"), (C64, "TOTALORDER"), (per_tensor(), "SIGNED")],
)
def test_compare_c3(element, compare_type):
    with breaks("C3"):
        ops.Compare(value(2, of=element), value(2, of=element), LT, compare_type=ComparisonType(compare_type))


@pytest.mark.parametrize("compare_type", [ComparisonType.FLOAT, ComparisonType.TOTALORDER])
def test_quantized_elements_compare_as_floats(compare_type):
    kind = tensor(3, of=per_tensor())

    def body(builder, lhs, rhs):
        return [builder.add(ops.Compare(lhs, rhs, LT, compare_type=compare_type))]

    stored = np.array([-3, 0, 5], np.int8), np.array([2, 0, -5], np.int8)
    (less,) = evaluate(Module.build(functions=[Function.build("main", [kind, kind], body)]), *stored)
    assert less.tolist() == [True, False, False]


def test_compare_o1():
    with breaks("O1"):
        ops.Compare(value(2), value(2), LT, result=tensor(2))


def test_select_i1():
    with breaks("I1"):
        ops.Select(value(2, of=I32), value(2), value(2))


def test_select_i2():
    with breaks("I2"):
        ops.Select(value(2, of=I1), Value(TOKEN), Value(TOKEN), result=TOKEN)


def test_select_c1():
    with breaks("C1"):
        ops.Select(value(3, of=I1), value(2), value(2))
    with breaks("C1"):
        ops.Select(value(1, of=I1), value(2), value(2))


def test_select_c2():
    with breaks("C2"):
        ops.Select(value(of=I1), value(2), value(2, of=F64))


def test_clamp_i1():
    with breaks("I1"):
        ops.Clamp(Value(TOKEN), value(2), value())


def test_clamp_i2():
    with breaks("I2"):
        ops.Clamp(value(), Value(TOKEN), value())


def test_clamp_i3():
    with breaks("I3"):
        ops.Clamp(value(), value(2), Value(TOKEN))


def test_clamp_c1():
    with breaks("C1"):
        ops.Clamp(value(1), value(2), value())


def test_clamp_c2():
    with breaks("C2"):
        ops.Clamp(value(), value(2), value(3))


def test_clamp_c3():
    with breaks("C3"):
        ops.Clamp(value(), value(2), value(of=F64))


def test_clamp_c4():
    with breaks("C4"):
        ops.Clamp(value(), value(2), value(), result=tensor(3))


def test_is_finite_i1():
    with breaks("I1"):
        ops.IsFinite(value(2, of=I32))


def test_is_finite_c1():
    with breaks("C1"):
        ops.IsFinite(value(2), result=tensor(3, of=I1))


def test_is_finite_o1():
    with breaks("O1"):
        ops.IsFinite(value(2), result=tensor(2))


def test_convert_i1():
    with breaks("I1"):
        ops.Convert(Value(TOKEN), result=tensor(2))


def test_convert_c1():
    with breaks("C1"):
        ops.Convert(value(2), result=tensor(3, of=I32))


def test_bitcast_convert_i1():
    with breaks("I1"):
        ops.BitcastConvert(Value(TOKEN), result=tensor(2))


def test_bitcast_convert_o1():
    with breaks("O1"):
        ops.BitcastConvert(value(2), result=TOKEN)


@pytest.mark.parametrize(
    ("operand", "result"),
    [
        (tensor(2), tensor(3, of=I32)),
        (tensor(2), tensor(2, of=I8)),
        (tensor(2), tensor(2, 3, of=I8)),
        (tensor(4, 3, of=I8), tensor(4)),
        (tensor(4, of=I8), tensor(4, 1)),
        (tensor(8, of=I32), tensor()),
    ],
)
def test_bitcast_convert_c1(operand, result):
    with breaks("C1"):
        ops.BitcastConvert(Value(operand), result=result)


def test_bitcast_convert_c2():
    with breaks("C2"):
        ops.BitcastConvert(value(2, of=C64), result=tensor(2, of=F64))


def test_reduce_precision_i1():
    with breaks("I1"):
        ops.ReducePrecision(value(2, of=I32), 5, 10)


def test_reduce_precision_c1():
    with breaks("C1"):
        ops.ReducePrecision(value(2), 5, 10, result=tensor(2, of=BF16))


def test_reduce_precision_c2():
    with breaks("C2"):
        ops.ReducePrecision(value(2), 0, 10)


def test_reduce_precision_c3():
    with breaks("C3"):
        ops.ReducePrecision(value(2), 5, -1)


def test_complex_i1():
    with breaks("I1"):
        ops.Complex(value(2, of=BF16), value(2, of=BF16))


def test_complex_i2():
    with breaks("I2"):
        ops.Complex(value(2), value(2, of=BF16))


def test_complex_c1():
    with breaks("C1"):
        ops.Complex(value(2), value(2, of=F64))


def test_complex_c2():
    with breaks("C2"):
        ops.Complex(value(2), value(2), result=tensor(3, of=C64))


def test_complex_c3():
    with breaks("C3"):
        ops.Complex(value(2), value(2), result=tensor(2, of=C128))


def test_real_i1():
    with breaks("I1"):
        ops.Real(value(2, of=I32))


def test_real_c1():
    with breaks("C1"):
        ops.Real(value(2, of=C64), result=tensor(3))


def test_real_c2():
    with breaks("C2"):
        ops.Real(value(2, of=C64), result=tensor(2, of=F64))


def test_imag_i1():
    with breaks("I1"):
        ops.Imag(value(2, of=I32))


def test_imag_c1():
    with breaks("C1"):
        ops.Imag(value(2, of=C64), result=tensor(3))


def test_imag_c2():
    with breaks("C2"):
        ops.Imag(value(2), result=tensor(2, of=C64))
