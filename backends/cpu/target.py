"""What code emission must know of a processor: its name, its features, and how many bytes its vectors hold."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import llvmlite.binding as llvm

# Level 1 was measured to give the speed of level 3 on code that is vectorized already. Addresses take 64 bits: in a
# large process, the loader may put code and its data far apart.
CODE_GENERATION = {"opt": 1, "reloc": "static", "codemodel": "large"}


@dataclass(frozen=True)
class Target:
    """A processor that LLVM emits code for. `fma`, `half`: fused multiply-add, and
    conversions from and to f16, are instructions."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    fma: bool
    half: bool

    def machine(self) -> llvm.TargetMachine:
        """LLVM's code generator."""
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.cpu, features=self.features, **CODE_GENERATION)


@functools.cache
def host() -> Target:
    """The processor that this process runs on."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    x86 = triple.startswith(("x86_64", "i686"))
    vector_bytes = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    fma = bool(features.get("fma")) if x86 else True
    half = bool(features.get("f16c")) if x86 else True
    return Target(triple, llvm.get_host_cpu_name(), features.flatten(), vector_bytes, fma, half)
