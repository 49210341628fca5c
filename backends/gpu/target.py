"""A GPU as a target: the facts on which the compiler and the emitter base their decisions."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.backends.llvm.target import LlvmTarget
from trivium.compiler.artifact import Machine
from trivium.compiler.target import FusionLimits, MatrixInstruction

LIMITS = FusionLimits(
    # Each stream needs an address in two of a thread's 255 registers.
    reads=32,
    # A reduction to a scalar is one thread's work, which should not grow.
    serial_row=1 << 7,
    # Storing longer rows in a thread's own memory costs more than computing their elements again.
    scratch_row=1 << 8,
    scratch_bytes=48 << 10,
    # Of each 32 bytes that the caches move, a thread then uses four: for so much, that takes 5 us.
    across=1 << 19,
)


TENSOR_WIDEST, TF32_WIDEST = 128, 96
"""The most features, and products that a score sums, for which a thread has registers: of 16 bits, and of tf32."""

TF32_WIDEST_CHAIN = 64
"""The same for the gradients of attention in tf32, for which a launch always grants enough shared memory."""

NARROW = "bf16", "f16"
"""The types whose products matrix instructions compute as they are."""


@dataclass(frozen=True, kw_only=True)
class GpuTarget(LlvmTarget):
    """A GPU. Costs are in units of about 0.3 ns, as everywhere."""

    fma: bool = True
    half: bool = True
    extrema: bool = False
    lanes_apart: bool = True
    masks_apart: bool = True
    # Four 32-bit numbers: the widest access of one thread.
    vector_bytes: int = 16
    vector_registers: int = 32
    divides_integers_in_lanes: bool = True
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20)
    shared_memory_bytes: int = 48 << 10
    attention: bool = True
    donation: bool = True
    turned_constants: bool = True
    alignment: int = 128
    # About 5 us from one launch to the next.
    launch_cost: float = 16_000.0
    # A launch is spread over blocks anyway.
    split_cost: float = 0.0
    piece_cost: float = 1.0
    recompute_cost: float = 64.0
    fusion: FusionLimits = LIMITS

    warp: int = 32
    """The number of threads that run in step."""

    block: int = 256
    """The number of threads of a block, for loops without any dependence between iterations."""

    largest_block: int = 256
    """The most threads of a block. Of 65536 registers, each then still has enough."""

    busy: int = 1 << 16
    """The number of threads that keep the device busy."""

    vectors: bool = True
    """Whether a thread may compute several neighbouring elements at a time."""

    deterministic: bool = True
    """Whether updates of floats must not depend on the order of threads."""

    tf32: bool = False
    """Whether factors of products may be rounded from f32 to tf32."""

    def widest_chain(self, dtype: str) -> int:
        operands = "tf32" if dtype == "f32" and self.tf32 else dtype
        known = any(one.operands == operands and one.accumulate == "f32" for one in self.matrix_instructions)
        return (TF32_WIDEST_CHAIN if operands == "tf32" else TENSOR_WIDEST) if known else 0

    warpgroup_instructions: tuple[MatrixInstruction, ...] = ()
    """The matrix instructions that four warps share, whose operands are in shared memory. One of them has as many
    columns as it is given sums for."""

    async_copies: bool = False
    """Whether threads can copy to shared memory while they compute, without registers."""

    bulk_copies: bool = False
    """Whether the device itself copies boxes of arrays to shared memory."""

    stack_bytes: int = 512
    """The bytes of scratch memory that one thread has for itself. More than that is in the workspace."""

    def copies_terms(self, dtype: str) -> bool:
        return self.bulk_copies and (dtype in NARROW or (dtype == "f32" and self.tf32))


def machine_of(target: GpuTarget) -> Machine:
    """A description of the devices that code for a target runs on."""
    return Machine(target.triple, target.cpu, target.features)
