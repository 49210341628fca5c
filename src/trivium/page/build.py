"""Collects the stages of a program for a page. The graph is made from a copy of the program whose ops are numbered, so
that every op, launch and kernel can name its origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from trivium.backends import client
from trivium.compiler.dynamic import is_dynamic
from trivium.compiler.kernel import Instruction, Kernel
from trivium.compiler.stages import DEFAULT, Stages
from trivium.ir.collection import collection_paused
from trivium.ir.func import Module
from trivium.ir.location import file_locations
from trivium.page.data import Page, Stage
from trivium.page.graph import graph_stage
from trivium.page.machine import assembly_stage, llvm_stage, numbers_of_names
from trivium.page.passes import passes_of
from trivium.page.source import source_stage
from trivium.page.steps import kernels_stage, launches_stage, same_kernels
from trivium.page.tags import every_op, tags_of
from trivium.page.times import times_of
from trivium.page.traced import Compiler, TracedStages

if TYPE_CHECKING:
    from trivium.profile import Profile

DYNAMIC = (
    "The shapes are dynamic: the program is compiled for those of each call. "
    "`trivium show --shape` fixes them, and shows all stages."
)

MOST_LLVM = 600_000
"""The length of LLVM's text, in characters, up to which assembly is made, too, unless the reader asks for it: it takes
a long time."""

LARGEST_TEXT = 2_000_000
"""The largest number of characters that a page shows of a stage."""


@collection_paused()
def page_of(
    module: Module,
    title: str = "",
    device: str | None = None,
    stage: str = "",
    *,
    machine_code: bool = True,
    profile: Profile | None = None,
    compiled: Stages | None = None,
) -> Page:
    """Returns the page of a module and of what it is compiled to for a device; without a device, of the module alone.
    `stage` is the stage that the reader asks for, which is then not omitted. Without `machine_code`, the page ends with
    the kernels. `profile` adds the times of that module, compiled for that device. `compiled` are the
    stages of what was compiled of the module, which is then not lowered again."""
    every = every_op(module)
    places = [file_locations(op.location) for op in every]
    source, lines = source_stage(place for found in places for place in found)
    of_op = {
        op: list(dict.fromkeys(lines[place.file, place.line] for place in found if (place.file, place.line) in lines))
        for op, found in zip(every, places, strict=True)
    }
    program = graph_stage(module, "program", "Program", of_op.__getitem__)
    page = Page(title or module.sym_name or "program", {"ops": f"{len(every):,}"}, [source, program], stage)
    backend = client(device) if device is not None else None
    if backend is None:
        return page
    if is_dynamic(module):
        program.note = DYNAMIC
    elif not isinstance(backend, Compiler):
        program.note = f"Of what device {device} makes of the program, this page can show nothing."
    else:
        if profile is not None:
            compiled = getattr(profile.loaded, "stages", None)
        stages = _traced(module, backend, compiled)
        same, lines = _add_compiled(page, stages)
        page.passes = passes_of(stages.tape)
        if profile is not None:
            page.times = times_of(profile, stages.program)
        if machine_code:
            lined = Stages.of_program(stages.program, stages.target, stages.options)
            lined.lines = {instruction: line + 1 for instruction, line in lines.items()}
            _add_machine_code(page, lambda name: backend.stage(lined, name), numbers_of_names(same))
    return page


def _traced(module: Module, backend: Compiler, compiled: Stages | None) -> TracedStages:
    """Returns the stages of a module for its page: those that it was compiled in as far as possible."""
    if isinstance(compiled, TracedStages):
        return compiled
    if compiled is not None:
        return TracedStages.again(module, compiled)
    return TracedStages(module, backend.target(DEFAULT), DEFAULT)


def _add_compiled(page: Page, stages: TracedStages) -> tuple[Sequence[Sequence[Kernel]], Mapping[Instruction, int]]:
    """Adds the stages from the optimized graph to the kernels, which are returned (see `same_kernels`), with the lines
    of their instructions."""
    every = every_op(stages.graph)
    graph = graph_stage(stages.graph, "graph", "Optimized graph", lambda op: tags_of(op.location))
    _keep_paths(graph, page.stages[-1])
    program = stages.program
    same = same_kernels(program)
    kernels, lines = kernels_stage(program, same)
    page.stages += [graph, launches_stage(program), kernels]
    page.facts |= {
        "optimized": f"{len(every):,} ops",
        "kernels": str(len(same)),
        "temporaries": _in_words(program.arena_size),
    }
    return same, lines


def _in_words(nbytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.3g} {unit}" if unit != "bytes" else f"{nbytes} {unit}"
        nbytes /= 1024
    return f"{nbytes:.3g} GiB"


def _keep_paths(graph: Stage, program: Stage) -> None:
    """Gives ops without a path the path of the op that they came from."""
    for item in graph.items:
        item.path = item.path or next((program.items[number].path for number in item.origins), "")


def _add_machine_code(page: Page, text_of: Callable[[str], str], kernels: dict[str, list[int]]) -> None:
    llvm = llvm_stage(text_of("llvm"), kernels)
    page.stages.append(llvm)
    if sum(map(len, llvm.lines)) > MOST_LLVM and page.open != "asm":
        _leave_out_end(llvm)
        llvm.note = f"{llvm.note} Assembly is left out, for its size: --stage asm adds it.".strip()
        return
    assembly = assembly_stage(text_of("asm"), llvm)
    page.stages.append(assembly)
    for stage in (llvm, assembly):
        _leave_out_end(stage)


def _leave_out_end(stage: Stage) -> None:
    """Shortens a text that is too long for a page."""
    size = 0
    for number, line in enumerate(stage.lines):
        size += len(line) + 1
        if size > LARGEST_TEXT:
            stage.note = f"The first {number:,} of {len(stage.lines):,} lines."
            del stage.lines[number:], stage.owners[number:], stage.places[number:]
            return
