"""Which ops can be compiled, and by how much a result may differ: shared by the tests that compile every record and by
those that interpret the program it is lowered to. Loads no backend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.compiler.targets import TARGET
from tests.ir.ops.records import Record, collect
from tests.ir.ops.test_records import error_allowed, widest
from trivium.compiler.lower import lower
from trivium.compiler.passes.decompose import Decompose
from trivium.compiler.passes.quantization import ExpandQuantized
from trivium.compiler.passes.sharding import DropSharding
from trivium.compiler.program import Program
from trivium.compiler.target import Target
from trivium.compiler.verifier import verify
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import TensorType

LEAST_ULPS = 4
"""The units in the last place by which compiled functions may differ, if the record allows fewer."""

INLINED = {
    *("stablehlo.composite", "stablehlo.return", "stablehlo.optimization_barrier"),
    *("stablehlo.uniform_dequantize", "stablehlo.uniform_quantize"),
}
"""Ops that are removed, or become views, before kernels are built."""

OF_CONSTANTS = {ops.DynamicConv, ops.DynamicGather, ops.DynamicPad, ops.RealDynamicSlice}
"""Ops that are compiled only if their sizes are constants, which those of a record are not."""

SEVERAL_DEVICES = "a compiled program runs on one device, and meets no other"
QUEUES = "a compiled program has no queues"
HOST = "a run here has no host to exchange values with"
TOKENS = "a token is no result of a compiled program"

GAPS = {
    "stablehlo.after_all": TOKENS,
    "stablehlo.all_gather": SEVERAL_DEVICES,
    "stablehlo.all_reduce": SEVERAL_DEVICES,
    "stablehlo.all_to_all": SEVERAL_DEVICES,
    "stablehlo.async_done": SEVERAL_DEVICES,
    "stablehlo.async_start": SEVERAL_DEVICES,
    "stablehlo.collective_broadcast": SEVERAL_DEVICES,
    "stablehlo.collective_permute": SEVERAL_DEVICES,
    "stablehlo.collective_reduce": SEVERAL_DEVICES,
    "stablehlo.create_token": TOKENS,
    "stablehlo.cross-replica-sum": SEVERAL_DEVICES,
    "stablehlo.infeed": QUEUES,
    "stablehlo.outfeed": QUEUES,
    "stablehlo.partition_id": SEVERAL_DEVICES,
    "stablehlo.recv": HOST,
    "stablehlo.reduce_scatter": SEVERAL_DEVICES,
    "stablehlo.replica_id": SEVERAL_DEVICES,
    "stablehlo.send": HOST,
}
"""Ops whose records cannot be compiled and run by themselves, and why."""

RECORDS = [record for record in collect() if record.op.NAME not in GAPS]
COMPILED = [record for record in RECORDS if record.op not in OF_CONSTANTS]


def lowered(record: Record, target: Target = TARGET) -> Program:
    """Returns the program of a record, for a device."""
    module = record.module()
    DropSharding().run(module)
    ExpandQuantized().run(module)
    Decompose().run(module)
    program = lower(module, target)
    verify(program, target.loops_in_order)
    return program


def expect_equal(record: Record, module: Module, results: Sequence[np.ndarray]) -> None:
    """Expects the results of the interpreter for the module."""
    with np.errstate(all="ignore"):
        expected = evaluate(module, *record.arrays)
    for result, wanted, kind in zip(results, expected, module.main.function_type.results, strict=True):
        assert isinstance(kind, TensorType)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        if record.op is ops.Rng:  # it draws from hidden state
            continue
        tolerance = error_allowed(kind, max(record.ulps, LEAST_ULPS))
        np.testing.assert_allclose(widest(result), widest(wanted), rtol=tolerance, atol=tolerance * 1e-3)
