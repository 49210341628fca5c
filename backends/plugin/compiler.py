"""Compiles a program from a PJRT host to machine code that the native runtime runs."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trivium.backends.advice import advised
from trivium.backends.artifact import from_bytes, to_bytes
from trivium.backends.cpu.client import CpuLoadedExecutable, cpu_client
from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.interface import TRANSFERS, results_in
from trivium.backends.pjrt import Client
from trivium.backends.plugin.accelerators import client_of, programs
from trivium.backends.plugin.division import Division, divide, fill_pieces, held_bytes
from trivium.backends.plugin.foreign import Find, register_foreign_functions, register_targets
from trivium.backends.plugin.layouts import LAYOUTS, Layouts, take_layouts
from trivium.backends.plugin.options import options_of
from trivium.backends.plugin.shardings import shardings_text
from trivium.backends.plugin.structures import CompileReply, CompileRequest, SlotType
from trivium.backends.plugin.together import DividedProgram, loaded_by_all
from trivium.backends.table.abi import TYPES
from trivium.compiler.artifact import PythonFunction, Slot
from trivium.ir.bytecode import deserialize
from trivium.ir.errors import CompileError, Error, ParseError, UnsupportedOpError, VerificationError
from trivium.ir.func import Function, Module
from trivium.ir.memory import exhaustion
from trivium.ir.text import parse

BYTECODE = b"ML\xefR"

ARTIFACT = "trivium-artifact"
"""The format of serialized programs, under the native runtime's name for it."""

HLO = "hlo"
"""The name of a serialized program's text with the optimized program, in hexadecimal digits."""

MEMORY_KIND, OWN = "mhlo.memory_kind", "device"
"""The attribute with which JAX says in which memory an argument or a result is, and its name for the device's own."""

CANCELLED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL = 1, 3, 8, 12, 13
"""PJRT's error codes."""

Compiled = CpuLoadedExecutable | GpuLoadedExecutable

_handles = itertools.count(1)


@dataclass(frozen=True)
class Kept:
    """The data that a reply points to."""

    executable: Compiled
    division: Division | None
    layouts: Layouts
    fingerprint: str
    tables: Sequence[Any]
    divided: DividedProgram | None = None
    """What several accelerators run."""

    @property
    def is_compiled(self) -> bool:
        """Whether the program was compiled in this process."""
        return self.executable.has_stages

    def serialized(self) -> bytes:
        """Returns the artifact, constants included."""
        whole = self.executable.whole()
        division = {} if self.division is None else self.division.texts()
        donated = "".join(str(int(flag)) for flag in _donated(self.executable, self.division))
        own = {
            "fingerprint": self.fingerprint,
            "donated": donated,
            LAYOUTS: self.layouts.text(),
            HLO: self._digits(),
        }
        return to_bytes(replace(whole, texts={**whole.texts, **division, **own}))

    def _digits(self) -> str:
        """Returns the optimized program in hexadecimal digits; nothing if XLA has no words for it."""
        try:
            return self.optimized_program().hex()
        except (CompileError, UnsupportedOpError):
            return ""

    def optimized_program(self) -> bytes:
        """Returns the program for hosts that show it, in XLA's format. Raises an `Error` if XLA has no words for it."""
        if not self.is_compiled:
            digits = self.executable.artifact.texts.get(HLO)
            if not digits:
                raise UnsupportedOpError(f"{self.executable.name} was serialized without its optimized program")
            return bytes.fromhex(digits)
        from trivium.backends.plugin.hlo import Interface, Port, optimized_program

        division, layouts, stages = self.division, self.layouts, self.executable.stages
        orders = (*layouts.arguments, *layouts.results)
        held = [None] * len(orders) if division is None else [*division.arguments, *division.results]
        ports, count = list(map(Port, orders, held)), len(layouts.arguments)
        interface = Interface(
            stages.graph.sym_name or self.executable.name,
            1 if division is None else division.replicas,
            1 if division is None else division.partitions,
            ports[:count],
            ports[count:],
            _aliases(self.executable, division),
            _donated(self.executable, division),
            () if division is None else division.shardings,
        )
        return optimized_program(stages.graph, stages.target, interface)


Inspector = Callable[[object, str], None]
"""Receives what an inspection of a sharding passes with its question, and the sharding in XLA's notation."""


