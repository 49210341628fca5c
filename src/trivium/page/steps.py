"""The result of compiling a graph, as stages: the steps of the program (launches, copies, loops), and the kernels."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.compiler.kernel import Kernel
from trivium.compiler.program import Launch, Program, Step, operands, reads, walk, writes
from trivium.page.data import Item, Stage
from trivium.page.tags import tags_of


def launches_stage(program: Program) -> Stage:
    """Returns the steps of a program. A launch came from the ops whose locations are its origins."""
    stage = Stage("launches", "Launches")
    steps = list(walk(program.steps))
    stage.items = [_step(step) for step in steps]
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


def _step(step: Step) -> Item:
    written = ", ".join("x".join(map(str, (*value.shape, value.dtype))) for value in writes(step))
    if not isinstance(step, Launch):
        return Item(type(step).__name__.lower(), "step", written)
    found = dict.fromkeys(number for origin in step.origins for number in tags_of(origin, "graph"))
    return Item(step.kernel.name, "launch", written, origins=list(found))


def _add_edges(items: list[Item], steps: list[Step]) -> None:
    """A step reads what the last step before it wrote to the same storage."""
    writer: dict[object, int] = {}
    for number, step in enumerate(steps):
        found = dict.fromkeys(writer[value] for value in reads(step) if value in writer)
        items[number].operands = list(found)
        items[number].facts = {"arrays": ", ".join(value.name for value in operands(step))}
        writer |= dict.fromkeys(writes(step), number)


def kernels_stage(program: Program, same: Sequence[Sequence[Kernel]]) -> Stage:
    """Returns the kernels of a program, each with the launches that run it. Of kernels that are the `same`, that is,
    differ in names only, the first one is shown."""
    stage = Stage("kernels", "Kernels")
    launches: dict[Kernel, list[int]] = {}
    for number, step in enumerate(walk(program.steps)):
        if isinstance(step, Launch):
            launches.setdefault(step.kernel, []).append(number)
    for kernels in same:
        kernel = kernels[0]
        parameters = ", ".join(f"{p.mode} {'x'.join(map(str, (*p.shape, p.dtype)))}" for p in kernel.params)
        stage.add(str(kernel), len(stage.items))
        stage.add("")
        numbers = sorted(number for one in kernels for number in launches[one])
        facts = {"launches": str(len(numbers))} if len(numbers) > 1 else {}
        stage.items.append(Item(kernel.name, "kernel", parameters, origins=numbers, facts=facts))
    return stage


def same_kernels(program: Program) -> list[list[Kernel]]:
    """Returns the kernels of a program; those that differ in names only are together."""
    found: dict[str, list[Kernel]] = {}
    for kernel in program.kernels():
        found.setdefault(kernel.digest(), []).append(kernel)
    return list(found.values())
