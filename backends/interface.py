"""What an artifact says about its program, for any device: the slots of arguments and results, and texts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trivium.compiler.analysis import program_cost
from trivium.compiler.artifact import AVOIDABLE, COSTS, Artifact, Slot
from trivium.compiler.donation import wishes
from trivium.compiler.host import RECEIVE, SEND
from trivium.compiler.kernel.dtypes import numpy_dtype
from trivium.compiler.program import Array, HostCall, Input, Launch, Program, walk
from trivium.ir.core import Region
from trivium.ir.func import Function, Module
from trivium.ir.text import print_module

ALIASES = "aliases"
"""The name of an artifact's text with the number of the result that may be in each argument's memory, or -1."""

DIVISION = "division"
"""The name of an artifact's text about the parts of arrays that several devices hold."""

TRANSFERS = "transfers"
"""The name of an artifact's text about channels to the host."""

_DIRECTIONS = {SEND: "send", RECEIVE: "recv"}


def texts(main: Function) -> dict[str, str]:
    """Returns the program's signature, and which of its arguments are donated."""
    donated = wishes(main)
    marks = "".join("01"[index in donated] for index in range(len(main.function_type.inputs)))
    return {"signature": print_module(_declaration(main)), "donated": marks}


def slot(value: Array) -> Slot:
    """Returns the type of an argument or result."""
    dtype = numpy_dtype(value.dtype)
    if value.is_complex:
        return Slot(np.result_type(dtype, np.complex64), tuple(value.shape[:-1]))
    return Slot(dtype, tuple(value.shape))


def costs(program: Program) -> dict[str, str]:
    """Returns the costs of a run."""
    cost = program_cost(program)
    found: dict[str, float] = dict(zip(COSTS, (cost.flops, cost.transcendentals, cost.nbytes), strict=True))
    if cost.avoidable:
        found[AVOIDABLE] = cost.avoidable
    return {name: repr(float(number)) for name, number in found.items()}


def notes(program: Program, schedules: Mapping[str, object]) -> dict[str, str]:
    """Returns the schedule of each kernel, the origin of each launch in the user's program, the channels to its host,
    and the results that may be in the memory of arguments."""
    lines = (f"{name}: {schedule}" for name, schedule in schedules.items())
    launches = (step for step in walk(program.steps) if isinstance(step, Launch))
    origins = (f"{step.kernel.name}: {'; '.join(o.describe() for o in step.origins)}" for step in launches)
    about = {TRANSFERS: _transfers(program), ALIASES: _aliases(program)}
    return {"schedules": "\n".join(lines), "origins": "\n".join(origins), **about}


def _transfers(program: Program) -> str:
    """Returns one line for each channel. The native runtime reads them (`native/pjrt/transfers.cc`)."""
    calls = (step for step in walk(program.steps) if isinstance(step, HostCall) and step.target in _DIRECTIONS)
    return "\n".join(dict.fromkeys(f"{_DIRECTIONS[call.target]} {call.attributes['channel']}" for call in calls))


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


def results_in(artifact: Artifact) -> list[int]:
    """Returns for each argument the number of the result that may be in its memory, or -1."""
    return list(map(int, artifact.texts.get(ALIASES, "").split())) or [-1] * len(artifact.inputs)


def _aliases(program: Program) -> str:
    """Returns nothing if there are none. The native runtime reads it, too (`native/pjrt/artifact_program.cc`)."""
    results = [value.storage.result if isinstance(value.storage, Input) else None for value in program.inputs]
    return "" if results == [None] * len(results) else " ".join(str(-1 if r is None else r) for r in results)
