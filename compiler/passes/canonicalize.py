"""Canonicalization: the local rewrites of `trivium.compiler.passes.patterns`, to a fixpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.patterns.arithmetic import ARITHMETIC
from trivium.compiler.passes.patterns.contraction import CONTRACTION
from trivium.compiler.passes.patterns.control import CONTROL
from trivium.compiler.passes.patterns.dynamic import DYNAMIC
from trivium.compiler.passes.patterns.folds import FOLDS
from trivium.compiler.passes.patterns.gathering import GATHERING
from trivium.compiler.passes.patterns.scattering import SCATTERING
from trivium.compiler.passes.patterns.shape import SHAPE
from trivium.compiler.passes.patterns.windows import WINDOWS
from trivium.compiler.passes.rewriting import PatternSet, rewrite_to_fixpoint
from trivium.ir.func import Module

PATTERNS = PatternSet(ARITHMETIC, SHAPE, GATHERING, SCATTERING, WINDOWS, DYNAMIC, CONTRACTION, CONTROL, FOLDS)


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Afterwards, no pattern matches any op of the module."""

    NAME: ClassVar[str] = "canonicalize"

    def run(self, module: Module) -> bool:
        return rewrite_to_fixpoint(module, PATTERNS)
