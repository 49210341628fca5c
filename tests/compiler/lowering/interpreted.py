"""Programs for tests of lowering, run by the interpreter of programs: no backend is needed."""

from __future__ import annotations

import numpy as np

from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import optimize
from trivium.compiler.program import Program
from trivium.compiler.verifier import verify
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse


def lowered(text: str) -> Program:
    """Returns the program that a module becomes."""
    program = lower(optimize(parse(text)), TARGET)
    verify(program)
    return program


def function(arguments: str, results: str, *lines: str) -> str:
    return "\n".join([f"func.func @main({arguments}) -> ({results}) {{", *lines, "}"])


def expect_same(text: str, *arrays: np.ndarray, rtol: float = 0.0) -> Program:
    """Expects the results of the module itself, bit for bit unless `rtol` allows more. Returns the program."""
    program = lowered(text)
    with np.errstate(all="ignore"):
        expected = evaluate(parse(text), *arrays)
        found = interpret(program, *arrays)
    for result, wanted in zip(found, expected, strict=True):
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        if rtol:
            np.testing.assert_allclose(result, wanted, rtol=rtol)
        else:
            np.testing.assert_array_equal(_comparable(result), _comparable(wanted))
    return program


def _comparable(array: np.ndarray) -> np.ndarray:
    """Converts types that NumPy does not have to double precision: NumPy's functions do not know their NaNs."""
    return array if array.dtype.kind in "biufc" else array.astype(np.float64)
