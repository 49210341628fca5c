"""Concatenations and pads as several launches, each of which writes a part of the result: no branches inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.fusion.forms.form import Form
from trivium.compiler.lowering.index import Indices, fresh, indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.ir import ops
from trivium.ir.core import Operation

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


class _Parts(Form):
    """The loops of a part are those of an operand, so no kernel computes all elements of any other value."""

    def is_home(self, op: Operation, demand: Indices) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Pieces(_Parts):
    """A concatenation: one launch for each operand."""

    op: ops.Concatenate

    def build(self, launches: Launches, group: Group) -> None:
        op, start = self.op, 0
        for number, operand in enumerate(op.inputs):
            if operand.type.size:
                variables = fresh(operand.type.shape)
                with launches.kernel(f"_piece{number}") as ctx, ctx.nest(variables):
                    at = indices_of(variables)
                    target = tuple(index + (start if d == op.dimension else 0) for d, index in enumerate(at))
                    ctx.store(op.result, target, ctx.element(operand, at))
            start += operand.type.shape[op.dimension]


@dataclass(frozen=True, eq=False)
class Padded(_Parts):
    """A pad that cuts nothing off: one launch writes the padding everywhere, another the operand over it."""

    op: ops.Pad

    def build(self, launches: Launches, group: Group) -> None:
        op, everywhere = self.op, fresh(self.op.result.type.shape)
        with launches.kernel("_padding") as ctx, ctx.nest(everywhere):
            ctx.store(op.result, indices_of(everywhere), ctx.element(op.padding_value))
        if not op.operand.type.size:
            return
        variables = fresh(op.operand.type.shape)
        with launches.kernel("_operand") as ctx, ctx.nest(variables):
            at = indices_of(variables)
            steps = zip(at, op.interior_padding, op.edge_padding_low, strict=True)
            target = tuple(index * (interior + 1) + low for index, interior, low in steps)
            ctx.store(op.result, target, ctx.element(op.operand, at))


def cuts_nothing_off(op: ops.Pad) -> bool:
    """Whether every element of the operand is in the result."""
    return min((*op.edge_padding_low, *op.edge_padding_high, 0)) == 0
