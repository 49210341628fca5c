"""Attention as one kernel: the scores, their softmax and the product with the values, of which no more than a tile
exists at a time, with the ops that follow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.fusion.demands import Demand, Opaque, plain_variables
from trivium.compiler.fusion.forms.contraction import Contraction
from trivium.compiler.fusion.forms.form import Form, extended
from trivium.compiler.fusion.forms.marks import Loops, product, weighted
from trivium.compiler.fusion.forms.softmax import Found, find, of_row
from trivium.compiler.fusion.turning import Turned
from trivium.compiler.kernel import Block, ContractionLoop, Kernel
from trivium.compiler.kernel.attention import Attention as AttentionMark
from trivium.compiler.kernel.attention import attention_kernel
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Indices, Variable, indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group

SHORTEST = 16
"""The least number of queries, keys, features, and products that each score sums."""

MOST_FEATURES = 256
"""The most sums that a query has: they are there all the time."""


@dataclass(frozen=True, eq=False)
class Attention(Contraction):
    """`op` is the last product."""

    found: Found

    def includes(self, op: Operation) -> bool:
        return op in self.found.softmax.members

    def around(self, op: Operation, demand: Demand, target: Target) -> Form | None:
        return None

    def buffers(self, op: Operation) -> Sequence[Value]:
        if op is self.found.softmax.scores:
            return self.found.lhs.source, self.found.rhs.source
        return (self.found.values.source,) if op is self.op else ()

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        softmax = self.found.softmax
        if op is self.op:
            yield softmax.weights, softmax.at[softmax.weights]
        elif op in (softmax.greatest, softmax.total) and not isinstance(demand, Opaque):
            assert isinstance(op, ops.Reduce)
            yield op.inputs[0], of_row(op, demand, self.found.key)
        elif op is not softmax.scores:
            yield from Form.reads(self, op, demand)

    def is_home(self, op: Operation, demand: Indices, target: Target) -> bool:
        rows = (*self.found.batch, *self.found.rows)
        if op in self.found.softmax.members and plain_variables(demand) is not None:
            return extended(plain_variables(demand) or ()) == extended(rows)
        return super().is_home(op, demand, target)

    def build(self, launches: Launches, group: Group) -> None:
        found = self.found
        for factor in (found.lhs, found.rhs, found.values):
            launches.members.update(dict.fromkeys(factor.before))
        ctx = launches.context()
        launches.add(self._attention(ctx, group), ctx.arguments)

    def _attention(self, ctx: LoweringContext, group: Group) -> Kernel:
        found = self.found
        shared = {v: ContractionLoop("batch", v.extent) for v in found.batch}
        shared |= {v: ContractionLoop("m", v.extent) for v in found.rows}
        depth = {v: ContractionLoop("k", v.extent) for v in found.depth}
        features = {v: ContractionLoop("n", v.extent) for v in found.features}
        scored = {**shared, found.key: ContractionLoop("n", found.key.extent)}
        summed = {**shared, **features, found.key: ContractionLoop("k", found.key.extent)}
        scores = product(ctx, found.lhs, found.rhs, {**scored, **depth}, self._score(ctx, scored))
        values = weighted(ctx, found.values, found.key, summed, self._result(ctx, group, {**shared, **features}))
        rows = self._rows(ctx, group, shared)
        return attention_kernel(ctx.b.name, ctx.b.params, AttentionMark(scores, values, rows))

    def _score(self, ctx: LoweringContext, loops: Loops) -> Block:
        """Returns what is computed from the sum of a score's products."""
        softmax = self.found.softmax
        with ctx.block(ctx.b.block("f32", *["i64"] * len(loops))) as block:
            for v, register in zip(loops, block.parameters[1:], strict=True):
                ctx.bind(v, register)
            ctx.know(softmax.scores.result, softmax.at[softmax.scores.result], block.parameters[0])
            block.yields = [ctx.real(softmax.score, softmax.at[softmax.score])]
        return block

    def _result(self, ctx: LoweringContext, group: Group, loops: Loops) -> Block:
        """Returns what divides a sum of weighted values by the sum of the weights, and stores the outputs."""
        softmax, value = self.found.softmax, self.op.results[0]
        with ctx.block(ctx.b.block("f32", "f32", *["i64"] * len(loops))) as block:
            total, weights, *places = block.parameters
            for v, register in zip(loops, places, strict=True):
                ctx.bind(v, register)
            ctx.know(softmax.total.results[0], softmax.at[softmax.total.results[0]], weights)
            divisor = ctx.real(softmax.divide.rhs, softmax.at[softmax.divide.result])
            ctx.know(value, indices_of(self.space), ctx.b.divide(total, divisor))
            for output, indices in self._outputs(group, of_rows=False):
                ctx.store(output, indices, ctx.element(output, indices))
        return block

    def _rows(self, ctx: LoweringContext, group: Group, loops: Loops) -> Block | None:
        """Returns what stores outputs of whole rows, if there are any, from the greatest score of a row and the sum of
        its weights."""
        softmax, outputs = self.found.softmax, self._outputs(group, of_rows=True)
        if not outputs:
            return None
        with ctx.block(ctx.b.block("f32", "f32", *["i64"] * len(loops))) as block:
            for v, register in zip(loops, block.parameters[2:], strict=True):
                ctx.bind(v, register)
            for op, register in zip((softmax.greatest, softmax.total), block.parameters, strict=False):
                ctx.know(op.results[0], softmax.at[op.results[0]], register)
            for output, indices in outputs:
                ctx.store(output, indices, ctx.element(output, indices))
        return block

    def _outputs(self, group: Group, of_rows: bool) -> list[tuple[Value, Indices]]:
        """Returns the outputs of which there is one element for each row, or all others."""
        softmax = self.found.softmax
        return [item for item in group.outputs.items() if (item[0].defining_op in softmax.members) is of_rows]


def attention_around(op: Operation, space: tuple[Variable, ...], target: Target) -> Attention | None:
    """Returns the form of a group that accepts the last product of attention; None if it is another product."""
    found = find(op, space) if target.attention else None
    if found is None:
        return None
    extents = [math.prod(v.extent for v in loops) for loops in (found.rows, found.features, found.depth)]
    if min(found.key.extent, *extents) < SHORTEST or extents[1] > MOST_FEATURES:
        return None
    return Attention(space, op, turned=Turned(), found=found)
