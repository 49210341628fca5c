"""The machine's own limits: multiply-adds per second of one core, measured with a generated loop of independent vector
FMAs and nothing else, and bytes per second that a core reads from memory."""

from __future__ import annotations

import ctypes
import time

import llvmlite.ir as ll
import numpy as np

from trivium.backends.cpu.code import Code
from trivium.backends.cpu.jit import compile_module
from trivium.backends.cpu.target import CpuTarget, host
from trivium.backends.llvm.code import F32, I32, I64, literal
from trivium.backends.llvm.numbers import Int
from trivium.backends.llvm.vectors import Vectors

CHAINS = 12
"""Enough to hide the latency of four or five cycles on two units, few enough for sixteen registers."""


def fma_loop(target: CpuTarget) -> ll.Module:
    """`float spin(i64 n)`: n iterations of CHAINS vector multiply-adds."""
    module = ll.Module("peak")
    module.triple = target.triple
    spin = ll.Function(module, ll.FunctionType(F32, [I64]), "spin")
    builder = ll.IRBuilder(spin.append_basic_block("entry"))
    e = Vectors(builder, target, F32, target.vector_bytes // 4)
    scale = literal(e.vector, 0.5)
    with e.loop(0, Int(e, spin.args[0]), carried=[e.zero] * CHAINS, nonempty=True) as loop:
        loop.next = [e.fused(total, scale, scale) for total in loop.carried]
    total = loop.carried[0]
    for chain in loop.carried[1:]:
        total = e.builder.fadd(total, chain)
    e.builder.ret(e.builder.extract_element(total, I32(0)))
    return module


class Peak:
    """Returns the GFLOP/s of one core at the moment. Processors slow down and speed up, so measure between
    contenders."""

    def __init__(self, target: CpuTarget | None = None, rounds: int = 400_000) -> None:
        self.target, self.rounds = target or host(), rounds
        self._code = Code(compile_module(str(fma_loop(self.target)), self.target))
        self._spin = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(self._code.address("spin"))

    def measure(self) -> float:
        begin = time.perf_counter()
        self._spin(self.rounds)
        seconds = time.perf_counter() - begin
        return self.rounds * CHAINS * (self.target.vector_bytes // 4) * 2 / seconds / 1e9


READ = 1 << 26
"""Bytes that no cache of one core holds."""


def read_rate() -> float:
    """Returns the bytes that one core reads from memory in a second, in GB/s, now."""
    numbers = np.ones(READ // 8)
    numbers.max()
    begin = time.perf_counter()
    numbers.max()
    return READ / (time.perf_counter() - begin) / 1e9


if __name__ == "__main__":
    peak = Peak()
    best, vector_bytes = max(peak.measure() for _ in range(50)), peak.target.vector_bytes
    print(f"{read_rate():.1f} GB/s, {best:.1f} GFLOP/s a core ({peak.target.cpu}, {vector_bytes} byte vectors)")
