"""The machine's own limit: multiply-adds per second of one core, measured with a generated loop of independent vector
FMAs, nothing else in it."""

from __future__ import annotations

import ctypes
import time

import llvmlite.binding as llvm
import llvmlite.ir as ll

from trivium.backends.cpu.contraction.emission import I64, Emission
from trivium.backends.cpu.target import CpuTarget, host

CHAINS = 12
"""Enough to hide the latency of four or five cycles on two units, few enough for sixteen registers."""


def fma_loop(target: CpuTarget) -> ll.Module:
    """`float spin(i64 n)`: n rounds of CHAINS vector multiply-adds."""
    module = ll.Module("peak")
    module.triple = target.triple
    spin = ll.Function(module, ll.FunctionType(ll.FloatType(), [I64]), "spin")
    e = Emission(ll.IRBuilder(spin.append_basic_block("entry")), ll.FloatType(), target.vector_bytes // 4)
    scale = ll.Constant(e.vector, [0.5] * e.lanes)
    with e.loop(0, spin.args[0], carried=[e.zero] * CHAINS, nonempty=True) as loop:
        loop.next = [e.fma(total, scale, scale) for total in loop.carried]
    total = loop.carried[0]
    for chain in loop.carried[1:]:
        total = e.builder.fadd(total, chain)
    e.builder.ret(e.builder.extract_element(total, ll.Constant(ll.IntType(32), 0)))
    return module


class Peak:
    """`measure()` gives GFLOP/s of one core, now: machines slow down and speed up, so measure between contenders."""

    def __init__(self, target: CpuTarget | None = None, rounds: int = 400_000) -> None:
        self.target, self.rounds = target or host(), rounds
        parsed = llvm.parse_assembly(str(fma_loop(self.target)))
        self._engine = llvm.create_mcjit_compiler(parsed, self.target.machine())
        self._engine.finalize_object()
        self._spin = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(self._engine.get_function_address("spin"))

    def measure(self) -> float:
        begin = time.perf_counter()
        self._spin(self.rounds)
        seconds = time.perf_counter() - begin
        return self.rounds * CHAINS * (self.target.vector_bytes // 4) * 2 / seconds / 1e9


if __name__ == "__main__":
    peak = Peak()
    best, vector_bytes = max(peak.measure() for _ in range(50)), peak.target.vector_bytes
    print(f"{best:.1f} GFLOP/s a core ({peak.target.cpu}, {vector_bytes} byte vectors)")
