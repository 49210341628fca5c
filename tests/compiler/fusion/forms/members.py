"""Ops of a block for tests of forms, by the names that a test gives them."""

from collections.abc import Callable

from trivium.compiler.lowering.index import Variable, fresh
from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Value
from trivium.ir.func import Function, Module
from trivium.ir.types import TensorType


def ops_of(types: list[TensorType], body: Callable[..., dict[str, Value]]) -> dict[str, Operation]:
    """Returns the ops that define the values of `body`."""
    found: dict[str, Operation] = {}

    def build(b: Builder, *values: Value) -> Value:
        for name, value in body(b, *values).items():
            op = value.defining_op
            assert op is not None
            found[name] = op
        return values[0]

    Module.build(functions=[Function.build("main", types, build)])
    return found


def space_of(*shape: int) -> tuple[Variable, ...]:
    return tuple(fresh(shape))
