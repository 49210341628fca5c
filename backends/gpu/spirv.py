"""SPIR-V, which the OpenCL drivers of several vendors accept: kernels call OpenCL's built-in functions under their
mangled names."""

from __future__ import annotations

import re

import llvmlite.ir as ll

from trivium.backends.gpu.batches import launch_kind
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.code import I32, I64, Code

TRIPLE = "spirv64-unknown-unknown"
CONSTANT = 2
"""The address space of constants."""


_TRUNCATION = re.compile(r'^(\s+)%"([^"]+)"( = trunc \S+ \S+ to (\S+))$', re.MULTILINE)


class SpirV(Dialect):
    """OpenCL's words."""

    convention, inner_convention = "spir_kernel", "spir_func"
    # Levels 1 to 3 produce invalid modules: a bitwise and of a truncated number keeps an operand of 64 bits.
    optimization = 0

    def limit(self, function: ll.Function, threads: int) -> None:
        size = [I32(threads), I32(1), I32(1)]
        function.set_metadata("reqd_work_group_size", function.module.add_metadata(size))

    def thread(self, code: Code) -> ll.Value:
        return self._number(code, "_Z12get_local_idj")

    def grid_block(self, code: Code) -> ll.Value:
        return self._number(code, "_Z12get_group_idj")

    def barrier(self, code: Code) -> None:
        # of local and of global memory
        self.call(code, "_Z7barrierj", ll.VoidType(), [I32(3)], "spir_func", ("convergent",))

    def text(self, module: ll.Module) -> str:
        # llvmlite writes a comma between the metadata of a function, which LLVM refuses.
        text = re.sub(r"^(define .*?), (!\w+ !\d+)", r"\1 \2", str(module), flags=re.MULTILINE)
        # LLVM makes one instruction of a truncation and an extension that follows it, with an operand that is too wide.
        return _TRUNCATION.sub(r'\1%"\2.cut"\3\n\1%"\2" = freeze \4 %"\2.cut"', text)

    def _number(self, code: Code, name: str) -> ll.Value:
        return code.builder.trunc(self.call(code, name, I64, [I32(0)], "spir_func"), I32)


def target(**facts: object) -> GpuTarget:
    """Returns a device that takes SPIR-V."""
    # LLVM does not compile some operations on vectors, such as comparisons of booleans.
    facts = {"vectors": False, "launch_kind": launch_kind, **facts}
    return GpuTarget(triple=TRIPLE, cpu="", features="", constant_space=CONSTANT, **facts)  # type: ignore[arg-type]
