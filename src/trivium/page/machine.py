"""LLVM and assembly as stages, split into functions. The functions of a kernel are called `kernel.NAME`, with further
parts after a dot; kernels of one digest share the code of the first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from trivium.compiler.kernel import Kernel
from trivium.page.data import Item, Stage

_DEFINE = re.compile(r'^define .*?@"?([^"(]+)"?\(')
_TYPE = re.compile(r'^\s*\.type\s+"?([^",]+)"?,\s*@function')
_PREFIX = "kernel."


def numbers_of_names(same: Sequence[Sequence[Kernel]]) -> dict[str, list[int]]:
    """Returns, for the name of each kernel, its item in the stage `kernels`; `same`: see `same_kernels`."""
    return {kernel.name: [number] for number, kernels in enumerate(same) for kernel in kernels}


def llvm_stage(text: str, kernels: Mapping[str, list[int]]) -> Stage:
    """Returns the functions of LLVM's text; `kernels`: see `numbers_of_names`."""
    return _functions(Stage("llvm", "LLVM"), text, _DEFINE, kernels, end="}")


def assembly_stage(text: str, functions: Stage) -> Stage:
    """Returns the functions of assembly; each came from LLVM's of the same name."""
    numbers = {item.label: [number] for number, item in enumerate(functions.items)}
    return _functions(Stage("asm", "Assembly"), text, _TYPE, numbers)


def _functions(
    stage: Stage, text: str, begins: re.Pattern[str], known: Mapping[str, list[int]], end: str | None = None
) -> Stage:
    owner = -1
    for line in text.split("\n"):
        if match := begins.match(line):
            owner = len(stage.items)
            stage.items.append(Item(match[1], "function", origins=_known(match[1], known)))
        stage.add(line, owner)
        if line == end:
            owner = -1
    return stage


def _known(name: str, known: Mapping[str, list[int]]) -> list[int]:
    """Returns the items of the longest name that a function's name is a part of."""
    if name in known:
        return known[name]
    rest = name.removeprefix(_PREFIX)
    while rest not in known and "." in rest:
        rest = rest.rpartition(".")[0]
    return known.get(rest, [])
