"""Ops as seen by fusion: their costs, and whether to compute them again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.targets import TARGET
from trivium.compiler.costs import as_cheap_as_loading, element_cost, is_addressing, takes_loop_or_branch
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Function, Module
from trivium.ir.types import F32, F64, I32, ComplexType, tensor


def module_of(types, body) -> Module:
    return Module.build(functions=[Function.build("main", types, body)])


def test_the_cost_of_an_element_follows_from_its_scalar_operations() -> None:
    costs = {}
    pair = ComplexType(F32)

    def body(b, x, z, i):
        mapped = region([tensor()], lambda inner, one: inner.add(ops.Exponential(inner.add(ops.Negate(one)))))
        for name, op in {
            "multiply": ops.Multiply(x, x),
            "square": ops.Square(x),
            "divide": ops.Divide(x, x),
            "divide integers": ops.Divide(i, i),
            "multiply complex": ops.Multiply(z, z),
            "conj": ops.Conj(z),
            "map": ops.Map([x], dimensions=(0,), computation=mapped, result=tensor(4)),
            "transpose": ops.Transpose(x, permutation=(0,)),
        }.items():
            costs[name] = element_cost(b.add(op).defining_op)
        return x

    module_of([tensor(4), tensor(4, of=pair), tensor(4, of=I32)], body)
    assert costs == {
        "multiply": 1, "square": 1, "divide": 4, "divide integers": 20, "multiply complex": 6, "conj": 1, "map": 11,
        "transpose": 0,
    }  # fmt: skip


@pytest.mark.parametrize("element", [F32, F64])
def test_a_square_is_fused_as_a_product_is(element) -> None:
    def program(square):
        def body(b, x):
            squared = b.add(square(x))
            zero = b.add(ops.Constant(np.zeros((), element.dtype)))
            add = region([tensor(of=element)] * 2, lambda inner, *pair: inner.add(ops.Add(*pair)))
            (total,) = b.add(ops.Reduce([squared], [zero], dimensions=(0,), body=add))
            wide = b.add(ops.BroadcastInDim(total, broadcast_dimensions=(1,), result=tensor(64, 128, of=element)))
            return b.add(ops.Subtract(squared, wide))

        return lower(optimize(module_of([tensor(64, 128, of=element)], body)), TARGET)

    one, other = program(ops.Square), program(lambda x: ops.Multiply(x, x))
    assert one.arena_size == other.arena_size == 128 * tensor(of=element).dtype.itemsize


def classified(body) -> dict[str, tuple[bool, bool, bool]]:
    """Returns whether ops are free, light and heavy, by the names that `body` gives them."""
    found = {}

    def build(b, *values):
        for name, op in body(b, *values).items():
            added = b.add(op)
            op = (added[0] if isinstance(added, tuple) else added).defining_op
            found[name] = (is_addressing(op), as_cheap_as_loading(op, TARGET), takes_loop_or_branch(op))
        return values[0]

    module_of([tensor(64, 8), tensor(64, 1)], build)
    return found


def test_what_only_moves_elements_is_free() -> None:
    def body(b, x, y):
        return {
            "transpose": ops.Transpose(x, (1, 0)),
            "reshape": ops.Reshape(x, result=tensor(512)),
            "iota": ops.Iota(0, result=tensor(8)),
            "pad": ops.Pad(x, b.add(ops.Constant(np.float32(0))), (0, 0), (0, 1), (0, 0)),
        }

    assert classified(body) == {
        "transpose": (True, False, False),
        "reshape": (True, False, False),
        "iota": (True, False, False),
        "pad": (False, False, True),
    }


def test_cheap_ops_of_one_large_operand_are_light() -> None:
    def body(b, x, y):
        wide = b.add(ops.BroadcastInDim(y, broadcast_dimensions=(0, 1), result=tensor(64, 8)))
        return {
            "negate": ops.Negate(x),
            "add two": ops.Add(x, b.add(ops.Negate(x))),
            "add a broadcast": ops.Add(x, wide),
            "narrow": ops.Convert(x, result=tensor(64, 8, of=np.dtype(np.int8))),
            "tanh": ops.Tanh(x),
        }

    light = {name: is_light for name, (_, is_light, _) in classified(body).items()}
    assert light == {"negate": True, "add two": False, "add a broadcast": True, "narrow": False, "tanh": False}


@pytest.mark.parametrize(("dimension", "expected"), [(0, True), (1, False)])
def test_a_reduction_over_extent_one_is_elementwise(dimension: int, expected: bool) -> None:
    def body(b, x, y):
        add = region([tensor()] * 2, lambda inner, *pair: inner.add(ops.Add(*pair)))
        return {"reduce": ops.Reduce([y], [b.add(ops.Constant(np.float32(0)))], dimensions=(dimension,), body=add)}

    assert classified(body)["reduce"][2] == expected
