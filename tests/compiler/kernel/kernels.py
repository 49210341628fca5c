"""Kernels that several tests use."""

from __future__ import annotations

from trivium.compiler.kernel import (
    Access,
    Buffer,
    Contraction,
    ContractionLoop,
    Kernel,
    KernelBuilder,
    Subscript,
    contraction_kernel,
)
from trivium.compiler.kernel.index import variable


def scaled(name: str = "scaled", factor: float = 2.0) -> Kernel:
    b = KernelBuilder(name)
    x, y = b.input("x", "f32", (4, 8)), b.output("y", "f32", (4, 8))
    with b.parallel(4, 8) as (i, j):
        b.store(y, b.multiply(b.load(x, i, j), factor), i, j)
    return b.build()


def matmul() -> Kernel:
    loops = (ContractionLoop("m", 4), ContractionLoop("n", 5), ContractionLoop("k", 6))
    a, w, out = Buffer("a", "f32", (4, 6), "in"), Buffer("w", "f32", (6, 5), "in"), Buffer("out", "f32", (4, 5), "out")
    m, n, k = map(variable, loops)
    lhs, rhs = Access(a, (Subscript(m), Subscript(k))), Access(w, (Subscript(k), Subscript(n)))
    b = KernelBuilder("epilogue")
    with b.block("f32", "i64", "i64") as epilogue:
        total, m, n = epilogue.parameters
        b.store(out, total, m, n)
    return contraction_kernel("matmul", [a, w, out], Contraction(loops, lhs, rhs, "f32", epilogue))
