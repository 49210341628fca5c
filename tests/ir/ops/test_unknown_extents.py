"""Ops evaluate if the extents of their results are unknown: these follow from the operands."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from tests.ir.ops.records import Record, collect
from trivium.ir.declare import Op
from trivium.ir.errors import VerificationError
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import TensorType


def without_extents(record: Record) -> Module | None:
    """Returns the record's program with results of unknown extents; `None` if the op requires known extents."""
    module = record.module()
    for op in module.main.body.block:
        if type(op) is record.op:
            for result in op.results:
                if isinstance(result.type, TensorType):
                    result.type = result.type.with_shape([None] * result.type.rank)
    module.main.refresh_type()
    with suppress(VerificationError):
        module.verify()
        return module
    return None


@pytest.mark.parametrize("op", sorted({record.op for record in collect()}, key=lambda op: op.NAME))
def test_extents_follow_from_operands(op: type[Op]) -> None:
    for record in (record for record in collect() if record.op is op):
        if (module := without_extents(record)) is not None:
            with np.errstate(all="ignore"):
                results = evaluate(module, *record.arrays)
                expected = evaluate(record.module(), *record.arrays)
            assert [array.shape for array in results] == [array.shape for array in expected]
