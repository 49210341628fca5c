"""Artifacts of every version, as MLIR reads them."""

import pytest

from tests.ir.bytecode.read_back import VERSIONS, programs, read_back

pytestmark = pytest.mark.jax


def test_read_back(conformance):
    """Every sixth of StableHLO's own test programs; `tests.ir.bytecode.read_back`, run as a program, reads all."""
    count = 0
    for name, module in programs(conformance, every=6):
        count += 1
        for version in VERSIONS:
            assert read_back(module, version) in ("equal", "refused"), f"{name}, {version}"
    assert count > 300
