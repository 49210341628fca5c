"""What a program costs, as an estimate."""

from __future__ import annotations

from typing import NamedTuple

from trivium.backends.pjrt import LoadedExecutable
from trivium.compiler.artifact import AVOIDABLE
from trivium.ir.func import Module

OPS_OF_ONE = 3
"""How many ops of a module one op of a framework becomes, roughly."""


class Costs(NamedTuple):
    """What says how long a graph takes to compile and to run: its ops, in its framework, and the machine code of its
    program, in bytes; floating-point operations, the bytes that they access, and which share of the operations a
    program for several sizes does not take for smaller ones. Times are estimated, and not measured, so that they are
    the same in every process: a program that begins with the same seed ends with the same bits."""

    ops: int
    code: int
    flops: float
    accessed: float
    avoidable: float = 0.0

    @classmethod
    def of(cls, loaded: LoadedExecutable, ops: int) -> Costs:
        """Returns the costs of a program that was made from this number of ops."""
        costs = loaded.cost_analysis()
        code = loaded.memory_analysis().generated_code_size_in_bytes
        avoidable = costs.get(AVOIDABLE, 0.0) / max(1.0, costs["flops"])
        return cls(ops, code, costs["flops"], costs["bytes accessed"], avoidable)

    @classmethod
    def of_module(cls, loaded: LoadedExecutable, module: Module) -> Costs:
        """Returns the costs of a program that was made from a module."""
        return cls.of(loaded, sum(1 for _ in module.walk()) // OPS_OF_ONE)

    @property
    def compiling(self) -> float:
        """The seconds that compiling takes."""
        return 0.05 + 6e-4 * self.ops + 1.1e-5 * self.code

    @property
    def running(self) -> float:
        """The seconds that the program takes."""
        return self.flops / 60e9 + self.accessed / 10e9
