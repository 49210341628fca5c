"""The words of a GPU, as each dialect says them in LLVM's text."""

from __future__ import annotations

import llvmlite.ir as ll
import pytest

from trivium.backends.gpu.amdgcn import Amdgcn
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.nvptx import Nvptx
from trivium.backends.gpu.nvptx import target as nvptx_target
from trivium.backends.gpu.spirv import SpirV
from trivium.backends.gpu.spirv import target as spirv_target
from trivium.backends.llvm.code import I32, Code


def emitted(dialect: Dialect) -> str:
    """Returns a kernel that meets twice, between which it writes to memory of the block."""
    module = ll.Module("words")
    builder = ll.IRBuilder(dialect.define(module, "k0", 1, 64).append_basic_block("entry"))
    code = Code(builder, nvptx_target("sm_80") if isinstance(dialect, Nvptx) else spirv_target())
    dialect.barrier(code)
    builder.store(dialect.thread(code), dialect.shared(code, 256))
    dialect.barrier(code)
    builder.ret_void()
    return dialect.text(module)


@pytest.mark.parametrize(
    ("dialect", "barrier"),
    [
        (Nvptx(), "llvm.nvvm.barrier.cta.sync.aligned.all"),
        (SpirV(), "_Z7barrierj"),
        (Amdgcn(64), "llvm.amdgcn.s.barrier"),
    ],
)
def test_words(dialect: Dialect, barrier: str) -> None:
    text = emitted(dialect)
    (declared,) = (line for line in text.splitlines() if line.startswith("declare") and barrier in line)
    assert "convergent" in declared
    assert text.count("call") == 3
    assert '@"shared" = internal addrspace(3) global [256 x i8] undef, align 16' in text
    assert f"define {dialect.convention} void" in text


def test_words_that_are_exchanged() -> None:
    module = ll.Module("words")
    builder = ll.IRBuilder(Nvptx().define(module, "k0", 1, 64).append_basic_block("entry"))
    code = Code(builder, nvptx_target("sm_80"))
    Nvptx().shuffled(code, I32(7), 16)
    Nvptx().shuffled(code, I32(7), None)
    text = str(module)
    assert 'shfl.sync.down.i32"(i32 -1, i32 7, i32 16, i32 31)' in text
    assert 'shfl.sync.idx.i32"(i32 -1, i32 7, i32 0, i32 31)' in text
    assert SpirV().shuffles == 1
