"""Which ops are folded, and which are not because they are large, fail, or have effects; folded values are those that
the op computes."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.lowering.coverage import COMPILED
from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import bits, names, splat
from tests.ir.ops.records import Record
from trivium.compiler.passes.fold import FoldConstants
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder, region
from trivium.ir.core import Value
from trivium.ir.declare import PURE, Op
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import C64, I1, I32, tensor, type_of

FEW = np.array([0.0, -0.0, 1.5, -np.inf, np.nan], np.float32)


def constant(b: Builder, array: np.ndarray) -> Value:
    return b.add(ops.Constant(array))


def folded(body: Callable[[Builder], Value], options: FoldConstants | None = None) -> Module:
    """Returns the program after folding, whose results are the same; `names` are the remaining ops."""
    before = program_of([], body)
    after = before.clone()
    changed = (options or FoldConstants()).run(after)
    after.verify()
    assert changed == (str(before) != str(after))
    same(before, after)
    return after


def same(before: Module, after: Module) -> None:
    with np.errstate(all="ignore"):
        for wanted, found in zip(evaluate(before), evaluate(after), strict=True):
            assert (found.dtype, found.shape, bits(found)) == (wanted.dtype, wanted.shape, bits(wanted))


def with_constants(record: Record) -> Module:
    def main(b, *_):
        types = record.types or map(type_of, record.arrays)
        pairs = zip(record.arrays, types, strict=True)
        return record.add(b, [b.add(ops.Constant(DenseElements(array), result=kind)) for array, kind in pairs])

    return program_of([], main)


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in COMPILED])
def test_each_op_folds_to_what_it_gives(record: Record) -> None:
    before = with_constants(record)
    after = before.clone()
    with np.errstate(all="ignore"):
        FoldConstants().run(after)
    after.verify()
    if PURE in record.op.TRAITS:
        same(before, after)
    else:
        assert names(after) == names(before)


def test_a_chain_is_folded_in_one_run() -> None:
    def body(b):
        x = constant(b, FEW)
        return b.add(ops.Negate(b.add(ops.Add(b.add(ops.Abs(x)), x))))

    assert names(folded(body)) == []


def numbers(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.int32)


SMALL = FoldConstants(limit=100, small=10, read=200)
LIMITS: dict[str, tuple[Callable[[Builder], Value], bool]] = {
    "as large as the limit": (lambda b: b.add(ops.Negate(constant(b, numbers(100)))), True),
    "larger than the limit": (lambda b: b.add(ops.Negate(constant(b, numbers(101)))), False),
    "a large splat": (lambda b: b.add(ops.Negate(splat(b, 5, tensor(5000, of=I32)))), True),
    "a large splat and another": (
        lambda b: b.add(ops.Add(splat(b, 5, tensor(5000, of=I32)), splat(b, 7, tensor(5000, of=I32)))), True,
    ),
    "a large splat and numbers": (
        lambda b: b.add(ops.Add(splat(b, 5, tensor(101, of=I32)), constant(b, numbers(101)))), False,
    ),
    "a broadcast to few": (
        lambda b: b.add(ops.BroadcastInDim(constant(b, numbers(2)), (1,), result=tensor(5, 2, of=I32))), True,
    ),
    "a broadcast to more": (
        lambda b: b.add(ops.BroadcastInDim(constant(b, numbers(2)), (1,), result=tensor(6, 2, of=I32))), False,
    ),
    "a broadcast of one number": (
        lambda b: b.add(ops.BroadcastInDim(constant(b, numbers(1)), (0,), result=tensor(5000, of=I32))), True,
    ),
    "a few of many": (lambda b: b.add(ops.Slice(constant(b, numbers(500)), (9,), (19,), (2,))), True),
    "many of many": (lambda b: b.add(ops.Slice(constant(b, numbers(500)), (0,), (101,), (1,))), False),
    "computed of many": (
        lambda b: b.add(ops.DotGeneral(*[constant(b, numbers(101))] * 2, ops.DotDimensionNumbers((), (), (0,), (0,)))),
        False,
    ),
    "computed of fewer": (
        lambda b: b.add(ops.DotGeneral(*[constant(b, numbers(100))] * 2, ops.DotDimensionNumbers((), (), (0,), (0,)))),
        True,
    ),
    "an iota": (lambda b: b.add(ops.Iota(0, result=tensor(4, of=I32))), False),
    "of an iota": (lambda b: b.add(ops.Negate(b.add(ops.Iota(0, result=tensor(4, of=I32))))), False),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_sizes(name: str) -> None:
    body, vanishes = LIMITS[name]
    assert (names(folded(body, SMALL)) == []) == vanishes


SPLATS: dict[str, Callable[[Builder, Value], Op]] = {
    "negate": lambda b, x: ops.Negate(x),
    "to bf16": lambda b, x: ops.Convert(
        x, result=x.type.with_element(type_of(np.zeros(0, ml_dtypes.bfloat16)).element_type)
    ),
    "to complex": lambda b, x: ops.Convert(x, result=x.type.with_element(C64)),
    "compare": lambda b, x: ops.Compare(x, x, ops.ComparisonDirection.EQ),
    "clamp": lambda b, x: ops.Clamp(splat(b, -1, tensor()), x, splat(b, 1, tensor())),
    "select": lambda b, x: ops.Select(splat(b, True, tensor(of=I1)), x, splat(b, 8, x.type)),
    "rounded": lambda b, x: ops.ReducePrecision(x, 5, 3),
    "reshape": lambda b, x: ops.Reshape(x, result=tensor(40, 1000)),
    "complex": lambda b, x: ops.Complex(x, splat(b, -0.0, x.type)),
}


@pytest.mark.parametrize("number", FEW.tolist())
@pytest.mark.parametrize("name", SPLATS)
def test_splats_are_computed_once(name: str, number: float) -> None:
    after = folded(lambda b: b.add(SPLATS[name](b, splat(b, number, tensor(200, 200)))))
    assert names(after) == []
    (result,) = after.main.returned
    assert result.defining_op.value.is_splat


def test_empty_constants() -> None:
    nothing = np.zeros((0, 3), np.float32)

    def body(b):
        x = b.add(ops.Add(constant(b, nothing), splat(b, 1, tensor(0, 3))))
        wide = b.add(ops.BroadcastInDim(x, (0, 2), result=tensor(0, 5, 3)))
        return x, wide, b.add(ops.Reshape(wide, result=tensor(15, 0)))

    assert names(folded(body)) == []


def test_an_argument_keeps_an_op() -> None:
    module = program_of([tensor(5)], lambda b, x: b.add(ops.Add(x, constant(b, FEW))))
    assert not FoldConstants().run(module)


def test_inside_of_regions() -> None:
    """A branch is folded; removing the choice is another pass's work."""

    def branch(b):
        return b.add(ops.Negate(constant(b, FEW)))

    def body(b, which):
        return b.add(ops.Case(which, [region([], branch) for _ in "ab"], results=[tensor(5)]))

    module = program_of([tensor(of=I32)], body)
    assert FoldConstants().run(module)
    assert not [op for op in module.walk() if isinstance(op, ops.Negate)]
    assert names(module) == ["case"]