def compile_program(
    request: CompileRequest, reply: CompileReply, foreign_functions: Sequence[Find], inspectors: Sequence[Inspector]
) -> Kept:
    """Compiles the program for its device, or loads it if it is an artifact, and fills in the reply, which points into
    the result. Custom calls that Trivium does not know are looked up in `foreign_functions`. Raises an `Error`."""
    gpus = [client_of(name) for name in request.devices.decode().split("\n")] if request.devices else []
    client, options = gpus[0] if gpus else cpu_client(), options_of((request.options or b"").decode(errors="replace"))
    code = ctypes.string_at(request.code, request.code_size)
    format = ctypes.string_at(request.format, request.format_size).decode(errors="replace")
    if format == ARTIFACT:
        return _shared(_load(client, code, reply, foreign_functions), gpus, reply.handle)
    with exhaustion("compiling the program", CompileError):
        module = _read(code, format)
        if gpus:
            _require_own_memory(module.main)
        register_foreign_functions(module, foreign_functions)
        divided = divide(module, request.num_replicas, request.num_partitions)
        program = module if divided is None else divided.program.module
        layouts = take_layouts(module) if divided is None else divided.layouts
        with advised(program):
            executable = client.compile(program, options)
    for asker, sharding in divided.inspected() if divided is not None else ():
        for inspector in inspectors:
            inspector(asker, sharding)
    if not isinstance(executable, Compiled):
        raise CompileError(f"{executable.name} has dynamic shapes, expected static ones")
    division = None if divided is None else divided.division
    if division is not None:
        division.check(executable.artifact)
    kept = _fill(reply, executable, division, layouts, hashlib.sha256(code).hexdigest())
    return _shared(kept, gpus, reply.handle)


def _require_own_memory(main: Function) -> None:
    """Raises an `Error` if a program for an accelerator returns an array in the host's memory."""
    for number in range(len(main.function_type.results)):
        kind = main.result_attributes(number).get(MEMORY_KIND, OWN)
        if kind != OWN:
            raise CompileError(
                f"result {number} of {main.sym_name} is to be in memory {kind!r}, expected {OWN!r}: a GPU returns "
                "arrays in its own memory, from which jax.device_put moves them"
            )


def _shared(kept: Kept, gpus: Sequence[GpuClient], handle: int) -> Kept:
    """Lets each of several GPUs load a program that it runs with the others."""
    executable, division = kept.executable, kept.division
    if division is None or not isinstance(executable, GpuLoadedExecutable):
        return kept
    if len(gpus) != division.count:
        devices = f"{division.replicas} replicas of {division.partitions} partitions"
        raise CompileError(f"{executable.name} is for {devices}, and was given {len(gpus)} GPUs")
    if executable.artifact.texts.get(TRANSFERS):
        raise CompileError(f"{executable.name} exchanges values with its host on channels, which several GPUs cannot")
    together = programs[handle] = DividedProgram(loaded_by_all(executable, gpus[1:]), division)
    return replace(kept, divided=together)


def compile_traced(kept: Kept, reply: CompileReply) -> Kept:
    """Compiles a program again, so that it tells a profiler of each launch. Only its code is of use."""
    stages = kept.executable.stages
    with exhaustion("compiling the program for a profiler", CompileError):
        executable = cpu_client().compile(stages.module, replace(stages.options, traced=True))
    assert isinstance(executable, CpuLoadedExecutable), "the first time, its shapes were static"
    return _fill(reply, executable, kept.division, kept.layouts, kept.fingerprint)


def _load(client: Client, data: bytes, reply: CompileReply, foreign_functions: Sequence[Find]) -> Kept:
    artifact = from_bytes(data)
    targets = {call.target for call in artifact.host_functions if isinstance(call, PythonFunction)}
    register_targets(targets, foreign_functions)
    with exhaustion("loading the program", CompileError):
        executable = client.load(artifact)
    assert isinstance(executable, Compiled), "artifacts have static shapes"
    division = Division.read(artifact.texts)
    if division is not None:
        division.check(artifact)
    layouts = Layouts.read(artifact.texts.get(LAYOUTS, ""), _count(executable, division), len(executable.outputs))
    return _fill(reply, executable, division, layouts, artifact.texts.get("fingerprint", ""))


def explanation(error: BaseException) -> tuple[int, str]:
    """Returns the code and the text that report an exception to a host."""
    match error:
        case UnsupportedOpError():
            return UNIMPLEMENTED, str(error)
        case ParseError() | VerificationError():
            return INVALID_ARGUMENT, str(error)
        case Error():
            return INTERNAL, str(error)
        case MemoryError():
            return RESOURCE_EXHAUSTED, "there is not enough memory to compile the program"
        case KeyboardInterrupt():
            return CANCELLED, "compiling was interrupted"
    return INTERNAL, f"{type(error).__name__}: {error}"


