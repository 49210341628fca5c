"""The facts about a device that code emission needs in addition to those that the compiler uses: its name, and the
operations for which it has instructions."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.compiler.target import Target


@dataclass(frozen=True, kw_only=True)
class LlvmTarget(Target):
    """A device for which LLVM emits code."""

    triple: str
    """LLVM's name for the platform."""

    cpu: str
    """LLVM's name for the processor."""

    features: str
    """Instructions beyond those that its name implies, in LLVM's notation."""

    fma: bool
    """Whether a fused multiply-add is an instruction."""

    half: bool
    """Whether conversions from and to f16 are instructions."""

    rounds_to_bf16: str = ""
    """The function of LLVM that rounds two numbers of f32 to bf16, of which the second one comes first in memory, if
    that is an instruction."""

    extrema: bool = True
    """Whether LLVM's maximum and minimum, of which either operand may be NaN, become correct code."""

    remainder: bool = True
    """Whether LLVM's remainder of floats is exact."""

    wide_shifts: bool = True
    """Whether a shift of 64 bits stays behind the comparison that limits its amount. For NVIDIA, LLVM drops the
    comparison, because oversized shifts give 0 there, and then half of the amount, because it is 32 bits there."""

    lanes_apart: bool = False
    """Whether lanes are computed one by one, so that a branch on what all of them have in common only costs time."""

    constant_space: int = 0
    """The address space of constants in a module, such as tables."""

    looks_up: int = 0
    """How many numbers of f32 are in the tables in a register that lanes select from: 16 or 8, or 0 if they cannot."""

    ldexp: bool = False
    """Whether scaling by a power of two is an instruction on whole vectors."""

    orders_zeros: bool = False
    """Whether one instruction on whole vectors finds the larger or smaller float of two, and takes -0 to be less than
    0."""

    wide_products: bool = False
    """Whether lanes of f64 are multiplied, and converted from and to f32, beside the unit that divides f32 and in less
    time."""

    masks_apart: bool = False
    """Whether masks have registers of their own. Otherwise, storing lanes under one takes long: with AVX2, AMD's
    processors take 20 cycles, and numbers of 8 or 16 bits are stored one by one."""

    @property
    def near(self) -> int:
        """The number of vectors up to which all of these are loaded, rather than single elements of them: more if one
        instruction moves the elements of two vectors into any order."""
        return 9 if "+avx512f" in self.features else 4

    @property
    def joins_truncation(self) -> bool:
        """Whether LLVM makes one instruction of a truncation and a masked store. If a literal mask has one active lane,
        it then writes all bytes of the number before the truncation."""
        return "+avx512f" in self.features
