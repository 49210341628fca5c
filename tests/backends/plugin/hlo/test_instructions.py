"""Records of ops, as XLA reads their instructions: it accepts the program which, turned back into StableHLO, computes
the same."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jaxlib")

from tests.backends.plugin.hlo.reading import run, shown, written
from tests.compiler.lowering.coverage import COMPILED, expect_equal
from tests.ir.ops.records import Record, collect
from trivium.backends.plugin.hlo.instructions import ROWS
from trivium.ir import ops
from trivium.ir.types import is_complex

LOST = ("custom_call_target=", "topk(", "algorithm=")
"""What XLA's importer has no StableHLO for, or forgets."""


def kind(record: Record) -> str:
    """Returns what distinguishes instructions of an op: its attributes."""
    named = {name: str(value) for name, value in record.attributes.items() if not callable(value)}
    return f"{record.op.NAME} {sorted(named.items())}"


def is_chosen(record: Record) -> bool:
    """Whether the op has an instruction, and XLA's importer survives it: it ends the process if complex numbers become
    booleans."""
    kinds = [value.type.element_type for value in record.module().main.arguments]
    return record.op in ROWS and not (record.op is ops.Convert and any(map(is_complex, kinds)))


CHOSEN = {kind(record): record for record in reversed(COMPILED) if is_chosen(record)}.values()


@pytest.mark.parametrize("record", CHOSEN, ids=str)
def test_instructions_mean_what_the_ops_mean(record: Record) -> None:
    text = shown(written(record.module()))
    if not any(word in text for word in LOST):
        expect_equal(record, record.module(), run(record.module(), record.arrays))


COLLECTIVES = {
    "stablehlo.all_gather": "all-gather(",
    "stablehlo.all_reduce": "all-reduce(",
    "stablehlo.all_to_all": "all-to-all(",
    "stablehlo.collective_broadcast": "collective-broadcast(",
    "stablehlo.collective_permute": "collective-permute(",
    "stablehlo.reduce_scatter": "reduce-scatter(",
}


@pytest.mark.parametrize("record", [record for record in collect() if record.op.NAME in COLLECTIVES], ids=str)
def test_collectives(record: Record) -> None:
    """They exchange values only in a program of several devices, whose text XLA prints."""
    text = shown(written(record.module(), replicas=2))
    assert COLLECTIVES[record.op.NAME] in text or f'"{record.op.NAME}"' in text
