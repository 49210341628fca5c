"""Inlining: calls and composites are replaced by the body of the function that they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.dce import reached
from trivium.compiler.passes.manager import Pass
from trivium.ir.func import Module
from trivium.ir.inlining import inline_calls


@dataclass(frozen=True)
class Inline(Pass):
    """Afterwards, no call and no composite is left, and no function that `main` then does not reach. Recursion, and
    calls that would make the program far larger, raise a `CompileError`."""

    NAME: ClassVar[str] = "inline"

    def run(self, module: Module) -> bool:
        main, functions = module.main, module.functions
        changed = inline_calls(main)
        kept = reached(module, {main.sym_name})
        for name, function in functions.items():
            if name not in kept:
                function.erase()
                changed = True
            elif function is not main and not function.is_declaration:
                changed |= inline_calls(function)
        return changed
