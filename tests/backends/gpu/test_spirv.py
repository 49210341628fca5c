"""SPIR-V modules for which LLVM needs help."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.backends.gpu import tasks
from tests.backends.harness import elementwise, program_of
from tests.compiler.lowering.coverage import COMPILED
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.spirv import SpirV, target
from trivium.compiler.kernel import KernelBuilder, numpy_dtype


@pytest.mark.parametrize("wide", ["ui32", "ui64", "i32"])
@pytest.mark.parametrize("narrow", ["ui8", "i8", "i1"])
@pytest.mark.parametrize("between", ["ui16", "i16", "ui32"])
def test_truncated_and_extended(device: GpuClient, wide: str, narrow: str, between: str) -> None:
    b = KernelBuilder("convert")
    x, y = b.input("x", wide, (9,)), b.output("y", between, (9,))
    with b.parallel(9) as (i,):
        value = b.load(x, i)
        for dtype in (narrow, between):
            value = b.convert(value, dtype)
        b.store(y, value, i)
    a = (np.arange(9) * 77777).astype(numpy_dtype(wide))
    (result,) = device.load_program(program_of(b.build())).execute(a)
    np.testing.assert_array_equal(result, a.astype(numpy_dtype(narrow)).astype(numpy_dtype(between)))


def test_block_sizes_are_metadata() -> None:
    from trivium.backends.gpu.assembly import emit_program

    text = emit_program(program_of(elementwise("negate", ["f32"], "f32", 300)), SpirV(), target()).text
    assert "!0 = !{ i32 256, i32 1, i32 1 }" in text


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="spirv-val, of spirv-tools, is not installed")
def test_modules_are_valid() -> None:
    assert not [outcome for number in range(0, len(COMPILED), 45) if (outcome := tasks.spirv(number))]
