"""Decomposition: ops that are only shorthand for others are replaced by these, so that everything after it (folding,
fusion, kernels) sees the parts. The rules are in `decompositions`, by family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.decompositions import DECOMPOSITIONS
from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.rewriting import rewrite_to_fixpoint
from trivium.ir.func import Module

__all__ = ["DECOMPOSITIONS", "Decompose"]


@dataclass(frozen=True)
class Decompose(Pass):
    """Afterwards, no op of static shape is left that has a decomposition."""

    NAME: ClassVar[str] = "decompose"

    def run(self, module: Module) -> bool:
        return rewrite_to_fixpoint(module, DECOMPOSITIONS)
