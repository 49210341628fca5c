"""StableHLO's programs of dynamic shape, run with shapes and arguments of our choice. The results are compared with
those of XLA for the same shapes, and with those of the function of JAX that the program is named after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.ir.dynamic_programs import Program, run_by_xla
from trivium.ir.errors import VerificationError
from trivium.ir.interpreter import evaluate

SIZES = ((5, 3, 6), (2, 7, 4))
"""The values of a program's dimension variables, in order."""

WRONG = {"conv_general_dilated_1d_stride_2_even", "conv_general_dilated_1d_stride_2_odd"}
"""Programs that break C2 of `dynamic_conv`: they have strides for two dimensions, where there is only one."""


@pytest.fixture(scope="module")
def folder(conformance) -> Path:
    return conformance / "stablehlo" / "testdata" / "dynamic"


def read(folder: Path, sizes: Sequence[int]) -> list[Program]:
    programs = [Program.read(path, sizes) for path in sorted(folder.glob("*.mlir"))]
    return [program for program in programs if program.name not in WRONG]


@pytest.mark.parametrize("sizes", SIZES)
def test_all_run(folder, sizes):
    programs = read(folder, sizes)
    assert len(programs) == 290
    for program in programs:
        program.module.verify()
        results = evaluate(program.module, *program.arguments)
        for result, kind in zip(results, program.result_types, strict=True):
            assert result.dtype == kind.dtype
            assert all(extent in (None, n) for extent, n in zip(kind.shape, result.shape, strict=True))


def test_compiled(folder):
    """Programs compile for the shapes of the arguments, and for the values of dimension variables."""
    assert compare(read(folder, SIZES[0]), lambda program: trivium.compile(program.module)(*program.arguments)) == {}


@pytest.mark.jax
def test_equal_to_xla(folder):
    pytest.importorskip("jax")
    assert compare(read(folder, SIZES[0]), run_by_xla) == {}


@pytest.mark.jax
def test_equal_to_jax(folder):
    """The names of the other programs do not include all the arguments that JAX was given, such as indices to scatter
    to, or the shape of windows."""
    jax = pytest.importorskip("jax")
    from tests.ir.jax_functions import function_of

    def run(program: Program) -> Sequence[Any]:
        with jax.enable_x64(True):
            return jax.tree.leaves(function_of(program.name)(*program.arrays()))

    known = [program for program in read(folder, SIZES[1]) if function_of(program.name)]
    assert len(known) == 170
    assert compare(known, run) == {}


def compare(programs: Sequence[Program], run: Callable[[Program], Sequence[Any]]) -> dict[str, str]:
    """Returns the programs whose results differ from those of `run`, and how."""
    failed = {}
    for program in programs:
        results = evaluate(program.module, *program.arguments)
        try:
            for result, expected in zip(results, run(program), strict=True):
                expect_near(result, np.asarray(expected))
        except AssertionError as error:
            failed[program.name] = str(error)
    return failed


def expect_near(result: np.ndarray, expected: np.ndarray) -> None:
    """Floats may differ by the rounding errors of a sum of a hundred terms, or of a function of the math library;
    everything else is equal."""
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected)
        return
    epsilon = float(ml_dtypes.finfo(result.dtype).eps)
    bound = epsilon if result.dtype.itemsize == 2 else 50 * epsilon
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(result.astype(wide), expected.astype(wide), rtol=bound, atol=bound)


@pytest.mark.jax
@pytest.mark.parametrize("name", sorted(WRONG))
def test_wrong_programs(folder, name):
    """The programs are refused as they are, by XLA too. With one stride, as their names say, they compute JAX's
    functions."""
    jax = pytest.importorskip("jax")
    from tests.ir.jax_functions import function_of

    program = Program.read(folder / f"{name}_dynamic.mlir", SIZES[0])
    with pytest.raises(VerificationError, match=r"\[C2\] window_strides has 2 entries, expected 1"):
        program.module.verify()
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"same dimension-size as size of window dimensions \(1\)"):
        run_by_xla(program)
    meant = program.with_text(program.text.replace("array<i64: 2, 2>", "array<i64: 2>"))
    (result,) = evaluate(meant.module, *meant.arguments)
    expect_near(result, np.asarray(function_of(name)(*meant.arrays())))
