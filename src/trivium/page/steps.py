"""The result of compiling a graph, as stages: the steps of the program (launches, copies, loops), and the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trivium.compiler.kernel import Instruction, Kernel
from trivium.compiler.kernel import walk as walk_block
from trivium.compiler.kernel.printer import printed
from trivium.compiler.program import Launch, Program, Step, operands, reads, walk, writes
from trivium.ir.core import Operation
from trivium.page.data import Item, Stage
from trivium.page.tags import numbers_of


def launches_stage(program: Program) -> Stage:
    """Returns the steps of a program. A launch came from the ops of the graph that it computes."""
    stage = Stage("launches", "Launches")
    steps, numbers = list(walk(program.steps)), numbers_of(program.graph) if program.graph is not None else {}
    stage.items = [_step(step, numbers) for step in steps]
    _add_edges(stage.items, steps)
    following = iter(range(len(steps)))
    in_steps = False
    for line in str(program).split("\n"):
        text, _, _ = line.partition("  // ")
        head = text.strip()
        in_steps = in_steps or head.startswith(_WORDS)
        begins = in_steps and not head.startswith(("}", "case "))
        stage.add(text, next(following, -1) if begins else -1)
    return stage


_WORDS = ("launch @", "copy ", "call @", "python call @", "while {", "switch ", "all_", "collective_", "reduce_scatter")


def _step(step: Step, numbers: Mapping[Operation, int]) -> Item:
    written = ", ".join("x".join(map(str, (*value.shape, value.dtype))) for value in writes(step))
    if not isinstance(step, Launch):
        return Item(type(step).__name__.lower(), "step", written)
    return Item(step.kernel.name, "launch", written, origins=[numbers[op] for op in step.ops])


def _add_edges(items: list[Item], steps: list[Step]) -> None:
    """A step reads what the last step before it wrote to the same storage."""
    writer: dict[object, int] = {}
    for number, step in enumerate(steps):
        found = dict.fromkeys(writer[value] for value in reads(step) if value in writer)
        items[number].operands = list(found)
        items[number].facts = {"arrays": ", ".join(value.name for value in operands(step))}
        writer |= dict.fromkeys(writes(step), number)


def kernels_stage(program: Program, same: Sequence[Sequence[Kernel]]) -> tuple[Stage, dict[Instruction, int]]:
    """Returns the kernels of a program, each with the launches that run it, and the line of every instruction. Of
    kernels that are the `same`, that is, differ in names only, the first one is shown."""
    stage = Stage("kernels", "Kernels")
    launches: dict[Kernel, list[int]] = {}
    for number, step in enumerate(walk(program.steps)):
        if isinstance(step, Launch):
            launches.setdefault(step.kernel, []).append(number)
    ops = numbers_of(program.graph) if program.graph is not None else {}
    numbers_of_lines: dict[Instruction, int] = {}
    for kernels in same:
        kernel = kernels[0]
        parameters = ", ".join(f"{p.mode} {'x'.join(map(str, (*p.shape, p.dtype)))}" for p in kernel.params)
        _add_lines(stage, kernels, ops, numbers_of_lines)
        numbers = sorted(number for one in kernels for number in launches[one])
        facts = {"launches": str(len(numbers))} if len(numbers) > 1 else {}
        stage.items.append(Item(kernel.name, "kernel", parameters, origins=numbers, facts=facts))
    return stage, numbers_of_lines


def _add_lines(
    stage: Stage, kernels: Sequence[Kernel], ops: Mapping[Operation, int], numbers: dict[Instruction, int]
) -> None:
    """Adds the text of the first of kernels that are the same, and to `numbers` those of the lines of all of them."""
    lines, places = printed(kernels[0])
    first = len(stage.lines)
    stage.add("\n".join([*lines, ""]), len(stage.items))
    stage.owners[-1] = -1
    ends, computes = [0] * (len(lines) + 1), [dict[int, None]() for _ in range(len(lines) + 1)]
    every = [list(_instructions(kernel)) for kernel in kernels]
    for same in zip(*every, strict=True):
        place = places[same[0]]
        ends[place.start] = first + place.stop
        for instruction in same:
            numbers[instruction] = first + place.start
            found = {ops[op]: None for op in instruction.origins if op in ops}
            for line in {place.start, place.stop - 1}:
                computes[line] |= found
    stage.ends += ends
    stage.computes += [list(items) for items in computes]


def _instructions(kernel: Kernel) -> Iterator[Instruction]:
    return (instruction for block in kernel.blocks() for instruction in walk_block(block))


def same_kernels(program: Program) -> list[list[Kernel]]:
    """Returns the kernels of a program; those that differ in names only are together."""
    found: dict[str, list[Kernel]] = {}
    for kernel in program.kernels():
        found.setdefault(kernel.digest(), []).append(kernel)
    return list(found.values())
