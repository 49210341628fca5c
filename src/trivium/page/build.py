"""Collects the stages of a program for a page. They are made from a copy of the program whose ops are numbered, so that
every op, launch and kernel can name its origin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from trivium.backends import client
from trivium.compiler.dynamic import is_dynamic
from trivium.compiler.kernel import Kernel
from trivium.compiler.passes.watch import watched_by
from trivium.compiler.stages import CompileOptions, Stages
from trivium.compiler.target import Target
from trivium.debug.tape import Tape
from trivium.ir.collection import collection_paused
from trivium.ir.core import Operation
from trivium.ir.func import Module
from trivium.page.data import Page, Stage
from trivium.page.graph import file_locations, graph_stage
from trivium.page.machine import assembly_stage, llvm_stage, numbers_of_names
from trivium.page.passes import passes_of
from trivium.page.source import source_stage
from trivium.page.steps import kernels_stage, launches_stage, same_kernels
from trivium.page.tags import ops_of, tag, tags_of
from trivium.page.times import times_of

if TYPE_CHECKING:
    from trivium.profile import Profile

MOST_LLVM = 600_000
"""The length of LLVM's text, in characters, up to which assembly is made, too, unless the reader asks for it: it takes
a long time."""

LARGEST_TEXT = 2_000_000
"""The largest number of characters that a page shows of a stage."""


@runtime_checkable
class Compiler(Protocol):
    """A client that compiles in stages, and can print them."""

    def target(self, options: CompileOptions) -> Target: ...

    def stage(self, stages: Stages, name: str) -> str: ...


@collection_paused()
def page_of(
    module: Module,
    title: str = "",
    device: str | None = None,
    stage: str = "",
    *,
    machine_code: bool = True,
    options: CompileOptions | None = None,
    profile: Profile | None = None,
) -> Page:
    """Returns the page of a module and of what it is compiled to for a device; without a device, of the module alone.
    `stage` is the stage that the reader asks for, which is then not omitted. Without `machine_code`, the page ends with
    the kernels. `profile` adds the times of that module, compiled for that device with these options."""
    module = module.clone()
    every = _ops(module)
    places = [file_locations(op.location) for op in every]
    source, lines = source_stage(place for found in places for place in found)
    of_op = {
        op: list(dict.fromkeys(lines[place.file, place.line] for place in found if (place.file, place.line) in lines))
        for op, found in zip(every, places, strict=True)
    }
    program = graph_stage(module, "program", "Program", of_op.__getitem__)
    tag(every, "program")
    page = Page(title or module.sym_name or "program", {"ops": str(len(every))}, [source, program], stage)
    backend = client(device) if device is not None else None
    if backend is None:
        return page
    if is_dynamic(module):
        program.note = "The shapes are dynamic: the program is compiled for the shapes of the arguments of each call."
    elif not isinstance(backend, Compiler):
        program.note = f"Of what device {device} makes of the program, this page can show nothing."
    else:
        options = options or CompileOptions()
        stages = Stages(module, backend.target(options), options)
        tape = Tape()
        with watched_by(tape):
            stages.graph  # noqa: B018  (made when it is first read)
        page.passes = passes_of(tape)
        same = _add_compiled(page, stages)
        if profile is not None:
            page.times = times_of(profile, stages.program)
        if machine_code:
            _add_machine_code(page, lambda name: backend.stage(stages, name), numbers_of_names(same))
    return page


def _ops(module: Module) -> list[Operation]:
    return ops_of(function for function in module.functions.values() if not function.is_declaration)


def _add_compiled(page: Page, stages: Stages) -> Sequence[Sequence[Kernel]]:
    """Adds the stages from the optimized graph to the kernels, which are returned: see `same_kernels`."""
    every = _ops(stages.graph)
    graph = graph_stage(stages.graph, "graph", "Optimized graph", lambda op: tags_of(op.location, "program"))
    _keep_paths(graph, page.stages[-1])
    tag(every, "graph")
    program = stages.program
    same = same_kernels(program)
    page.stages += [graph, launches_stage(program), kernels_stage(program, same)]
    page.facts |= {
        "optimized": f"{len(every)} ops",
        "kernels": str(len(same)),
        "temporaries": f"{program.arena_size:,} bytes",
    }
    return same


def _keep_paths(graph: Stage, program: Stage) -> None:
    """Gives ops without a path the path of the op that they came from."""
    for item in graph.items:
        item.path = item.path or next((program.items[number].path for number in item.origins), "")


def _add_machine_code(page: Page, text_of: Callable[[str], str], kernels: dict[str, list[int]]) -> None:
    text = text_of("llvm")
    llvm = llvm_stage(text, kernels)
    page.stages.append(llvm)
    if len(text) > MOST_LLVM and page.open != "asm":
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
            del stage.lines[number:], stage.owners[number:]
            return
