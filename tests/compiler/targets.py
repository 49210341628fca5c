"""A device for tests of the compiler, which need no backend: a processor with AVX2."""

from dataclasses import replace

from trivium.compiler.kernel import Kernel
from trivium.compiler.target import FusionLimits, Target

TARGET = Target(
    vector_bytes=32,
    vector_registers=16,
    divides_integers_in_lanes=False,
    cache_bytes=(32 << 10, 1 << 20),
    alignment=64,
    launch_cost=10.0,
    split_cost=60_000.0,
    piece_cost=20_000.0,
    recompute_cost=4.0,
    fusion=FusionLimits(reads=32, serial_row=1 << 14, scratch_row=1 << 16, scratch_bytes=1 << 22),
)


def _kind(kernel: Kernel, target: Target) -> bool:
    return kernel.contraction is not None


BATCHING = replace(TARGET, launch_kind=_kind)
"""The same, as if kernels could share launches: products with products, others with others."""