def _read(code: bytes, format: str) -> Module:
    if format != "mlir":
        raise ParseError(f"the program's format is {format!r}, expected 'mlir'")
    if code.startswith(BYTECODE):
        return deserialize(code)
    try:
        return parse(code.decode())
    except UnicodeDecodeError as error:
        raise ParseError(f"the program is neither bytecode nor text: {error}") from None


def _count(executable: Compiled, division: Division | None) -> int:
    """Returns the number of arguments. A program of several devices may have one of ours after its own."""
    return len(executable.inputs) if division is None else len(division.arguments)


def _fill(
    reply: CompileReply, executable: Compiled, division: Division | None, layouts: Layouts, fingerprint: str
) -> Kept:
    count = _count(executable, division)
    dims, slots = _slots([*executable.inputs[:count], *executable.outputs])
    donated = _donated(executable, division)
    flags = (ctypes.c_uint8 * len(donated))(*donated)
    aliases = (ctypes.c_int32 * count)(*_aliases(executable, division))
    name, digest = executable.name.encode(), fingerprint.encode()
    transfers = executable.artifact.texts.get(TRANSFERS, "").encode()
    shardings = b"" if division is None else shardings_text(division.shardings).encode()
    cost, memory = executable.cost_analysis(), executable.memory_analysis()
    fields = {
        "handle": next(_handles),
        **_code(executable),
        "arena_size": executable.artifact.arena_size,
        "arena_alignment": executable.artifact.arena_alignment,
        "num_arguments": count,
        "num_results": len(executable.outputs),
        "slots": slots,
        "donated": flags,
        "aliases": aliases,
        "name": name,
        "fingerprint": digest,
        "generated_code_size": memory.generated_code_size_in_bytes,
        "constant_size": memory.constant_size_in_bytes,
        "flops": cost["flops"],
        "transcendentals": cost["transcendentals"],
        "bytes_accessed": cost["bytes accessed"],
        "transfers": transfers,
        "layouts": layouts.text().encode(),
        "shardings": shardings,
    }
    texts = [value for value in fields.values() if isinstance(value, bytes)]
    for field, value in fields.items():
        setattr(reply, field, value)
    if isinstance(executable, GpuLoadedExecutable):
        programs[reply.handle] = executable
    pieces = () if division is None else fill_pieces(reply, division)
    return Kept(executable, division, layouts, fingerprint, (dims, slots, flags, aliases, *texts, *pieces))


def _code(executable: Compiled) -> dict[str, object]:
    """Returns what native code calls. Programs of accelerators are run by their handle."""
    if isinstance(executable, GpuLoadedExecutable):
        return {}
    return {"entry": executable.entry, "context": executable.context}


def _donated(executable: Compiled, division: Division | None) -> list[bool]:
    """Returns which arguments a run takes: as in XLA, those that are marked, as long as there are results of their
    size."""
    sizes = [slot.nbytes for slot in executable.inputs], [slot.nbytes for slot in executable.outputs]
    if division is not None:
        sizes = (
            held_bytes(executable.inputs, division.arguments),
            held_bytes(executable.outputs, division.results),
        )
    given, free = sizes[0], list(sizes[1])
    taken = [number >= 0 for number in _aliases(executable, division)]
    for size in itertools.compress(given, taken):
        free.remove(size)
    for index, (size, mark) in enumerate(zip(given, executable.artifact.texts["donated"], strict=False)):
        if mark == "1" and not taken[index] and size in free:
            taken[index] = True
            free.remove(size)
    return taken


def _aliases(executable: Compiled, division: Division | None) -> list[int]:
    """Returns for each argument which result may be in its memory, or -1. What devices have parts of is not in one
    place."""
    return results_in(executable.artifact) if division is None else [-1] * _count(executable, division)


def _slots(slots: Sequence[Slot]) -> tuple[Sequence[Any], ctypes.Array[SlotType]]:
    dims = [(ctypes.c_int64 * len(slot.shape))(*slot.shape) for slot in slots]
    described = [
        SlotType(_type(slot.dtype), len(slot.shape), extents) for slot, extents in zip(slots, dims, strict=True)
    ]
    return dims, (SlotType * len(slots))(*described)


def _type(dtype: np.dtype) -> int:
    if dtype.name not in TYPES:
        raise CompileError(f"PJRT has no element type for {dtype.name}")
    return TYPES[dtype.name]
