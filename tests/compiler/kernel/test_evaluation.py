"""The results of scalar operations on arrays."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.compiler.kernel import Apply, DType, Register
from trivium.compiler.kernel.evaluation import evaluate, named
from trivium.compiler.kernel.ops import OPERATIONS
from trivium.ir.errors import CompileError


def apply(op: str, result: str, *arrays: np.ndarray, **attributes: object) -> np.ndarray:
    return evaluate(Apply(op, (), attributes, Register(DType(result))), list(arrays))


def test_conversions_saturate_and_round_toward_zero() -> None:
    x = np.array([1.9, -1.9, 300, -300, np.nan], np.float32)
    assert apply("convert", "i8", x, dtype="i8").tolist() == [1, -1, 127, -128, 0]
    assert apply("convert", "i1", x, dtype="i1").tolist() == [True] * 5


def test_bits_stay() -> None:
    x = np.array([1.0, -0.0], np.float32)
    assert apply("bitcast_convert", "i32", x, dtype="i32").tolist() == [0x3F800000, -0x80000000]


@pytest.mark.parametrize(
    ("direction", "total_order", "expected"),
    [("LT", False, [True, False, False]), ("LT", True, [True, True, True]), ("NE", False, [True, False, True])],
)
def test_comparisons_by_both_orders(direction: str, total_order: bool, expected: list[bool]) -> None:
    """NaN is unequal to all numbers, and above them in the total order, in which -0 is below 0."""
    x, y = np.array([1.0, -0.0, 1.0], np.float32), np.array([2.0, 0.0, np.nan], np.float32)
    attributes = {"direction": direction, **({"total_order": True} if total_order else {})}
    assert apply("compare", "i1", x, y, **attributes).tolist() == expected


def test_select_and_reduce_precision() -> None:
    x, y = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)
    assert apply("select", "f32", np.array([True, False]), x, y).tolist() == [1, 4]
    short = apply("reduce_precision", "f32", np.array([1.1], np.float32), exponent_bits=8, mantissa_bits=2)
    assert short.tolist() == [1.0]


def test_fma_is_rounded_once() -> None:
    a = np.array([1 + 2**-12, np.inf, 2.0], np.float32)
    b = np.array([1 - 2**-12, 0.0, -0.0], np.float32)
    c = np.array([-1.0, 1.0, -0.0], np.float32)
    with np.errstate(invalid="ignore"):
        result = named("fma", DType("f32"), [a, b, c])
    assert result[0] == np.float32(-(2.0**-24))
    assert np.isnan(result[1])
    assert np.signbit(result[2])


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_has_a_meaning(name: str) -> None:
    operation = OPERATIONS[name]
    kind = next(kind for kind in ("f32", "i32", "i1") if kind in operation.types)
    one = np.ones(3, {"f32": np.float32, "i32": np.int32, "i1": np.bool_}[kind])
    with np.errstate(all="ignore"):
        result = named(name, operation.result or DType(kind), [one] * operation.arity)
    assert result.shape == (3,)


def test_others_are_refused() -> None:
    with pytest.raises(CompileError, match="'frobnicate' is not a scalar operation of kernels"):
        named("frobnicate", DType("f32"), [])
