"""The table of scalar operations: types, costs, and errors in operands."""

from __future__ import annotations

import pytest

from trivium.compiler.kernel import DType
from trivium.compiler.kernel.ops import OPERATIONS, SPECIAL, SPECIAL_ARITY, cost, flops, is_transcendental, result_type
from trivium.ir.errors import CompileError


@pytest.mark.parametrize(
    ("name", "attributes", "operands", "expected"),
    [
        ("add", {}, ("bf16", "bf16"), "bf16"),
        ("is_finite", {}, ("f64",), "i1"),
        ("compare", {"direction": "LT"}, ("i8", "i8"), "i1"),
        ("select", {}, ("i1", "f32", "f32"), "f32"),
        ("convert", {"dtype": "i4"}, ("f32",), "i4"),
        ("bitcast_convert", {"dtype": "i32"}, ("f32",), "i32"),
        ("reduce_precision", {"exponent_bits": 5, "mantissa_bits": 10}, ("f32",), "f32"),
    ],
)
def test_types_of_results(name: str, attributes: dict, operands: tuple[DType, ...], expected: str) -> None:
    assert result_type(name, attributes, operands) == expected


@pytest.mark.parametrize(
    ("name", "attributes", "operands", "message"),
    [
        ("add", {}, ("f32",), "has 1 operands, expected 2"),
        ("add", {}, ("f32", "f64"), "operands have types f32, f64, expected equal types"),
        ("not", {}, ("f32",), "operands have type f32, expected one of"),
        ("compare", {}, ("f32", "f32"), "has direction None"),
        ("compare", {"direction": "LT"}, ("f32", "i32"), "operands have types f32 and i32"),
        ("select", {}, ("i8", "f32", "f32"), "the predicate has type i8, expected i1"),
        ("select", {}, ("i1", "f32", "f64"), "branches have types f32 and f64"),
        ("convert", {"dtype": "f33"}, ("f32",), "has dtype f33"),
        ("bitcast_convert", {"dtype": "f64"}, ("f32",), "from f32 to f64, expected equal widths"),
        ("reduce_precision", {}, ("f32",), "expected exponent_bits and mantissa_bits"),
        ("reduce_precision", {}, ("i32",), "the operand has type i32, expected a float"),
        ("select", {}, ("i1",), "has 1 operands, expected 3"),
        ("frobnicate", {}, (), "is not a scalar operation of kernels"),
    ],
)
def test_wrong_operands_are_named(name: str, attributes: dict, operands: tuple[DType, ...], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        result_type(name, attributes, operands)


def test_integers_have_their_own_cost_where_it_differs() -> None:
    assert cost("divide", DType("f32")) < cost("divide", DType("i32"))
    assert cost("add", DType("f32")) == cost("add", DType("i32")) == 1
    assert {cost(name, DType("f32")) for name in SPECIAL} == {1.0}


def test_reports_count_a_fused_product_twice_and_functions_apart() -> None:
    assert (flops("fma"), flops("add"), flops("compare")) == (2, 1, 1)
    assert is_transcendental("exponential")
    assert not is_transcendental("add")
    assert not is_transcendental("select")


def test_tables_agree() -> None:
    assert SPECIAL.keys() == SPECIAL_ARITY.keys()
    assert not SPECIAL.keys() & OPERATIONS.keys()
    assert all(operation.commutative or not operation.associative for operation in OPERATIONS.values())
