"""Compiled results equal evaluated ones, for every record of every op; and every op can be compiled."""

from __future__ import annotations

from typing import Any

import pytest

import trivium
from tests.compiler.lowering.coverage import COMPILED, GAPS, INLINED, OF_CONSTANTS, RECORDS, expect_equal, lowered
from tests.compiler.lowering.running import run
from tests.ir.ops.records import Record
from trivium.compiler.lowering import has_lowering
from trivium.compiler.passes.decompose import DECOMPOSITIONS
from trivium.ir import ops
from trivium.ir.declare import OPS
from trivium.ir.func import Function, Module
from trivium.ir.types import is_integer

OF_SHAPES = OF_CONSTANTS | {ops.DynamicBroadcastInDim, ops.DynamicIota, ops.DynamicReshape, ops.Rng}
"""Ops with lists of extents, or of places, as operands; the extents of these lists themselves are known."""


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in COMPILED])
def test_compiled_equals_evaluated(record: Record) -> None:
    expect_equal(record, record.module(), run(lowered(record), record.arrays))


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in RECORDS])
def test_with_unknown_extents(record: Record) -> None:
    """Programs are compiled for the shapes that the arguments have at run time."""
    types = [_of_unknown_extents(record, kind) for kind in record.module().main.function_type.inputs]
    function = Function.build("main", types, lambda builder, *given: record.add(builder, given))
    module = Module.build(functions=[function])
    expect_equal(record, module, trivium.compile(module)(*record.arrays))


def _of_unknown_extents(record: Record, kind: Any) -> Any:
    if record.op in OF_SHAPES and is_integer(kind.element_type):
        return kind
    return kind.with_shape([None] * kind.rank)


@pytest.mark.parametrize("name", sorted(name for name in OPS if name.partition(".")[0] in ("stablehlo", "chlo")))
def test_every_op_has_a_lowering(name: str) -> None:
    decomposed = OPS[name] in DECOMPOSITIONS.patterns
    assert has_lowering(OPS[name]) + decomposed + (name in INLINED) + (name in GAPS) >= 1
