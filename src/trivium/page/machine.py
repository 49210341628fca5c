"""LLVM and assembly as stages, split into functions. The functions of a kernel are called `kernel.NAME`, with further
parts after a dot; kernels of one digest share the code of the first. Instructions name lines of the kernels by debug
information (see `trivium.backends.llvm.lines`), which is read here and not shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from trivium.compiler.kernel import Kernel
from trivium.page.data import Item, Stage

_DEFINE = re.compile(r'^define .*?@"?([^"(]+)"?\(')
_TYPE = re.compile(r'^\s*\.type\s+"?([^",]+)"?,\s*@function')
_LOCATION = re.compile(r"^(!\d+) = !DILocation\(line: (\d+)", re.MULTILINE)
_OF_FUNCTION = re.compile(r" !dbg !\d+")
_LOC = re.compile(r"\s*\.loc\s+\d+ (\d+)")
_DEBUG = re.compile(r"\s*\.(file\s+\d|cfi_)|\.L(tmp|func_begin)\d+:")
_PREFIX = "kernel."


def numbers_of_names(same: Sequence[Sequence[Kernel]]) -> dict[str, list[int]]:
    """Returns, for the name of each kernel, its item in the stage `kernels`; `same`: see `same_kernels`."""
    return {kernel.name: [number] for number, kernels in enumerate(same) for kernel in kernels}


def llvm_stage(text: str, kernels: Mapping[str, list[int]]) -> Stage:
    """Returns the functions of LLVM's text; `kernels`: see `numbers_of_names`."""
    lines, places = _without_places(text)
    return _functions(Stage("llvm", "LLVM", places=places), lines, _DEFINE, kernels, end="}")


def assembly_stage(text: str, functions: Stage) -> Stage:
    """Returns the functions of assembly; each came from LLVM's of the same name."""
    numbers = {item.label: [number] for number, item in enumerate(functions.items)}
    lines, places = _without_directives(text)
    return _functions(Stage("asm", "Assembly", places=places), lines, _TYPE, numbers)


def _without_places(text: str) -> tuple[list[str], list[int]]:
    """Returns the lines of LLVM's text without debug information, and the lines of the kernels that it names; none if
    it names none."""
    known = {match[1]: int(match[2]) - 1 for match in _LOCATION.finditer(text)}
    if not known:
        return text.split("\n"), []
    lines, places = [], []
    for line in text.split("\n"):
        if not line.startswith("!"):
            plain, _, number = line.partition(", !dbg ")
            define = line.startswith("define")
            lines.append(_OF_FUNCTION.sub("", line) if define else plain)
            places.append(-1 if define else known.get(number.rstrip(), -1))
    return lines, places


def _without_directives(text: str) -> tuple[list[str], list[int]]:
    """Does the same for assembly."""
    if "\t.loc\t" not in text:
        return text.split("\n"), []
    lines, places, place = [], [], -1
    for line in text.split("\n"):
        if match := _LOC.match(line):
            place = int(match[1]) - 1
        elif not _DEBUG.match(line):
            lines.append(line)
            instruction = line.startswith("\t") and not line.startswith("\t.")
            places.append(place if instruction else -1)
            place = -1 if _TYPE.match(line) else place
    return lines, places


def _functions(
    stage: Stage, lines: list[str], begins: re.Pattern[str], known: Mapping[str, list[int]], end: str | None = None
) -> Stage:
    owner = -1
    for line in lines:
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
