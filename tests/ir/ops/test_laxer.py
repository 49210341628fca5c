"""Loading takes what MLIR takes: programs that break the specification, and not MLIR's verifier, are read, and refused
only by `verify`, for the constraint that they break."""

from __future__ import annotations

import pytest

from tests.ir.ops.laxer import accepted
from trivium.ir.errors import VerificationError
from trivium.ir.text import parse

pytestmark = pytest.mark.jax


def test_what_mlir_takes_is_read() -> None:
    pytest.importorskip("jaxlib.mlir.ir")
    assert accepted()
    for (op, label), taken in accepted().items():
        module = parse(taken.text)
        with pytest.raises(VerificationError) as caught:
            module.verify()
        assert caught.value.label == label, op.NAME
