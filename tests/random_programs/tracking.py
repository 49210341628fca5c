"""Computes a program's values, and how much those of another correct implementation may differ: the interpreter, with
an error bound for each value.

An error of 0 means the same bits. This holds for integers, for ops that only move elements, for operations that are
rounded correctly, and for sums in any order whose terms are multiples of a coarse unit. If no bound exists, as for a
comparison of numbers that may be inexact, the program is `Unstable`: the generator does not generate such programs, and
the shrinker does not keep them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.random_programs.arrays import rounding_to_tf32
from tests.random_programs.errors import errors_of
from tests.random_programs.tracked import Tracked, Unstable, bounded
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Region, Value
from trivium.ir.func import Module
from trivium.ir.interpreter import Interpreter
from trivium.ir.types import F32

MOST_TURNS = 64
"""The largest number of iterations of a loop."""

Environment = dict[Value, Tracked]


class Tracker:
    """Evaluates ops, blocks and programs. `tf32`: factors of products of f32 may be rounded to that type."""

    def __init__(self, tf32: bool = False) -> None:
        self._interpreter, self._tf32 = Interpreter(), tf32

    def main(self, module: Module, arguments: Sequence[np.ndarray]) -> list[Tracked]:
        """Returns the results of a program."""
        main = module.main
        given = [Tracked(array) for array in arguments]
        with np.errstate(all="ignore"):
            return self.block(main.body.block, dict(zip(main.arguments, given, strict=True)))

    def block(self, block: Block, environment: Environment) -> list[Tracked]:
        """Returns the results of a block."""
        for op in block:
            if op is not block.last:
                environment.update(zip(op.results, self.step(op, environment), strict=True))
        return [environment[value] for value in block.terminator.operands]

    def step(self, op: Operation, environment: Environment) -> list[Tracked]:
        """Returns the results of one op."""
        if isinstance(op, ops.While):
            return self._while(op, environment)
        if isinstance(op, ops.If | ops.Case):
            return self._branch(op, environment)
        if isinstance(op, ops.OptimizationBarrier):
            return [environment[value] for value in op.operands]
        used = [*op.operands, *(value for region in op.regions for value in region.free_values())]
        arrays = {value: environment[value].array for value in used}
        results = [np.asarray(result) for result in self._interpreter.step(op, arrays)]
        errors = errors_of(op, [environment[value] for value in used], results)
        if self._tf32 and isinstance(op, ops.DotGeneral) and op.lhs.type.element_type == F32:
            errors = [errors[0] + self._rounding(op, arrays)]
        return [bounded(array, error) for array, error in zip(results, errors, strict=True)]

    def _rounding(self, op: ops.DotGeneral, arrays: dict[Value, np.ndarray]) -> float:
        """Returns the largest difference by rounding the factors of a product."""
        lhs, rhs = (rounding_to_tf32(arrays[value]) for value in op.operands)
        if not lhs and not rhs:
            return 0.0
        sizes = {value: np.abs(arrays[value]) for value in op.operands}
        (total,) = self._interpreter.step(op, sizes)
        return (lhs + rhs + lhs * rhs) * float(np.max(total, initial=0.0))

    def _region(self, region: Region, environment: Environment, arguments: Sequence[Tracked] = ()) -> list[Tracked]:
        inside = {value: environment[value] for value in region.free_values()}
        return self.block(region.block, inside | dict(zip(region.arguments, arguments, strict=True)))

    def _while(self, op: ops.While, environment: Environment) -> list[Tracked]:
        state = [environment[value] for value in op.operands]
        for _ in range(MOST_TURNS):
            (going,) = self._region(op.cond, environment, state)
            if not going.array:
                return state
            state = self._region(op.body, environment, state)
        raise Unstable("the loop runs too long")

    def _branch(self, op: ops.If | ops.Case, environment: Environment) -> list[Tracked]:
        choice = int(environment[op.operands[0]].array)
        if isinstance(op, ops.If):
            return self._region(op.true_branch if choice else op.false_branch, environment)
        return self._region(op.branches[choice if 0 <= choice < len(op.branches) else -1], environment)
