"""Code for AMD GPUs, with LLVM's intrinsics for GCN, RDNA and CDNA. The result is an object file, which a linker turns
into a code object that AMD's driver can load."""

from __future__ import annotations

import re

import llvmlite.ir as ll

from trivium.backends.gpu import lld
from trivium.backends.gpu.batches import launch_kind
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.code import I32, Code
from trivium.ir.errors import Error

TRIPLE = "amdgcn-amd-amdhsa"
VOID = ll.VoidType()

CONSTANT, PRIVATE = 4, 5
"""The address spaces of constants, and of a thread's own memory."""

LAYOUT = (
    "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48-"
    "p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-v2048:2048-"
    "n32:64-S32-A5-G1-ni:7:8:9"
)
"""LLVM's sizes and alignments. Pointers to memory of the block and of a thread have 32 bits."""

VERSION = 500
"""The version of code objects, times 100: all drivers of ROCm 6 load the fifth."""

WAVES = {
    **dict.fromkeys(("gfx908", "gfx90a", "gfx942", "gfx950"), 64),
    **dict.fromkeys(("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"), 32),
}
"""For each architecture that code is emitted for, the number of threads that run in step. RDNA's could also be 64, but
would then exchange words only within each half."""

NOT_GIVEN = (
    '"amdgpu-implicitarg-num-bytes"="0"',
    *(f'"amdgpu-no-{what}-{axis}"' for what in ("workgroup-id", "workitem-id") for axis in "yz"),
    *(f'"amdgpu-no-{what}"' for what in ("dispatch-id", "dispatch-ptr", "implicitarg-ptr", "queue-ptr")),
)
"""Attributes that say what kernels need not be given beside their arguments and numbers."""

_ALLOCA = re.compile(r'^(\s+)%"([^"]+)" = alloca (.*)$', re.MULTILINE)
_ATOMIC = re.compile(r"^(\s+.* = (?:atomicrmw|cmpxchg) .*?) (monotonic.*)$", re.MULTILINE)


class Amdgcn(Dialect):
    """The words of a device whose waves have `wave` threads."""

    convention = "amdgpu_kernel"
    optimization = 3

    def __init__(self, wave: int):
        self.shuffles = wave

    def limit(self, function: ll.Function, threads: int) -> None:
        # llvmlite knows no such attributes, and its set refuses what it does not know.
        set.add(function.attributes, f'"amdgpu-flat-work-group-size"="{threads},{threads}"')
        for given in NOT_GIVEN:
            set.add(function.attributes, given)

    def thread(self, code: Code) -> ll.Value:
        return self.call(code, "llvm.amdgcn.workitem.id.x", I32, (), "")

    def grid_block(self, code: Code) -> ll.Value:
        return self.call(code, "llvm.amdgcn.workgroup.id.x", I32, (), "")

    def barrier(self, code: Code) -> None:
        # By itself, the barrier orders no memory.
        code.builder.fence("release", targetscope="workgroup")
        self.call(code, "llvm.amdgcn.s.barrier", VOID, (), "", ("convergent",))
        code.builder.fence("acquire", targetscope="workgroup")

    def fence(self, code: Code) -> None:
        code.builder.fence("acq_rel", targetscope="agent")

    def shuffled(self, code: Code, word: ll.Value, lanes: int | None) -> ll.Value:
        if lanes is None:
            return self.call(code, "llvm.amdgcn.readfirstlane.i32", I32, (word,), "", ("convergent",))
        # The other thread's number, in bytes. Beyond the wave, it begins again.
        other = code.builder.mul(code.builder.add(self.thread(code), I32(lanes)), I32(4))
        return self.call(code, "llvm.amdgcn.ds.bpermute", I32, (other, word), "", ("convergent",))

    def text(self, module: ll.Module) -> str:
        module.data_layout = LAYOUT
        if "llvm.module.flags" not in module.namedmetadata:
            flag = I32(1), "amdhsa_code_object_version", I32(VERSION)
            module.add_named_metadata("llvm.module.flags", flag)
        # A thread's own memory has an address space.
        private = rf'\1%"\2.private" = alloca \3, addrspace({PRIVATE})'
        cast = rf'\1%"\2" = addrspacecast ptr addrspace({PRIVATE}) %"\2.private" to ptr'
        text = _ALLOCA.sub(f"{private}\n{cast}", str(module))
        # Atomic operations are those of one device, on its own memory: it has instructions for them.
        return _ATOMIC.sub(r'\1 syncscope("agent") \2, !amdgpu.no.fine.grained.memory !{}', text)

    def linked(self, code: bytes) -> bytes:
        return lld.linked(code)


def target(architecture: str) -> GpuTarget:
    """Returns an AMD GPU with one of the architectures in `WAVES`."""
    if architecture not in WAVES:
        raise Error(f"unknown AMD architecture {architecture!r}, expected one of {', '.join(WAVES)}")
    wave = WAVES[architecture]
    return GpuTarget(
        triple=TRIPLE,
        cpu=architecture,
        features=f"+wavefrontsize{wave}",
        constant_space=CONSTANT,
        launch_kind=launch_kind,
        warp=wave,
        largest_block=512,
        shared_memory_bytes=64 << 10,
        scans=True,
        # LLVM computes it from the quotient, which is rounded.
        remainder=False,
    )
