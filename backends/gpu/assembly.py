"""Compiles a program to an artifact for a GPU: one module with all of its kernels, and the plan of their launches."""

from __future__ import annotations

import functools
from dataclasses import replace

import llvmlite

from trivium.backends import cache, interface, native
from trivium.backends.gpu import plan as plans
from trivium.backends.gpu.assembler import Assembler
from trivium.backends.gpu.batches import batches
from trivium.backends.gpu.dialect import Dialect
from trivium.backends.gpu.emission import Emission, Emitted
from trivium.backends.gpu.target import GpuTarget, machine_of
from trivium.compiler.artifact import Artifact, ConstantData, Embedded
from trivium.compiler.constants import References
from trivium.compiler.memory import require_memory
from trivium.compiler.program import Constant, Launch, Program, walk
from trivium.compiler.stages import Stages
from trivium.compiler.verifier import verify


@functools.cache
def assembler() -> Assembler:
    """Returns this process's assembler."""
    return Assembler()


def emit_program(program: Program, dialect: Dialect, target: GpuTarget, fast_math: bool = False) -> Emitted:
    """Returns the module of a program. Kernels of equal structure share a function."""
    emission = Emission(program.name, dialect, target, fast_math)
    for steps, batch, threads in batches(program.steps, emission.grid, target):
        emission.share(steps, batch, threads)
    for step in walk(program.steps):
        if isinstance(step, Launch) and step not in emission.emitted.work:
            emission.launch(step)
    return emission.finished()


def assemble(stages: Stages, dialect: Dialect) -> Artifact:
    """Returns the artifact of a module, to whose constants it refers."""
    target, references = stages.target, References(stages.module)
    assert isinstance(target, GpuTarget), "a GPU's client compiles for GPUs"
    texts = interface.texts(stages.module.main)
    return assemble_program(stages.program, dialect, target, stages.options.fast_math, references, texts)


def assemble_program(
    program: Program,
    dialect: Dialect,
    target: GpuTarget,
    fast_math: bool = False,
    references: References | None = None,
    texts: dict[str, str] | None = None,
) -> Artifact:
    """Returns the artifact of a program. Constants that have no references are embedded."""
    verify(program, target.loops_in_order)
    emitted = emit_program(program, dialect, target, fast_math)
    counters = _aligned(program.arena_size, target)
    begin = _aligned(counters + 4 * emitted.counters, target)
    require_memory(program, begin + emitted.workspace, target)
    plan = plans.plan_of(program, emitted.work, counters, begin)
    storages = [value.storage for value in program.values() if isinstance(value.storage, Constant)]
    return Artifact(
        name=program.name,
        machine=machine_of(target),
        runtime=native.VERSION,
        threads=1,
        producer=f"llvmlite {llvmlite.__version__}",
        code=plans.to_bytes(plan, compiled(emitted.text, dialect, target) if emitted.work else b""),
        inputs=tuple(map(interface.slot, program.inputs)),
        outputs=tuple(map(interface.slot, program.outputs)),
        arena_size=begin + emitted.workspace,
        arena_alignment=target.alignment,
        constants=tuple(_constant(storage, references) for storage in storages),
        texts={**(texts or {}), **interface.costs(program), **interface.notes(program, emitted.schedules)},
    )


def _aligned(nbytes: int, target: GpuTarget) -> int:
    return -(-nbytes // target.alignment) * target.alignment


def _constant(storage: Constant, references: References | None) -> ConstantData:
    reference = references.find(storage) if references else None
    return ConstantData(reference or Embedded(storage.array))


def assembly(text: str, dialect: Dialect, target: GpuTarget) -> str:
    """Returns the device's assembly for a module."""
    return assembler().compile(text, replace(dialect.assembling(target), text=True)).decode()


def compiled(text: str, dialect: Dialect, target: GpuTarget) -> bytes:
    """Returns the device's code for a module, from the cache if it is there."""
    kept, how = cache.default(), dialect.assembling(target)
    key = "\0".join((llvmlite.__version__, repr(how), text)).encode()
    found = kept.get(key) if kept else None
    if found is None:
        found = dialect.linked(assembler().compile(text, how))
        if kept:
            kept.put(key, found)
    return found
