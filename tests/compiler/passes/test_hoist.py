"""Which ops are moved out of a loop: file tests show the programs (`cases/hoist.mlir`)."""

from __future__ import annotations

import numpy as np

from tests.compiler.lowering.running import program_of, some
from trivium.compiler.passes.hoist import HoistInvariants
from trivium.ir import ops
from trivium.ir.builder import region
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import I32, tensor


def looped(compute) -> Module:
    """Three iterations that add `compute(b, x, argument, fixed)`: of a value from outside, one that varies, and one
    that the body returns unchanged."""

    def main(b, x):
        types = [tensor(of=I32), tensor(4), tensor(4)]
        limit = b.add(ops.Constant(np.int32(3)))
        cond = region(types, lambda b, i, *_: b.add(ops.Compare(i, limit, ops.ComparisonDirection.LT)))

        def body(b, i, total, fixed):
            following = b.add(ops.Add(i, b.add(ops.Constant(np.int32(1)))))
            return [following, b.add(ops.Add(compute(b, x, total, fixed), total)), fixed]

        return b.add(ops.While([b.add(ops.Constant(np.int32(0))), x, x], cond, region(types, body)))[1]

    return program_of([tensor(4)], main)


def kinds_in_loop(module: Module) -> set[str]:
    """Returns the kinds of ops in the loop after hoisting, which changes no result."""
    argument = some(4)
    before = evaluate(module, argument)
    HoistInvariants().run(module)
    module.verify()
    np.testing.assert_array_equal(evaluate(module, argument)[0], before[0])
    (loop,) = (op for op in module.main.body.block if isinstance(op, ops.While))
    return {type(op).__name__ for op in loop.body.block}


def test_expensive_ops_of_what_never_changes_leave_with_their_operands() -> None:
    found = kinds_in_loop(looped(lambda b, x, total, fixed: b.add(ops.Tanh(b.add(ops.Negate(fixed))))))
    assert not {"Tanh", "Negate"} & found


def test_what_varies_stays() -> None:
    assert "Tanh" in kinds_in_loop(looped(lambda b, x, total, fixed: b.add(ops.Tanh(total))))


def test_what_is_cheap_stays() -> None:
    assert "Negate" in kinds_in_loop(looped(lambda b, x, total, fixed: b.add(ops.Negate(x))))


def test_ops_with_regions_leave_with_what_their_regions_read() -> None:
    def compute(b, x, total, fixed):
        zero = b.add(ops.Constant(np.float32(0)))
        function = region([tensor(), tensor()], lambda b, p, q: b.add(ops.Add(p, q)))
        summed = b.add(ops.Reduce([fixed], [zero], dimensions=[0], body=function))
        return b.add(ops.BroadcastInDim(summed[0] if isinstance(summed, tuple) else summed, [], result=tensor(4)))

    found = kinds_in_loop(looped(compute))
    assert "Reduce" not in found
    assert "BroadcastInDim" in found
