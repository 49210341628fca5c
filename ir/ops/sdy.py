"""Shardy (`sdy`): how values are divided among the devices of a mesh. Programs keep their annotations as uninterpreted
text; for a single process they change nothing."""

from __future__ import annotations

from trivium.ir.attributes import Attribute
from trivium.ir.core import Region
from trivium.ir.declare import PURE, TERMINATOR, Op, Operand, Operands, Result, Results, Trait
from trivium.ir.errors import Unsupported, UnsupportedOpError, fail
from trivium.ir.ops.common import expect_compatible
from trivium.ir.ops.regions import inputs_of, outputs_of
from trivium.ir.types import TensorType

__all__ = ["ManualComputation", "Mesh", "Reshard", "ShardingConstraint", "ShardingGroup", "ShardyReturn"]


class Mesh(Op, name="sdy.mesh"):
    """Names a mesh of devices: its axes, and their extents."""

    sym_name: str
    mesh: Attribute


class ShardyIdentity(Op, traits={PURE}):
    """The operand, with an annotation of how it should be divided."""

    input: Operand
    sharding: Attribute
    result: Result

    def infer(input):
        return input

    def check(input, result):
        expect_compatible("C1", input=input, result=result)

    def evaluate(input):
        return input


class ShardingConstraint(ShardyIdentity, name="sdy.sharding_constraint"):
    """The operand, divided as `sharding` says."""


class Reshard(ShardyIdentity, name="sdy.reshard"):
    """The operand, moved so that it is divided as `sharding` says."""


class ShardingGroup(Op, name="sdy.sharding_group", traits={PURE}):
    """Asks that the operand should be divided as the others of its group are."""

    input: Operand
    group_id: int

    def evaluate(input):
        return ()


class ShardyReturn(Op, name="sdy.return", traits={PURE, TERMINATOR}):
    """Ends a region of Shardy, with the values that it returns."""

    values: Operands


class ManualComputation(Op, name="sdy.manual_computation", traits={Trait.ISOLATED}):
    """Runs `body` on each device's part of `tensors`, and joins the parts of the results. It can be evaluated only if
    the parts are the whole tensors, as on a mesh of one device."""

    tensors: Operands
    in_shardings: Attribute
    out_shardings: Attribute
    manual_axes: Attribute
    body: Region
    results: Results

    def check(tensors, body, results):
        for label, name, wholes, parts in (
            ("C1", "tensors", tensors, inputs_of(body)),
            ("C2", "results", results, outputs_of(body)),
        ):
            if list(map(_element_and_rank, wholes)) != list(map(_element_and_rank, parts)):
                fail(label, f"{name} have types {list(map(str, wholes))}, body has parts {list(map(str, parts))}")

    def evaluate(op, tensors, body):
        if op.operand_types != inputs_of(op.body) or op.result_types != outputs_of(op.body):
            reason = "its parts differ from the wholes, which takes several devices"
            missing = Unsupported(op.NAME, first=op.location.describe(), reason=reason)
            raise UnsupportedOpError("ops that one device cannot evaluate", [missing])
        return body(*tensors)


def _element_and_rank(kind: object) -> object:
    return (kind.element_type, kind.rank) if isinstance(kind, TensorType) else kind
