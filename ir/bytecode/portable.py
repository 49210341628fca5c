"""What a program becomes to be portable, and what it was before. Artifacts have the ops of StableHLO in a versioned
form, and those of Shardy as they are, with casts between the two."""

from __future__ import annotations

from trivium.ir.bytecode.casts import insert_casts, is_foreign
from trivium.ir.func import Module


def legalized(module: Module) -> Module:
    """The program as artifacts can have it: itself, or a copy."""
    if any(map(is_foreign, module.walk())):
        module = module.clone()
        insert_casts(module)
    return module
