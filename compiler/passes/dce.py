"""Dead code elimination: removes ops without effects whose results are unused, and private functions that are never
called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.manager import Pass
from trivium.ir.attributes import Attribute, Dictionary, SymbolRef
from trivium.ir.core import Block, Operation
from trivium.ir.func import Module


@dataclass(frozen=True)
class DeadCode(Pass):
    """Afterwards, no pure op is left whose results are unused, and no private function that is never named."""

    NAME: ClassVar[str] = "dce"

    def run(self, module: Module) -> bool:
        changed = False
        for function in module.functions.values():
            for block in function.body.blocks:
                changed |= erase_dead(block)
        return erase_unnamed(module) or changed


def erase_dead(block: Block) -> bool:
    """Erases ops from the end backwards, so that whole chains are removed in one sweep."""
    changed = False
    for op in reversed(block):
        if op is not block.last and not op.is_used and op.is_pure:
            op.erase()
            changed = True
            continue
        for region in op.regions:
            for inner in region.blocks:
                changed |= erase_dead(inner)
    return changed


def erase_unnamed(module: Module) -> bool:
    """Erases the private functions that neither `main` nor a public function reaches."""
    functions = module.functions
    named = {name for name, function in functions.items() if function.sym_visibility != "private"} | {"main"}
    if functions.keys() <= named:
        return False
    kept = reached(module, named)
    for name, function in functions.items():
        if name not in kept:
            function.erase()
    return len(kept & functions.keys()) != len(functions)


def reached(module: Module, names: set[str]) -> set[str]:
    """Returns the names of functions, and all symbols that they name directly or indirectly."""
    functions, found, waiting = module.functions, set(names), list(names)
    while waiting:
        function = functions.get(waiting.pop())
        named = set().union(*map(_symbols, function.walk())) - found if function is not None else set()
        found |= named
        waiting += named
    return found


def _symbols(op: Operation) -> set[str]:
    found: set[str] = set()
    stack: list[Attribute] = [*op.attributes.values(), *op.extra.values()]
    while stack:
        attribute = stack.pop()
        if isinstance(attribute, SymbolRef):
            found.add(attribute.name)
        elif isinstance(attribute, Dictionary):
            stack.extend(attribute.values())
        elif isinstance(attribute, tuple):
            stack.extend(attribute)
    return found
