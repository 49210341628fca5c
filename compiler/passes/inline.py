"""Inlining: calls and composites become the body of what they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.manager import Pass
from trivium.ir.func import Function, Module
from trivium.ir.inlining import inline_calls


@dataclass(frozen=True)
class Inline(Pass):
    """No call and no composite is left in any function. Recursion is a `CompileError`: the language has none."""

    NAME: ClassVar[str] = "inline"

    def run(self, module: Module) -> bool:
        changed = False
        done: set[Function] = set()
        for function in list(module.functions.values()):
            changed |= inline_calls(function, done)
        return changed
