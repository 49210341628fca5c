"""Deliberate mistakes in the compiler."""

from collections.abc import Callable

import pytest

from trivium.backends.llvm import math
from trivium.compiler import pipeline
from trivium.compiler.lowering import ELEMENT, reduction
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices
from trivium.compiler.passes.canonicalize import PATTERNS
from trivium.compiler.passes.manager import Pass
from trivium.ir import ops
from trivium.ir.core import Operation
from trivium.ir.func import Module
from trivium.ir.types import is_float


def wrong_rule(monkeypatch: pytest.MonkeyPatch, op: type, when: Callable[[Operation], bool] = lambda op: True) -> None:
    """Makes the element rule of an op return the negative of the correct value, where `when` holds."""
    right = ELEMENT[op]

    def rule(ctx: LoweringContext, wrong: Operation, indices: object) -> object:
        value = right(ctx, wrong, indices)
        return ctx.b.apply("negate", value) if when(wrong) else value

    monkeypatch.setitem(ELEMENT, op, rule)


def wrong_pass(monkeypatch: pytest.MonkeyPatch, change: Callable[[Operation], None]) -> None:
    """A pass that changes every op of a program with `change`."""

    class Wrong(Pass):
        NAME = "wrong"

        def run(self, module: Module) -> bool:
            for op in list(module.main.body.block):
                change(op)
            return False

    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE, Wrong()))


def wrong_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local rewrite whose two sides are not equal: logistic(x) == tanh(x)."""
    monkeypatch.setitem(PATTERNS.patterns, ops.Logistic, [lambda op: ops.Tanh(op.operand)])


def wrong_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions read the first element of what they fold again and again."""
    right = reduction._folded_place

    def place(op: ops.Reduce, indices: Indices, folded: Indices) -> Indices:
        return right(op, indices, tuple(index * 0 for index in folded))

    monkeypatch.setattr(reduction, "_folded_place", place)


def wrong_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of the sine is that of the cosine."""
    monkeypatch.setitem(math._F32, "sine", math._F32["cosine"])


def swapped(op: Operation) -> None:
    """Exchanges the operands of subtractions."""
    if isinstance(op, ops.Subtract):
        lhs, rhs = op.operands
        op.set_operand(0, rhs)
        op.set_operand(1, lhs)


def doubled(op: Operation) -> None:
    """Doubles floating-point constants of several elements."""
    if isinstance(op, ops.Constant) and is_float(op.value.type.element_type) and op.value.array.size > 1:
        op.attributes["value"] = type(op.value)(op.value.array * 2, op.value.type)


def forgotten(op: Operation) -> None:
    """Removes rounding."""
    if isinstance(op, ops.Floor):
        op.results[0].replace_all_uses_with(op.operands[0])


def is_used_once(op: Operation) -> bool:
    """True only as long as an op's operand is not a result: the mistake disappears when the operand is inspected."""
    return len(op.operands[0].uses) == 1
