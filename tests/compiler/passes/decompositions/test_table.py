"""The vocabulary of decompositions: each word computes what NumPy does, and adds no op that does nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import names
from tests.random_programs.generator import scalar_region
from trivium.compiler.passes.decompositions import table
from trivium.compiler.passes.decompositions.table import DECOMPOSITIONS, Unplaced, is_static, operands_of
from trivium.compiler.passes.patterns.dynamic import DYNAMIC
from trivium.compiler.passes.rewriting import replace
from trivium.ir import ops
from trivium.ir.decompositions.tensors import Scope, Tensor
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import F32, F64, I32, tensor, type_of

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
Y = np.arange(20, dtype=np.float32).reshape(4, 5)
PRODUCT = ops.DotDimensionNumbers((), (), (2,), (0,))


def written(build: Callable[..., Tensor], *arrays: np.ndarray) -> Module:
    """Returns a program in which an op is replaced by what `build` makes of tensors."""

    def body(b, *values):
        scope = Scope(Unplaced())
        result = build(*(Tensor(value, scope) for value in values)).value
        (placeholder,) = b.add(ops.CustomCall(list(values), "placeholder", results=[result.type]))
        if result not in values:
            replace(placeholder.defining_op, (result,))
        return result

    module = program_of([type_of(array) for array in arrays], body)
    for op in list(module.main.body.block):
        if isinstance(op, ops.CustomCall):
            op.erase()
    module.verify()
    return module


WORDS: dict[str, tuple[Callable[..., Tensor], np.ndarray, list[str]]] = {
    "broadcast": (
        lambda x: table.broadcast(x, (2, 5, 3, 4), (0, 2, 3)), np.repeat(X[:, None], 5, 1), ["broadcast_in_dim"],
    ),
    "reshape": (lambda x: table.reshape(x, 4, 6), X.reshape(4, 6), ["reshape"]),
    "reshape to itself": (lambda x: table.reshape(x, 2, 3, 4), X, []),
    "transpose": (lambda x: table.transpose(x, 1, 2, 0), X.transpose(1, 2, 0), ["transpose"]),
    "transpose by nothing": (lambda x: table.transpose(x, 0, 1, 2), X, []),
    "reverse": (lambda x: table.reverse(x, 1), X[:, ::-1], ["reverse"]),
    "part": (lambda x: table.part(x, 2, 1, 4, 2), X[..., 1:4:2], ["slice"]),
    "part, all of it": (lambda x: table.part(x, 2, 0, 4), X, []),
    "part, all of it by steps": (lambda x: table.part(x, 2, 0, 4, 3), X[..., ::3], ["slice"]),
    "joined": (lambda x: table.joined(1, x, x), np.concatenate([X, X], 1), ["concatenate"]),
    "joined alone": (lambda x: table.joined(1, x), X, []),
    "padded": (lambda x: table.padded(x, 1, 5), np.pad(X, ((0, 0), (0, 2), (0, 0))), ["pad"]),
    "padded by nothing": (lambda x: table.padded(x, 1, 3), X, []),
    "reduced": (lambda x: table.reduced(x, (2, 0)), X.sum((0, 2)), ["reduce"]),
    "reduced along nothing": (lambda x: table.reduced(x, ()), X, []),
    "reduced by maxima": (lambda x: table.reduced(x, (1,), ops.Maximum), X.max(1), ["reduce"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    build, expected, wanted = WORDS[name]
    module = written(build, X)
    assert names(module) == wanted
    (found,) = evaluate(module, X)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", [None, F32, F64])
def test_products(kind) -> None:
    module = written(lambda x, y: table.dot(x, y, PRODUCT, kind), X, Y)
    (found,) = evaluate(module, X, Y)
    assert found.dtype == (np.float64 if kind is F64 else np.float32)
    np.testing.assert_array_equal(found, X @ Y)


def test_products_of_integers_keep_more_than_the_factors() -> None:
    x, y = np.full((1, 2, 300), 100, np.int8), np.full((300, 1), 100, np.int8)
    (found,) = evaluate(written(lambda x, y: table.dot(x, y, PRODUCT, I32), x, y), x, y)
    np.testing.assert_array_equal(found, np.full((1, 2, 1), 3_000_000, np.int32))


def test_constants_have_the_type_of_another_tensor() -> None:
    module = written(lambda x: table.constant(x, np.arange(6.0).reshape(2, 3).T), X)
    (found,) = evaluate(module, X)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.arange(6.0).reshape(2, 3).T)


def test_conversions_to_the_same_type_are_none() -> None:
    def body(b, x):
        assert table.converted(x, x.type) is x
        return b.add(table.converted(x, tensor(3, of=I32)).defining_op)

    assert names(program_of([tensor(3)], body)) == ["convert"]


def test_splats() -> None:
    value = table.splat(1.5, tensor(1 << 40))
    assert value.defining_op.value.is_splat
    assert value.defining_op.value.array.flat[0] == np.float32(1.5)


def test_operands_are_in_a_scope_without_a_position() -> None:
    """Ops are inserted where the op is replaced, and only those that the results need."""
    module = program_of([tensor(2)] * 2, lambda b, x, y: b.add(ops.Power(x, y)))
    (op, _) = module.main.body.block
    x, y = operands_of(op)
    unused = x * 3
    result = (x + y) * 2
    assert unused.value.defining_op.block is result.value.defining_op.block is None
    replace(op, (result.value,))
    module.verify()
    assert names(module) == ["add", "multiply"]
    (found,) = evaluate(module, X[0, 0, :2], X[0, 1, :2])
    np.testing.assert_array_equal(found, (X[0, 0, :2] + X[0, 1, :2]) * 2)


def test_a_builder_without_a_position_gives_the_same_results() -> None:
    b = Unplaced()
    x = table.splat(1, tensor(4))
    assert b.add(ops.Negate(x)).type is tensor(4)
    assert len(b.add(ops.Reduce([x], [table.splat(0, tensor())], (0,), scalar_region(ops.Add)))) == 1
    assert not list(b.block)


@pytest.mark.parametrize(("kind", "expected"), [(tensor(2, 3), True), (tensor(2, None), False)])
def test_static_ops(kind, expected: bool) -> None:
    module = Module.build(functions=[Function.build("main", [kind], lambda b, x: b.add(ops.Negate(x)))])
    assert is_static(next(iter(module.main.body.block))) == expected


def test_sizes_that_are_known_are_decomposed_first() -> None:
    """Other decompositions of ops with dynamic sizes come later."""
    for kind, patterns in DYNAMIC.patterns.items():
        assert DECOMPOSITIONS.patterns[kind][: len(patterns)] == patterns
