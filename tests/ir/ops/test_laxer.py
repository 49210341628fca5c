"""Loading accepts what MLIR accepts: programs that violate the specification, but pass MLIR's verifier, are read, and
only `verify` refuses them, for the constraint that they violate."""

from __future__ import annotations

import pytest

from tests.ir.bytecode import mlir
from tests.ir.ops.laxer import accepted
from trivium.ir.bytecode import deserialize
from trivium.ir.errors import VerificationError
from trivium.ir.text import parse

pytestmark = pytest.mark.jax


def test_programs_that_mlir_accepts_are_read() -> None:
    pytest.importorskip("jaxlib.mlir.ir")
    assert accepted()
    for (op, label), taken in accepted().items():
        module = parse(taken.text)
        with pytest.raises(VerificationError) as caught:
            module.verify()
        assert caught.value.label == label, op.NAME


def test_artifacts_that_mlir_writes_of_them_are_read() -> None:
    pytest.importorskip("jaxlib.mlir.ir")
    written = 0
    for taken in accepted().values():
        try:
            artifact = mlir.artifact(taken.text, "1.17.0")
        except Exception:
            continue  # MLIR itself cannot write it
        deserialize(artifact)
        written += 1
    assert written > len(accepted()) // 2
