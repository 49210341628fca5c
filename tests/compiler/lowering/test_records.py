"""Compiled equals evaluated, for every record of every op; and every op has a way to be compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import trivium
from tests.compiler.lowering.running import run
from tests.ir.ops.records import Record, collect
from tests.ir.ops.test_records import error_allowed, widest
from trivium.compiler.compile import lower
from trivium.compiler.lowering import has_lowering
from trivium.compiler.passes.decompose import DECOMPOSITIONS, Decompose
from trivium.compiler.passes.quantization import ExpandQuantized
from trivium.ir import ops
from trivium.ir.declare import OPS
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import TensorType, is_integer

LEAST_ULPS = 4
"""Units of the last place that compiled functions may be off, where the record asks for less."""

INLINED = {
    *("stablehlo.composite", "stablehlo.return", "stablehlo.optimization_barrier"),
    *("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize"),
}
"""Ops that are gone, or only views, before kernels are built."""

OF_CONSTANTS = {ops.DynamicConv, ops.DynamicGather, ops.DynamicPad, ops.RealDynamicSlice}
"""Ops that are compiled where their sizes are constants, which those of a record are not."""

SEVERAL_DEVICES = "a compiled program runs on one device, and meets no other"
HOST_QUEUES = "a compiled program has no channels and queues yet, nor tokens that order them"

GAPS = {
    "stablehlo.after_all": HOST_QUEUES,
    "stablehlo.all_gather": SEVERAL_DEVICES,
    "stablehlo.all_reduce": SEVERAL_DEVICES,
    "stablehlo.all_to_all": SEVERAL_DEVICES,
    "stablehlo.async_done": SEVERAL_DEVICES,
    "stablehlo.async_start": SEVERAL_DEVICES,
    "stablehlo.collective_broadcast": SEVERAL_DEVICES,
    "stablehlo.collective_permute": SEVERAL_DEVICES,
    "stablehlo.collective_reduce": SEVERAL_DEVICES,
    "stablehlo.create_token": HOST_QUEUES,
    "stablehlo.cross-replica-sum": SEVERAL_DEVICES,
    "stablehlo.infeed": HOST_QUEUES,
    "stablehlo.outfeed": HOST_QUEUES,
    "stablehlo.partition_id": SEVERAL_DEVICES,
    "stablehlo.recv": HOST_QUEUES,
    "stablehlo.reduce_scatter": SEVERAL_DEVICES,
    "stablehlo.replica_id": SEVERAL_DEVICES,
    "stablehlo.send": HOST_QUEUES,
}
"""Ops that cannot be compiled, and why."""

RECORDS = [record for record in collect() if record.op.NAME not in GAPS]
COMPILED = [record for record in RECORDS if record.op not in OF_CONSTANTS]

OF_SHAPES = OF_CONSTANTS | {ops.DynamicBroadcastInDim, ops.DynamicIota, ops.DynamicReshape, ops.Rng}
"""Ops with lists of extents, or of places, as operands, whose own extents are known."""


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in COMPILED])
def test_compiled_equals_evaluated(record: Record) -> None:
    module = record.module()
    ExpandQuantized().run(module)
    Decompose().run(module)
    expect_equal(record, record.module(), run(lower(module), record.arrays))


@pytest.mark.parametrize("record", [pytest.param(record, id=str(record)) for record in RECORDS])
def test_with_unknown_extents(record: Record) -> None:
    """Compiled for the shapes that the arguments turn out to have."""
    types = [_of_unknown_extents(record, kind) for kind in record.module().main.function_type.inputs]
    function = Function.build("main", types, lambda builder, *given: record.add(builder, given))
    module = Module.build(functions=[function])
    expect_equal(record, module, trivium.compile(module)(*record.arrays))


def _of_unknown_extents(record: Record, kind: Any) -> Any:
    if record.op in OF_SHAPES and is_integer(kind.element_type):
        return kind
    return kind.with_shape([None] * kind.rank)


def expect_equal(record: Record, module: Module, results: Sequence[np.ndarray]) -> None:
    """Demands what the interpreter makes of the module."""
    with np.errstate(all="ignore"):
        expected = evaluate(module, *record.arrays)
    for result, wanted, kind in zip(results, expected, module.main.function_type.results, strict=True):
        assert isinstance(kind, TensorType)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        if record.op is ops.Rng:  # draws from hidden state
            continue
        tolerance = error_allowed(kind, max(record.ulps, LEAST_ULPS))
        np.testing.assert_allclose(widest(result), widest(wanted), rtol=tolerance, atol=tolerance * 1e-3)


@pytest.mark.parametrize("name", sorted(name for name in OPS if name.partition(".")[0] in ("stablehlo", "chlo")))
def test_every_op_has_a_lowering(name: str) -> None:
    decomposed = OPS[name] in DECOMPOSITIONS.patterns
    assert has_lowering(OPS[name]) + decomposed + (name in INLINED) + (name in GAPS) == 1