def test_a_call_from_which_places_follow_runs_with_the_program() -> None:
    def body(b):
        numbers = b.add(ops.Iota(iota_dimension=0, result=tensor(5)))
        (called,) = b.add(ops.CustomCall([numbers], "test.mirror", results=[numbers.type]))
        return b.add(ops.Convert(called, result=tensor(5, of=I32)))

    module = program_of([], body)
    assert not FoldConstants().run(module)
    assert names(module) == ["iota", "custom_call", "convert"]


def test_what_fails_is_left_to_fail_when_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*about):
        raise ArithmeticError("no such number")

    module = program_of([], lambda b: b.add(ops.Sqrt(constant(b, FEW))))
    monkeypatch.setattr(ops.Sqrt, "EVALUATE", fails)
    assert not FoldConstants().run(module)
    assert names(module) == ["sqrt"]


def test_numbers_that_wrap_around_cause_no_warning() -> None:
    def body(b):
        state = constant(b, np.array([1, -1], np.int64).view(np.uint64))
        results = {"output_state": state.type, "output": tensor(4, of=np.dtype(np.uint32))}
        return b.add(ops.RngBitGenerator(state, rng_algorithm=ops.RngAlgorithm.THREE_FRY, **results))

    module = program_of([], body)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert FoldConstants().run(module)


def test_places_follow_from_floats_that_are_the_same_in_the_program() -> None:
    """Sums of products are rounded otherwise there, where they may be part of the weights of these places."""

    def places(multiplied: Callable[[Builder, Value, Value], Value]) -> Module:
        def body(b):
            numbers, factors = b.add(ops.Iota(0, result=tensor(5, 3))), constant(b, np.full((3,), 0.7, np.float32))
            return b.add(ops.Convert(multiplied(b, numbers, factors), result=tensor(5, of=I32)))

        return folded(body)

    def product(b: Builder, numbers: Value, factors: Value) -> Value:
        return b.add(ops.DotGeneral(numbers, factors, ops.DotDimensionNumbers((), (), (1,), (0,))))

    def scaled(b: Builder, numbers: Value, factors: Value) -> Value:
        wide = b.add(ops.BroadcastInDim(factors, (1,), result=tensor(5, 3)))
        column = b.add(ops.Slice(b.add(ops.Multiply(numbers, wide)), (0, 0), (5, 1), (1, 1)))
        return b.add(ops.Floor(b.add(ops.Reshape(column, result=tensor(5)))))

    assert "convert" in names(places(product))
    assert "convert" not in names(places(scaled))
