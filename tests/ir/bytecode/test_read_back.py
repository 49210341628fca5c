"""Artifacts of every version, read back by MLIR."""

import pytest

from tests.ir.bytecode.read_back import VERSIONS, programs, read_back
from tests.ir.bytecode.test_mlir import OTHER_DIALECTS
from tests.ir.ops.records import collect
from tests.ir.text.test_records import known_to_mlir

pytestmark = pytest.mark.jax


def test_programs(conformance):
    """Reads every sixth of StableHLO's own test programs that `test_mlir.py` leaves out. It compares the others, also
    with the bytes that MLIR writes; `tests.ir.bytecode.read_back`, run as a program, reads all of them."""
    count = 0
    for name, module in programs(conformance, every=6, containing=OTHER_DIALECTS):
        count += 1
        assert set(read_back(module, *VERSIONS).values()) <= {"equal", "refused"}, name
    assert count > 60


def test_records():
    """Every op except those that JAX's MLIR does not know yet."""
    for record in filter(known_to_mlir, collect()):
        assert set(read_back(record.module(), "0.20.0", "1.17.0").values()) <= {"equal", "refused"}, str(record)
