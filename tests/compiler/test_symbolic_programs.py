"""Functions with symbolic extents, exported by `jax.export` and compiled: the results are those of the interpreter."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import trivium
from tests.ir.exported_programs import CASES
from trivium.ir.bytecode import deserialize

SYMBOLIC = [name for name, case in CASES.items() if any(case.shapes)]


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_program(name: str) -> None:
    case = CASES[name]
    with jax.enable_x64(case.x64):
        module = deserialize(case.export().mlir_module_serialized)
    compiled = trivium.compile(module)
    for one, other in zip(compiled(*case.arguments), trivium.evaluate(module, *case.arguments), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=case.tolerance, atol=case.tolerance / 10)
