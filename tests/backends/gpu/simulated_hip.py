"""A simulated AMD GPU: modules that LLVM would compile for it run on the simulator, in waves of the same size, behind a
fake HIP driver (`fake_hip.cc`). This tests kernels in such waves, and `hip.py`, but neither LLVM's code generator for
AMD, nor its linker, nor speed."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from tests.backends.gpu.simulator import built, declared, entered, fresh_memory, on_this_processor, quick_machine
from trivium.backends.gpu import hip_library, lld
from trivium.backends.gpu.amdgcn import TRIPLE, WAVES
from trivium.backends.gpu.dialect import Assembling
from trivium.backends.gpu.hip import Hip
from trivium.backends.llvm.shared_object import link

WIDE, NARROW = "gfx90a", "gfx1100"
"""Architectures with waves of 64 and of 32 threads."""

INTRINSICS = {
    "workitem.id.x": "sim_thread",
    "workgroup.id.x": "sim_block",
    "s.barrier": "sim_barrier",
    "ds.bpermute": "sim_permute",
    "readfirstlane.i32": "sim_first",
}
"""The simulator's functions, with the same operands."""


def name(architecture: str) -> str:
    return f"libtrivium-fake-{architecture}.so"


@functools.cache
def library(architecture: str) -> Path:
    """Returns the fake HIP driver, on a machine with a GPU of this architecture."""
    options = f'-DARCHITECTURE="{architecture}"', f"-DWARP={WAVES[architecture]}"
    return built(name(architecture), "fake_hip.cc", options)


@functools.cache
def fake(architecture: str = WIDE) -> ctypes.CDLL:
    """Returns the library's functions for tests."""
    return declared(library(architecture))


@contextmanager
def simulated(architecture: str = WIDE) -> Iterator[None]:
    """Lets HIP be the fake one, and the assembler compile for the host, whose code needs no linker."""
    with pytest.MonkeyPatch.context() as patch, on_this_processor(for_the_host):
        patch.setattr(hip_library, "NAMES", (str(library(architecture)),))
        patch.setattr(lld, "linked", lambda code: code)
        hip_library.library.cache_clear()
        try:
            yield
        finally:
            hip_library.library.cache_clear()


@contextmanager
def opened(architecture: str = WIDE) -> Iterator[Hip]:
    """Opens a simulated device, and closes it."""
    with simulated(architecture), fresh_memory():
        device = Hip(0)
        try:
            yield device
        finally:
            device.close()


def for_the_host(text: str, how: Assembling) -> bytes:
    """Stands for the assembler: returns a shared object for this processor."""
    assert how.triple == TRIPLE
    module = llvm.parse_assembly(on_the_host(text))
    module.verify()
    return link([quick_machine().emit_object(module)], [name(how.cpu)])


def on_the_host(text: str) -> str:
    """Returns an AMD module as one of the host's, with a function that the simulator calls for each kernel."""
    text = re.sub(r"^target .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r'"amdgpu-[\w-]+"(="[\d,]+")?', "", text.replace("amdgpu_kernel ", ""))
    # All memory of the host has one address space, but for pointers' types.
    text = text.replace(", addrspace(5)\n", "\n")
    cast = r"addrspacecast ptr addrspace\(5\) (\S+) to ptr$"
    text = re.sub(cast, r"getelementptr i8, ptr \1, i64 0", text, flags=re.MULTILINE)
    for name, function in INTRINSICS.items():
        text = text.replace(f'@"llvm.amdgcn.{name}"', f"@{function}")
    return entered(text)
