"""PTX, which NVIDIA's driver compiles for the GPU that it finds."""

from __future__ import annotations

import llvmlite.ir as ll

from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.code import I32, Code
from trivium.ir.errors import Error

TRIPLE = "nvptx64-nvidia-cuda"
VOID = ll.VoidType()
CONSTANT = 4
"""The address space of constants."""

FEATURES = {"sm_80": "+ptx80", "sm_90": "+ptx80", "sm_90a": "+ptx80", "sm_100": "+ptx86"}
"""For each architecture that code is emitted for, the version of PTX that has it."""


class Nvptx(Dialect):
    """NVVM's words."""

    convention = "ptx_kernel"
    optimization = 3
    makes_text = True
    shuffles = 32

    def limit(self, function: ll.Function, threads: int) -> None:
        # llvmlite knows no attributes with values, and its set refuses what it does not know.
        set.add(function.attributes, f'"nvvm.maxntid"="{threads}"')

    def thread(self, code: Code) -> ll.Value:
        return self._number(code, "tid")

    def block(self, code: Code) -> ll.Value:
        return self._number(code, "ctaid")

    def barrier(self, code: Code) -> None:
        self.call(code, "llvm.nvvm.barrier.cta.sync.aligned.all", VOID, [I32(0)], "", ("convergent",))

    def shuffled(self, code: Code, word: ll.Value, lanes: int | None) -> ll.Value:
        kind, operand = ("idx", 0) if lanes is None else ("down", lanes)
        operands = [I32(-1), word, I32(operand), I32(31)]
        return self.call(code, f"llvm.nvvm.shfl.sync.{kind}.i32", I32, operands, "", ("convergent",))

    def _number(self, code: Code, register: str) -> ll.Value:
        return self.call(code, f"llvm.nvvm.read.ptx.sreg.{register}.x", I32, (), "")


def emitted_for(major: int, minor: int) -> str:
    """Returns the architecture that code for a device of this compute capability is emitted for: the newest one that
    runs there."""
    plain = {int(name[3:]): name for name in FEATURES if name[3:].isdecimal()}
    fitting = [number for number in plain if number <= 10 * major + minor]
    if not fitting:
        raise Error(f"a GPU of compute capability {major}.{minor} is too old, expected at least {min(plain) / 10}")
    return plain[max(fitting)]


def target(architecture: str) -> GpuTarget:
    """Returns a GPU of NVIDIA's, of one of `FEATURES`."""
    if architecture not in FEATURES:
        raise Error(f"unknown architecture {architecture!r}, expected one of {', '.join(FEATURES)}")
    return GpuTarget(
        triple=TRIPLE,
        cpu=architecture,
        features=FEATURES[architecture],
        constant_space=CONSTANT,
        largest_block=512,
        # LLVM computes it from the quotient, which is rounded.
        remainder=False,
    )
