"""The context that all importers share: values that are known during import, and cursors that do not disturb one
another."""

from __future__ import annotations

import numpy as np
import pytest

from trivium.importers.context import Context
from trivium.ir import ops
from trivium.ir.core import Block, Value
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.types import F32, I64, TensorType


def context(*types: TensorType) -> Context[str, Value]:
    ctx: Context[str, Value] = Context(Block(list(types)))
    ctx.op = "Node"
    return ctx


def test_what_follows_from_constants_is_known() -> None:
    ctx = context()
    value = ctx.reshape(ctx.plus(ctx.elements(np.arange(4)), ctx.scalar(3, I64)), (2, 2))
    np.testing.assert_array_equal(ctx.known(value, "shape"), [[3, 4], [5, 6]])
    assert ctx.known_ints(value, "shape") == [3, 4, 5, 6]


def test_what_depends_on_an_input_is_refused() -> None:
    ctx = context(TensorType((2,), F32))
    value = ctx.add(ops.Negate(ctx.block.arguments[0]))
    with pytest.raises(UnsupportedOpError, match="Node: argument axes has a value computed at run time"):
        ctx.known(value, "axes")


def test_a_graph_inside_a_node_leaves_the_context_as_it_is() -> None:
    ctx = context()
    seen = []

    def enter(emit: Context[str, Value], graph: str, operands: list[Value]) -> list[Value]:
        seen.append((graph, emit.op))
        emit.op = "Inner"
        return [emit.add(ops.Negate(operand)) for operand in operands]

    ctx.enter = enter
    (result,) = ctx.inline("body", ctx.scalar(1.0, F32))
    assert (seen, ctx.op) == ([("body", "Node")], "Node")
    assert result.defining_op is ctx.block.last


def test_regions_know_the_node_they_belong_to() -> None:
    ctx = context()
    kind = TensorType((), F32)
    region = ctx.region([kind], lambda emit, x: emit.add(ops.Negate(x)) if emit.op == "Node" else x)
    assert isinstance(next(iter(region.blocks[0])), ops.Negate)
    assert ctx.block.last is None


def test_the_cursor_comes_back() -> None:
    ctx = context()
    inner = Block()
    with ctx.inside(inner):
        ctx.scalar(1, I64)
    ctx.scalar(2, I64)
    assert (len(list(inner)), len(list(ctx.block))) == (1, 1)


F32_2 = TensorType((2,), F32)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ((TensorType((3,), F32),), r"the rule of Node returns tensor<2xf32>, expected tensor<3xf32>"),
        ((TensorType((None,), I64),), r"the rule of Node returns tensor<2xf32>, expected tensor<\?xi64>"),
        ((F32_2, F32_2), "the rule of Node returns 1 results, expected 2"),
    ],
)
def test_results_of_other_types_are_refused(expected: tuple[TensorType, ...], message: str) -> None:
    ctx = context(F32_2)
    ctx.results = expected
    for given in (ctx.block.arguments[0], np.zeros(2, np.float32)):
        with pytest.raises(Error, match=message):
            ctx.require_types([given])


@pytest.mark.parametrize("expected", [(F32_2,), (TensorType((None,), F32),), (None,), ()])
def test_results_of_the_expected_types_pass(expected: tuple[TensorType | None, ...]) -> None:
    ctx = context(F32_2)
    ctx.results = expected
    ctx.require_types(ctx.block.arguments)
    assert ctx.results == expected
