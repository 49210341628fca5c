"""The families of elementwise ops, and `map`, which applies a region to each element. The ops of the families are in
`arithmetic`, `bitwise` and `transcendental`."""

from __future__ import annotations

from trivium.ir.codecs import Ints
from trivium.ir.core import Region
from trivium.ir.declare import ELEMENTWISE, EXPRESSED, PURE, RECURSIVE_EFFECTS, Op, Operand, Operands, Result
from trivium.ir.errors import fail
from trivium.ir.ops.common import expect_compatible_baseline, expect_same_shape, expect_tensor, most_specific
from trivium.ir.ops.regions import check_region, outputs_of
from trivium.ir.types import TensorType

__all__ = ["Map"]


class Unary(Op, traits={PURE, ELEMENTWISE, EXPRESSED}):
    """One operand, and a result of the same type."""

    operand: Operand
    result: Result

    def infer(operand):
        return operand

    def check(operand, result):
        expect_compatible_baseline("C1", operand=operand, result=result)


class Binary(Op, traits={PURE, ELEMENTWISE, EXPRESSED}):
    """Two operands of the same type, and a result of that type."""

    lhs: Operand
    rhs: Operand
    result: Result

    def infer(lhs, rhs):
        return most_specific(lhs, rhs)

    def check(lhs, rhs, result):
        expect_tensor("I1", "lhs", lhs)
        expect_tensor("I2", "rhs", rhs)
        expect_compatible_baseline("C1", lhs=lhs, rhs=rhs, result=result)


class Map(Op, name="stablehlo.map", traits={ELEMENTWISE, RECURSIVE_EFFECTS}):
    """Applies `computation` to the elements of `inputs` at each index."""

    inputs: Operands
    dimensions: Ints
    computation: Region
    result: Result

    def infer(inputs, computation):
        if not inputs:
            fail("C2", "inputs has no entries, expected at least one")
        expect_tensor("I1", "inputs[0]", inputs[0])
        outputs = outputs_of(computation)
        if len(outputs) != 1 or not isinstance(outputs[0], TensorType):
            fail("C4", f"computation returns ({', '.join(map(str, outputs))}), expected one tensor")
        return most_specific(*inputs).with_element(outputs[0].element_type)

    def check(inputs, dimensions, computation, result):
        if not inputs:
            fail("C2", "inputs has no entries, expected at least one")
        for index, kind in enumerate(inputs):
            expect_same_shape("C1", **{f"inputs[{index}]": kind, "inputs[0]": inputs[0], "result": result})
        if dimensions != tuple(range(inputs[0].rank)):
            fail("C3", f"dimensions has {list(dimensions)}, expected all {inputs[0].rank} dimensions in order")
        scalars = [TensorType((), kind.element_type) for kind in (*inputs, result)]
        check_region("C4", "computation", computation, scalars[:-1], scalars[-1:])

    def evaluate(inputs, computation):
        return computation.map(*inputs)[0]
