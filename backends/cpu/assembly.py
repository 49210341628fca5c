"""Compiles a program to an artifact: the machine code, its interface, and the sources of its constants. The artifact
contains nothing that refers to this process's memory."""

from __future__ import annotations

import llvmlite

from trivium.backends import interface, native
from trivium.backends.cpu import jit
from trivium.backends.cpu.contraction.constants import PackedConstant
from trivium.backends.cpu.host_names import described
from trivium.backends.cpu.program import Emitted, emit_program
from trivium.backends.cpu.target import CpuTarget, machine_of
from trivium.backends.llvm.split_module import Parts
from trivium.compiler.artifact import Artifact, ConstantData, Embedded, Packing
from trivium.compiler.constants import References
from trivium.compiler.program import Constant, Program, Step
from trivium.compiler.stages import DEFAULT, CompileOptions, Stages
from trivium.compiler.verifier import verify


def assemble(stages: Stages, target: CpuTarget) -> Artifact:
    """Returns machine code for a module, to whose constants the artifact refers."""
    references = References(stages.module)
    texts = interface.texts(stages.module.main)
    return assemble_program(stages.program, target, stages.options, references, texts)


def assemble_program(
    program: Program,
    target: CpuTarget,
    options: CompileOptions = DEFAULT,
    references: References | None = None,
    texts: dict[str, str] | None = None,
) -> Artifact:
    """Returns machine code for a program. Constants that have no references are embedded."""
    verify(program, target.loops_in_order)
    return _emitted(program, target, options, references, texts)[0]


def assemble_timed(stages: Stages, target: CpuTarget) -> tuple[Artifact, list[Step]]:
    """Returns machine code that records when steps run, and those steps, by number (`timing.py`)."""
    artifact, emitted = _emitted(stages.program, target, stages.options, References(stages.module), {}, timed=True)
    return artifact, emitted.timed


def _emitted(
    program: Program,
    target: CpuTarget,
    options: CompileOptions,
    references: References | None,
    texts: dict[str, str] | None,
    timed: bool = False,
) -> tuple[Artifact, Emitted]:
    """Emits a program's module, of which parts are already compiled meanwhile."""
    parts = Parts()
    with jit.Compilation(target) as compilation:
        emitted = emit_program(
            program, target, options, timed, after_kernel=lambda module: compilation.add(parts.take(module))
        )
        code = compilation.finish(parts.rest(emitted.module))
    artifact = Artifact(
        name=program.name,
        machine=machine_of(target),
        runtime=native.VERSION,
        threads=target.threads,
        producer=f"llvmlite {llvmlite.__version__}",
        code=code,
        inputs=tuple(map(interface.slot, program.inputs)),
        outputs=tuple(map(interface.slot, program.outputs)),
        arena_size=emitted.arena_size,
        arena_alignment=target.alignment,
        host_functions=tuple(map(described, emitted.host_calls)),
        constants=tuple(_constant(storage, references) for storage in emitted.storages),
        texts={**(texts or {}), **interface.costs(program), **interface.notes(program, emitted.schedules)},
    )
    return artifact, emitted


def _constant(storage: Constant, references: References | None) -> ConstantData:
    packing: Packing | None = storage.packing if isinstance(storage, PackedConstant) else None
    reference = references.find(storage) if references else None
    return ConstantData(reference or Embedded(storage.array), packing)
