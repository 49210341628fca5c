"""Compiles a program to an artifact: the machine code, its interface, and the sources of its constants. The artifact
contains nothing that refers to this process's memory."""

from __future__ import annotations

import llvmlite
import numpy as np

from trivium.backends import native
from trivium.backends.cpu import jit
from trivium.backends.cpu.contraction.constants import PackedConstant
from trivium.backends.cpu.host_names import described
from trivium.backends.cpu.program import Emitted, emit_program
from trivium.backends.cpu.target import CpuTarget, machine_of
from trivium.compiler.analysis import program_cost
from trivium.compiler.artifact import COSTS, Artifact, ConstantData, Embedded, Packing, Slot
from trivium.compiler.constants import References
from trivium.compiler.kernel.dtypes import numpy_dtype
from trivium.compiler.program import Array, Constant, Launch, Program, walk
from trivium.compiler.stages import Stages
from trivium.compiler.verifier import verify
from trivium.ir.core import Region
from trivium.ir.func import Function, Module
from trivium.ir.text import print_module

DONATED = ("jax.buffer_donor", "tf.aliasing_output")
"""Attributes with which JAX marks an argument whose memory a run may reuse. The second one says for which result."""


def assemble(stages: Stages) -> Artifact:
    """Returns machine code for a module, to whose constants the artifact refers."""
    texts = {"signature": print_module(_declaration(stages.module.main)), "donated": _donated(stages.module.main)}
    target, references = stages.target, References(stages.module)
    assert isinstance(target, CpuTarget), "a CPU's client compiles for CPUs"
    return assemble_program(stages.program, target, stages.options.fast_math, references, texts)


def assemble_program(
    program: Program,
    target: CpuTarget,
    fast_math: bool = False,
    references: References | None = None,
    texts: dict[str, str] | None = None,
) -> Artifact:
    """Returns machine code for a program. Constants that have no references are embedded."""
    verify(program)
    emitted = emit_program(program, target, fast_math)
    return Artifact(
        name=program.name,
        machine=machine_of(target),
        runtime=native.VERSION,
        threads=target.threads,
        producer=f"llvmlite {llvmlite.__version__}",
        code=jit.compile_module(str(emitted.module), target),
        inputs=tuple(map(_slot, program.inputs)),
        outputs=tuple(map(_slot, program.outputs)),
        arena_size=emitted.arena_size,
        arena_alignment=target.alignment,
        host_functions=tuple(map(described, emitted.host_calls)),
        constants=tuple(_constant(storage, references) for storage in emitted.storages),
        texts={**(texts or {}), **_costs(program), **_notes(program, emitted)},
    )


def _slot(value: Array) -> Slot:
    dtype = numpy_dtype(value.dtype)
    if value.is_complex:
        return Slot(np.result_type(dtype, np.complex64), tuple(value.shape[:-1]))
    return Slot(dtype, tuple(value.shape))


def _constant(storage: Constant, references: References | None) -> ConstantData:
    packing: Packing | None = storage.packing if isinstance(storage, PackedConstant) else None
    reference = references.find(storage) if references else None
    return ConstantData(reference or Embedded(storage.array), packing)


def _declaration(function: Function) -> Module:
    """Returns the function without its body: types, names and roles of arguments and results."""
    declaration = Function(
        function.sym_name,
        function.function_type,
        Region([]),
        sym_visibility="private",
        arg_attrs=function.arg_attrs,
        res_attrs=function.res_attrs,
    )
    return Module.build(functions=[declaration])


def _donated(function: Function) -> str:
    """Returns one digit per argument: whether a run may reuse its memory."""
    marks = (function.argument_attributes(index) for index in range(len(function.function_type.inputs)))
    return "".join("01"[any(name in mark for name in DONATED)] for mark in marks)


def _costs(program: Program) -> dict[str, str]:
    cost = program_cost(program)
    return dict(zip(COSTS, map(repr, map(float, (cost.flops, cost.transcendentals, cost.nbytes))), strict=True))


def _notes(program: Program, emitted: Emitted) -> dict[str, str]:
    """Returns the schedule of each kernel, and the origin of each launch in the user's program."""
    schedules = (f"{name}: {schedule}" for name, schedule in emitted.schedules.items())
    launches = (step for step in walk(program.steps) if isinstance(step, Launch))
    origins = (f"{step.kernel.name}: {'; '.join(o.describe() for o in step.origins)}" for step in launches)
    return {"schedules": "\n".join(schedules), "origins": "\n".join(origins)}
