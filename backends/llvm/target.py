"""What code emission must know of a device besides what the compiler asks: what it is called, and which operations its
instructions have."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.compiler.target import Target


@dataclass(frozen=True, kw_only=True)
class LlvmTarget(Target):
    """A device that LLVM emits code for."""

    triple: str
    """LLVM's name for the platform."""

    cpu: str
    """LLVM's name for the processor."""

    features: str
    """Instructions it has beyond those that its name implies, as LLVM writes them."""

    fma: bool
    """Whether a fused multiply-add is an instruction."""

    half: bool
    """Whether conversions from and to f16 are instructions."""
