"""Finds where MLIR is less strict than the specification: programs that violate constraints in the tests, but that MLIR
accepts. Such programs load, and `verify` refuses them. MLIR runs in its own process, because some programs crash it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.ir.ops.constraints import Broken, broken
from tests.ir.ops.records import collect
from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.errors import ConstraintKind, Error
from trivium.ir.func import Function, Module
from trivium.ir.text import print_module
from trivium.ir.types import Type

_ROOT = Path(__file__).parents[3]


class Taken(NamedTuple):
    """A program that MLIR accepts, and our error."""

    message: str
    text: str


@cache
def accepted() -> dict[tuple[type[Op], str], Taken]:
    """Returns op and label of each constraint that MLIR does not check, with a program that it accepts."""
    examples = [each for each in broken() if each.kind is not ConstraintKind.RUN_TIME]
    programs = [(each, text) for each in examples for text in programs_of(each)]
    verdicts = ask([text for _, text in programs])
    taken = [program for program, fine in zip(programs, verdicts, strict=True) if fine]
    return {(type(each.op), each.label): Taken(each.message, text) for each, text in taken}


def programs_of(each: Broken) -> Iterator[str]:
    """Yields the broken program as text. If the types of the results were not inferred, those that the op has in other
    programs are tried."""
    if each.op.block is not None:
        root: Operation = each.op
        while root.parent_op is not None:
            root = root.parent_op
        yield str(root)
        return
    for types in {each.op.result_types} if each.inferred else _result_types(each.op):
        with suppress(Error, AssertionError, ValueError):  # for what no file can contain
            yield print_module(_around(each.op, types), generic=True)


def _result_types(op: Op) -> set[tuple[Type, ...]]:
    found = {(kind,) * max(1, len(type(op).RESULTS)) for kind in op.operand_types} | {()}
    for record in collect():
        if record.op is type(op):
            found.add(tuple(record.module().main.function_type.results))
    return found


def _around(op: Op, result_types: Sequence[Type]) -> Module:
    """Returns a program of that op, as it was before it was refused. Constants among its operands are kept."""

    def body(builder, *arguments):
        given = dict(zip(free, arguments, strict=True))
        for value in op.operands:
            if value.defining_op is not None and value not in given:
                given |= dict(zip(value.defining_op.results, _copied(builder, value.defining_op), strict=True))
        attributes, regions = dict(op.attributes), [region.clone(dict(given)) for region in op.regions]
        operands = [given[value] for value in op.operands]
        made = type(op).create(operands, result_types, attributes, regions, op.extra, segments=op.segments)
        builder.block.append(made)
        return []

    free = list(dict.fromkeys(value for value in op.operands if value.defining_op is None))
    return Module.build(functions=[Function.build("main", [value.type for value in free], body)])


def _copied(builder, op: Operation) -> tuple[Value, ...]:
    copy = op.clone()
    builder.block.append(copy)
    return copy.results


def ask(texts: Sequence[str]) -> list[bool]:
    """Returns whether MLIR accepts each text."""
    verdicts: list[bool] = []
    while len(verdicts) < len(texts):
        rest = json.dumps(texts[len(verdicts) :])
        found = subprocess.run(
            [sys.executable, "-m", __name__], input=rest, capture_output=True, text=True, check=False
        )
        verdicts += [line == "yes" for line in found.stdout.split()]
        if len(verdicts) < len(texts):
            if found.returncode > 0:
                raise RuntimeError(found.stderr)
            verdicts.append(False)  # it crashed on this one
    return verdicts


def _answer(text: str) -> str:
    from tests.ir.bytecode.mlir import parsed

    try:
        parsed(text)
    except Exception:
        return "no"
    return "yes"


if __name__ == "__main__":
    for text in json.load(sys.stdin):
        print(_answer(text), flush=True)
