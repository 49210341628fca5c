"""Computation on parts: each device computes its own part of a value, instead of the whole, where it needs nothing but
this part, and has or can cut out all that the part is computed from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trivium.compiler.passes.needed_parts import Needed, needed
from trivium.compiler.passes.propagate_sharding import shape_of
from trivium.compiler.passes.terms import contribution, own_number
from trivium.ir import ops
from trivium.ir.builder import Builder, Rewriter
from trivium.ir.core import Block, BlockArgument, Operation, Value
from trivium.ir.sharding import Part
from trivium.ir.types import I64, TensorType

MOST_REPEATED, MOST_ADDED = 1.25, 1 << 18
"""How much more work all devices may have together if each computes its part, which others may need as well, than if
one run computes the wholes for all of them: as a factor, or in elements."""

_RUN_ONCE = (ops.Case, ops.CustomCall, ops.If, ops.Infeed, ops.Outfeed, ops.While)
"""Ops with effects, or of unknown cost."""

_HINTS = (ops.ShardingConstraint, ops.Reshard)


@dataclass
class OwnParts:
    """The values of a block that devices compute in parts. `returned` and `held` are the parts in which devices hold
    what the block returns, and its arguments; `cuts` are ops that cut these parts out of wholes, and `gathered` has
    wholes, each with the value and the part that it is made from."""

    block: Block
    returned: Sequence[Part]
    held: Mapping[Value, Part]
    cuts: Mapping[Operation, Part]
    gathered: dict[Value, tuple[Value, Part]]
    devices: int
    _wanted: dict[Value, set[Part]] = field(default_factory=lambda: defaultdict(set))
    _plans: dict[Operation, Needed] = field(default_factory=dict)
    _own: dict[Value, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        end = self.block.terminator
        for value, part in zip(end.operands, self.returned, strict=True):
            self._wanted[value].add(self._whole(value) if part.terms else part)
        for op in reversed(list(self.block)[:-1]):
            self._plan(op)

    def _plan(self, op: Operation) -> None:
        part = self._part_of(op.results)
        found = needed(op, part) if part is not None else None
        parts = list(map(self._whole, op.operands))
        if found is not None:
            self._plans[op] = found
            parts = list(found.operands)
        elif op in self.cuts:
            parts[0] = self.cuts[op]
        for value, wanted in zip(op.operands, parts, strict=True):
            self._wanted[value].add(wanted)
        for value in (value for region in op.regions for value in region.free_values()):
            self._wanted[value].add(self._whole(value))

    def _part_of(self, values: Iterable[Value]) -> Part | None:
        """Returns the only part that is wanted of these values; None if that is the whole, or there are several."""
        values = list(values)
        wanted = set().union(*(self._wanted[value] for value in values if value in self._wanted))
        return wanted.pop() if len(wanted) == 1 and not wanted & set(map(self._whole, values)) else None

    def _whole(self, value: Value) -> Part:
        return Part.whole(shape_of(value), self.devices)

    @property
    def pay(self) -> bool:
        """Whether it takes about as little work to compute parts on all devices as to compute the wholes once."""
        alone = together = 0
        for op in self.block:
            if op not in self._plans and isinstance(op, _RUN_ONCE):
                return False
            work = own = _work(op, list(map(shape_of, op.operands)), list(map(shape_of, op.results)))
            if (plan := self._plans.get(op)) is not None:
                own = _work(op, [each.shape for each in plan.operands], [plan.results.shape] * len(op.results))
            alone, together = alone + own * self.devices, together + work
        return bool(self._plans) and alone <= max(MOST_REPEATED * together, together + MOST_ADDED)

    def compute(self) -> Sequence[Value]:
        """Rewrites the block. Returns the arguments that it now takes in parts."""
        taken = [value for value in self.block.arguments if self._is_taken_in_part(value)]
        for value in taken:
            value.type = _of_part(value, self.held[value])
            self.gathered[value] = value, self.held[value]
        for op in list(self.block):
            if op in self._plans:
                self._compute(op, self._plans[op])
            elif op in self.cuts and (own := self._own_part(op.operands[0], self.cuts[op])) is not None:
                self._replace(op, own)
        end = self.block.terminator
        for index, value in enumerate(end.operands):
            end.set_operand(index, self._own.get(value, value))
        for op in self._plans:
            op.erase()
        return taken

    def _replace(self, cut: Operation, own: Value) -> None:
        """Replaces a part that is cut out of a whole by what the device has anyway."""
        (before,) = cut.results
        for whole, (value, part) in self.gathered.items():
            if value is before:
                self.gathered[whole] = own, part
        Rewriter(cut).replace(own)

    def _is_taken_in_part(self, value: BlockArgument) -> bool:
        return value in self.held and self._part_of([value]) == self.held[value]

    def _compute(self, op: Operation, plan: Needed) -> None:
        builder, part = Builder.in_front_of(op), plan.results
        operands = [
            own if (own := self._own_part(value, wanted)) is not None else contribution(builder, value, wanted, {})
            for value, wanted in zip(op.operands, plan.operands, strict=True)
        ]
        if isinstance(op, ops.Iota):
            results = [self._counted(builder, op, part)]
        elif isinstance(op, ops.Constant):
            results = [builder.add(ops.Constant(np.broadcast_to(op.value.array.flat[0], part.shape)))]
        elif isinstance(op, _HINTS):
            results = operands
        else:
            kinds, regions = [_of_part(value, part) for value in op.results], [each.clone() for each in op.regions]
            new = type(op).create(operands, kinds, plan.attributes, regions, op.extra, op.location, op.segments)  # type: ignore[attr-defined]
            builder.add(new)
            results = new.results
        self._own.update(zip(op.results, results, strict=True))
        self.gathered.update((result, (result, part)) for result in results)

    def _own_part(self, value: Value, part: Part) -> Value | None:
        """Returns what each device has of a value, if that is this part of it."""
        own, own_part = self.gathered.get(self._own.get(value, value), (value, self._whole(value)))
        return own if own_part == part else None

    def _counted(self, builder: Builder, op: ops.Iota, part: Part) -> Value:
        """Returns the numbers of a part, counted as integers: other types may not have the first one exactly."""
        d, element = op.iota_dimension, op.result.type.element_type
        kind, counted = _of_part(op.result, part), TensorType(part.shape, I64)
        starts = [begins[d] for begins in part.begins]
        if not any(starts):
            return builder.add(ops.Iota(iota_dimension=d, result=kind))
        start = builder.add(ops.Convert(own_number(builder, starts), result=TensorType((), I64)))
        everywhere = builder.add(ops.BroadcastInDim(start, (), result=counted))
        numbers = builder.add(ops.Add(builder.add(ops.Iota(iota_dimension=d, result=counted)), everywhere))
        return numbers if element is I64 else builder.add(ops.Convert(numbers, result=kind))


def _of_part(value: Value, part: Part) -> TensorType:
    return TensorType(part.shape, value.type.element_type)


def _work(op: Operation, operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> int:
    """Returns the number of elements that an op of these shapes reads and writes, and of products that it adds up."""
    if isinstance(op, ops.Constant):
        return 0
    elements = sum(map(math.prod, (*operands, *results)))
    if isinstance(op, ops.DotGeneral):
        contracted = op.dot_dimension_numbers.lhs_contracting_dimensions
        return elements + math.prod(results[0]) * math.prod(operands[0][d] for d in contracted)
    if isinstance(op, ops.Convolution):
        feature = op.dimension_numbers.kernel_output_feature_dimension
        return elements + math.prod(results[0]) * math.prod(operands[1]) // max(1, operands[1][feature])
    return elements
