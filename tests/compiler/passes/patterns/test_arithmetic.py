"""Identities of elementwise ops: each identity that is applied holds for every value, bit for bit, and those that hold
are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import names, rewritten, splat
from trivium.compiler.passes.patterns.arithmetic import ARITHMETIC
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, tensor, type_of

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn]
INTEGERS = [np.int8, np.int32, np.uint8, np.uint64, ml_dtypes.int4]
COMPLEX = [np.complex64, np.complex128]
REAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.inf, -np.inf, np.nan)
PLAIN = [ops.Add, ops.Subtract, ops.Multiply, ops.Divide, ops.Maximum, ops.Minimum, ops.Power]
X = pytest.param


def values_of(dtype: np.dtype) -> np.ndarray:
    """All values that break identities, if the type has them."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "c":
        return np.array([complex(real, imaginary) for real in REAL for imaginary in REAL]).astype(dtype)
    if dtype in [np.dtype(kind) for kind in INTEGERS]:
        unsigned = dtype.kind == "u"
        return np.array([0, 1, 2, 3, 7] if unsigned else [0, 1, 2, -1, -3, 7, -8]).astype(dtype)
    return np.array(REAL).astype(dtype)


def binary(op: type, dtype: np.dtype, number: complex, left: bool):
    kind = type_of(values_of(dtype))

    def body(b, x: Value) -> Value:
        constant = splat(b, number, kind)
        return b.add(op(constant, x) if left else op(x, constant))

    return program_of([kind], body)


def cases() -> Iterator:
    for dtype in map(np.dtype, [*FLOATS, *INTEGERS, *COMPLEX]):
        for op in PLAIN:
            for left in (False, True):
                yield X(dtype, op, left, id=f"{dtype.name}-{op.__name__}-{'left' if left else 'right'}")


@pytest.mark.parametrize(("dtype", "op", "left"), list(cases()))
def test_with_a_constant(dtype: np.dtype, op: type, left: bool) -> None:
    """For any constant and any values."""
    x = values_of(dtype)
    for number in x:
        rewritten(binary(op, x.dtype, number, left), ARITHMETIC, [x])


@pytest.mark.parametrize(
    ("dtype", "op", "number"),
    [
        X(np.float32, ops.Add, -0.0), X(np.float32, ops.Subtract, 0.0), X(np.float32, ops.Multiply, 1),
        X(np.float32, ops.Divide, 1), X(np.float32, ops.Maximum, -np.inf), X(np.float32, ops.Minimum, np.inf),
        X(np.float32, ops.Power, 1), X(np.int32, ops.Add, 0), X(np.int32, ops.Subtract, 0),
        X(np.int32, ops.Multiply, 0), X(np.uint8, ops.Divide, 1), X(ml_dtypes.bfloat16, ops.Add, -0.0),
    ],
)  # fmt: skip
def test_what_vanishes(dtype: type, op: type, number: float) -> None:
    x = values_of(np.dtype(dtype))
    assert names(rewritten(binary(op, x.dtype, number, left=False), ARITHMETIC, [x])) == []


@pytest.mark.parametrize(
    ("dtype", "op", "number"),
    [
        X(np.float32, ops.Add, 0.0), X(np.float32, ops.Subtract, -0.0), X(np.float32, ops.Multiply, 0),
        X(np.float32, ops.Multiply, -1), X(np.float32, ops.Maximum, np.inf), X(np.float32, ops.Divide, 2),
        X(np.complex64, ops.Add, -0.0), X(np.complex64, ops.Subtract, 0), X(np.complex64, ops.Multiply, 1),
        X(np.complex64, ops.Power, 1), X(np.complex64, ops.Power, 2), X(np.int32, ops.Maximum, 0),
    ],
)  # fmt: skip
def test_what_stays(dtype: type, op: type, number: float) -> None:
    x = values_of(np.dtype(dtype))
    before = binary(op, x.dtype, number, left=False)
    assert names(rewritten(before, ARITHMETIC, [x])) == names(before)


def test_a_square_is_a_product() -> None:
    x = values_of(np.dtype(np.float32))
    assert names(rewritten(binary(ops.Power, x.dtype, 2, left=False), ARITHMETIC, [x])) == ["multiply"]


