"""The gradients of attention as kernels: weights are computed again from products, tile by tile, wherever a last
product needs them, instead of being stored once. `chains.py` finds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trivium.compiler.fusion.demands import Demand
from trivium.compiler.fusion.forms.attention import SHORTEST
from trivium.compiler.fusion.forms.chains import Found, Product, find
from trivium.compiler.fusion.forms.contraction import Contraction
from trivium.compiler.fusion.forms.form import Form
from trivium.compiler.fusion.forms.marks import Loops, weighted
from trivium.compiler.fusion.forms.marks import product as product_mark
from trivium.compiler.fusion.turning import Turned
from trivium.compiler.kernel import Block, ContractionLoop, Kernel
from trivium.compiler.kernel import Contraction as Mark
from trivium.compiler.kernel.chained import Chained as ChainedMark
from trivium.compiler.kernel.chained import chained_kernel
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Variable, indices_of
from trivium.compiler.lowering.launches import Launches
from trivium.compiler.lowering.scalars import dtype_of
from trivium.compiler.target import Target
from trivium.ir.core import Operation, Value

if TYPE_CHECKING:
    from trivium.compiler.fusion.group import Group


@dataclass(frozen=True, eq=False)
class Chained(Contraction):
    """`op` is the last product. Other groups compute the same weights."""

    found: Found

    def includes(self, op: Operation) -> bool:
        return op in self.found.members

    def around(self, op: Operation, demand: Demand, target: Target) -> Form | None:
        return None

    def buffers(self, op: Operation) -> Sequence[Value]:
        for product in self.found.products:
            if op is product.op:
                return product.lhs.source, product.rhs.source
        return (self.found.values.source,) if op is self.op else ()

    def reads(self, op: Operation, demand: Demand) -> Iterator[tuple[Value, Demand]]:
        if op is self.op:
            yield self.found.weights, self.found.at[self.found.weights]
        elif not any(op is product.op for product in self.found.products):
            yield from Form.reads(self, op, demand)

    def build(self, launches: Launches, group: Group) -> None:
        found = self.found
        assert all(product.op in group.members for product in found.products), "every user of the weights is a chain"
        factors = [factor for product in found.products for factor in (product.lhs, product.rhs)]
        for factor in (*factors, found.values):
            launches.members.update(dict.fromkeys(factor.before))
        ctx = launches.context()
        launches.add(self._chained(ctx, group), ctx.arguments)

    def _chained(self, ctx: LoweringContext, group: Group) -> Kernel:
        found = self.found
        shared = {v: ContractionLoop("batch", v.extent) for v in found.batch}
        shared |= {v: ContractionLoop("m", v.extent) for v in found.rows}
        features = {v: ContractionLoop("n", v.extent) for v in found.features}
        weighed = {**shared, found.key: ContractionLoop("n", found.key.extent)}
        summed = {**shared, **features, found.key: ContractionLoop("k", found.key.extent)}
        products = [self._product(ctx, product, weighed) for product in found.products]
        weight = self._weight(ctx, weighed)
        values = weighted(ctx, found.values, found.key, summed, self._result(ctx, group, {**shared, **features}))
        return chained_kernel(ctx.b.name, ctx.b.params, ChainedMark(tuple(products), weight, values))

    def _product(self, ctx: LoweringContext, product: Product, loops: Loops) -> Mark:
        every = {**loops, **{v: ContractionLoop("k", v.extent) for v in product.depth}}
        with ctx.block(ctx.b.block("f32", *["i64"] * len(loops))) as block:
            block.yields = [block.parameters[0]]
        return product_mark(ctx, product.lhs, product.rhs, every, block)

    def _weight(self, ctx: LoweringContext, loops: Loops) -> Block:
        """Returns what is computed from the sums of products."""
        found = self.found
        with ctx.block(ctx.b.block(*["f32"] * len(found.products), *["i64"] * len(loops))) as block:
            for v, register in zip(loops, block.parameters[len(found.products) :], strict=True):
                ctx.bind(v, register)
            for product, register in zip(found.products, block.parameters, strict=False):
                ctx.know(product.op.result, found.at[product.op.result], register)
            block.yields = [ctx.real(found.weights, found.at[found.weights])]
        return block

    def _result(self, ctx: LoweringContext, group: Group, loops: Loops) -> Block:
        """Returns what stores the outputs, from a sum of weighted values."""
        with ctx.block(ctx.b.block("f32", *["i64"] * len(loops))) as block:
            for v, register in zip(loops, block.parameters[1:], strict=True):
                ctx.bind(v, register)
            ctx.know(self.op.results[0], indices_of(self.space), block.parameters[0])
            self.store(ctx, group)
        return block


def chained_around(op: Operation, space: tuple[Variable, ...], target: Target) -> Chained | None:
    """Returns the form of a group that accepts the last product of a chain; None if it is another product."""

    def fits(found: Found) -> bool:
        factors = [factor for product in found.products for factor in (product.lhs, product.rhs)]
        kinds = {dtype_of(factor.source.type.element_type) for factor in (*factors, found.values)}
        widths = [math.prod(v.extent for v in loops) for loops in (found.features, *(p.depth for p in found.products))]
        short = min(found.key.extent, math.prod(v.extent for v in found.rows), *widths) < SHORTEST
        return not short and len(kinds) == 1 and max(widths) <= target.widest_chain(kinds.pop())

    found = find(op, space, fits) if target.attention else None
    return None if found is None else Chained(space, op, turned=Turned(), found=found)
