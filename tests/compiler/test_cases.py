"""File tests of fusion and lowering (see `tests.file_cases`): each case is a small program, and the steps and kernels
that it becomes on a processor with AVX2.

`// SHAPES: 2x3 -` specifies the shapes of the arguments of a program with dynamic shapes; `-` means that of the type.
The kernels must also compute what the program computes, in the interpreter of kernels.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.compiler.targets import TARGET
from tests.file_cases import FileCase, file_cases
from tests.random_programs.arrays import epsilon, greatest, is_inexact, values, wide
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.pipeline import inline, optimize, specialize
from trivium.compiler.program import Program
from trivium.compiler.verifier import verify
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

ORIGINS = re.compile(r"  // <text>.*")
"""The locations of the ops of a launch: line numbers that are irrelevant to the case."""

SUMMED = 64
"""The number of rounding errors that may add up in one element."""


def static(module: Module, shapes: list[str]) -> Module:
    """Returns the module for arguments of the given shapes."""
    inputs = module.main.function_type.inputs
    given = [
        kind.shape if text == "-" else tuple(map(int, text.split("x")))
        for kind, text in zip(inputs, shapes, strict=True)
    ]
    return specialize(inline(module), given, {})


def printed(program: Program) -> str:
    return "\n".join([ORIGINS.sub("", str(program)), *map(str, program.kernels())])


def expect_close(result: np.ndarray, expected: np.ndarray) -> None:
    """Expects equality, up to the order in which numbers are added."""
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    if not is_inexact(expected.dtype):
        np.testing.assert_array_equal(result, expected)
        return
    allowed = SUMMED * epsilon(expected.dtype)
    np.testing.assert_allclose(wide(result), wide(expected), rtol=allowed, atol=allowed * min(greatest(expected), 1e6))


@pytest.mark.parametrize("case", list(file_cases(Path(__file__).parent / "cases")))
def test_case(case: FileCase) -> None:
    module = parse(case.program())
    module.verify()
    if shapes := case.option("SHAPES"):
        module = static(module, shapes.split())
    program = lower(optimize(module, verify=True), TARGET)
    verify(program)
    case.expect(printed(program))
    arguments = [values(seed, kind) for seed, kind in enumerate(module.main.function_type.inputs)]
    with np.errstate(all="ignore"):
        expected = evaluate(module, *arguments)
    if not any(isinstance(op, ops.Rng) for op in module.walk()):  # `rng` draws from a hidden state
        for result, wanted in zip(interpret(program, *arguments), expected, strict=True):
            expect_close(result, wanted)