def test_nothing_is_swapped_where_the_order_matters() -> None:
    x = values_of(np.dtype(np.float32))
    for op in (ops.Subtract, ops.Divide, ops.Power):
        assert names(rewritten(binary(op, x.dtype, 1, left=True), ARITHMETIC, [x])) == [op.NAME.rpartition(".")[2]]


BITS, P = np.array([False, True]), np.array([True, False])
FEW = np.array([np.nan, -0.0], np.float32)
BOOLEANS: dict[str, tuple[Callable, list[np.ndarray], list[str]]] = {
    "x and true": (lambda b, x: ops.And(x, splat(b, True, x.type)), [BITS], []),
    "x and false": (lambda b, x: ops.And(splat(b, False, x.type), x), [BITS], []),
    "x or true": (lambda b, x: ops.Or(x, splat(b, True, x.type)), [BITS], []),
    "x or x": (lambda b, x: ops.Or(x, x), [np.int32([5, -5])], []),
    "x xor x": (lambda b, x: ops.Xor(x, x), [np.int32([5, -5])], ["xor"]),
    "integer and one": (lambda b, x: ops.And(x, splat(b, 1, x.type)), [np.int32([5, 4])], ["and"]),
    "not not": (lambda b, x: ops.Not(b.add(ops.Not(x))), [np.int8([5, -128])], []),
    "- -": (lambda b, x: ops.Negate(b.add(ops.Negate(x))), [FEW], []),
    "- not": (lambda b, x: ops.Negate(b.add(ops.Not(x))), [np.int8([5, -128])], ["not", "negate"]),
    "b != 0": (
        lambda b, x: ops.Compare(
            b.add(ops.Convert(x, result=tensor(2))), splat(b, 0, tensor(2)), ops.ComparisonDirection.NE
        ), [BITS], [],
    ),
    "b == 0": (
        lambda b, x: ops.Compare(
            b.add(ops.Convert(x, result=tensor(2))), splat(b, 0, tensor(2)), ops.ComparisonDirection.EQ
        ), [BITS], ["convert", "compare"],
    ),
    "x to itself": (lambda b, x: ops.Convert(x, result=x.type), [FEW], []),
    "there and back": (
        lambda b, x: ops.Convert(b.add(ops.Convert(x, result=x.type.with_element(I1))), result=x.type), [FEW],
        ["convert", "convert"],
    ),
    "select the same": (lambda b, p, x: ops.Select(p, x, x), [P, FEW], []),
    "select not": (lambda b, p, x, y: ops.Select(b.add(ops.Not(p)), x, y), [P, FEW, -FEW], ["select"]),
    "select true": (lambda b, x, y: ops.Select(splat(b, True, tensor(of=I1)), x, y), [FEW, -FEW], []),
    "select false": (lambda b, x, y: ops.Select(splat(b, False, tensor(2, of=I1)), x, y), [FEW, -FEW], []),
}  # fmt: skip


@pytest.mark.parametrize("name", BOOLEANS)
def test_of_choices_and_bits(name: str) -> None:
    build, arrays, wanted = BOOLEANS[name]
    module = program_of([type_of(array) for array in arrays], lambda b, *given: b.add(build(b, *given)))
    assert names(rewritten(module, ARITHMETIC, arrays)) == wanted


@pytest.mark.parametrize(("low", "high", "left"), [(-1, 1, 1), (-0.0, 0.0, 2), (0.0, -0.0, 2), (1, -1, 1)])
def test_a_clamp_twice(low: float, high: float, left: int) -> None:
    """Limits with other bits, including zeros of another sign, are different limits."""

    def body(b, x):
        scalar = tensor()
        once = b.add(ops.Clamp(splat(b, low, scalar), x, splat(b, high, scalar)))
        again = (low, high) if left == 1 else (-low, -high)
        return b.add(ops.Clamp(splat(b, again[0], scalar), once, splat(b, again[1], scalar)))

    x = values_of(np.dtype(np.float32))
    assert len(names(rewritten(program_of([type_of(x)], body), ARITHMETIC, [x]))) == left
