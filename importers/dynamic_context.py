"""The context of a rule in frameworks whose shapes, axes and pads are tensors: numbers where they are known during
import, otherwise sizes that the program computes."""

from __future__ import annotations

import operator

from trivium.importers.context import Context, Graph, Operand
from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.extents import Extent, Size
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.known import evaluate_known
from trivium.ir.types import I64, is_integer

MOST_ENTRIES = 1024
"""The length of the longest list that has entries which the program computes."""

_ARITHMETIC = {ops.Add: operator.add, ops.Multiply: operator.mul, ops.Subtract: operator.sub}


class DynamicContext(DynamicEmitter, Context[Graph, Operand]):
    """A context that reads lists of extents from operands."""

    def listed(self, operand: Value, argument: str) -> list[Extent]:
        """Returns the entries of a list of integers: numbers, or sizes that the program computes."""
        if operand.type.rank > 1:
            raise Error(f"{argument} has type {operand.type}, expected a list")
        array = evaluate_known(operand)
        if array is not None:
            return [int(number) for number in array.reshape(-1)]
        if operand in self.vectors:
            return list(self.vectors[operand])
        if not operand.type.is_static:
            self.unsupported(argument, f"type {operand.type}", "a list whose length is known")
        if operand.type.size > MOST_ENTRIES:
            has = "a value computed at run time, or with very many elements"
            self.unsupported(argument, has, "one that is known while importing")
        parts = self._parts(operand, argument)
        if parts is not None:
            return parts
        flat = self.convert(self.reshape(operand, (operand.type.size,)), I64)
        return [Size(self, self.reshape(self.slice(flat, 0, i, i + 1), ())) for i in range(operand.type.size)]

    def number(self, operand: Value, argument: str) -> Extent:
        """Returns the only entry of a list of integers, or an integer."""
        entries = self.listed(operand, argument)
        if len(entries) != 1:
            raise Error(f"{argument} has {len(entries)} entries, expected one")
        return entries[0]

    def _parts(self, operand: Value, argument: str) -> list[Extent] | None:
        """Returns the entries of a list that is put together from others; `None` if it is computed otherwise."""
        match op := operand.defining_op:
            case ops.Concatenate():
                return [entry for part in op.inputs for entry in self.listed(part, argument)]
            case ops.Reshape() | ops.Convert() if op.operand.type.rank <= 1 and is_integer(
                op.operand.type.element_type
            ):
                return self.listed(op.operand, argument)
            case ops.Add() | ops.Subtract() | ops.Multiply() if is_integer(operand.type.element_type):
                sides = (self.listed(op.lhs, argument), self.listed(op.rhs, argument))
                return [_ARITHMETIC[type(op)](a, b) for a, b in zip(*sides, strict=True)]
            case ops.Slice() if op.operand.type.rank == 1:
                taken = slice(op.start_indices[0], op.limit_indices[0], op.strides[0])
                return self.listed(op.operand, argument)[taken]
            case ops.Gather() if op.operand.type.rank == 1:
                places = evaluate_known(op.start_indices)
                entries = self.listed(op.operand, argument) if places is not None else []
                return None if places is None else [entries[int(place)] for place in places.reshape(-1)]
        return None
