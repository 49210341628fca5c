"""Compiles a program for every configuration, runs it in guarded memory, and compares with the interpreter.

The configurations are the schedules and code for AVX2 and for AVX-512 (64-byte vectors, 32 registers), each on one
thread and on two, where all parallel work is split, however small it is, and arguments are given away: a second run
has results in their memory. With AVX-512, kernels have almost no scratch memory, as on devices where it is scarce, and
the smallest temporaries may be in the memory of results. Launches in place are also checked by recording what they read
and write (`in_place.py`). LLVM legalizes the AVX-512 form for the processor that runs the test: the choices and the
code that Trivium makes for AVX-512 are always tested, the instructions of AVX-512 only if the processor has them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from tests.random_programs import in_place
from tests.random_programs.arrays import arguments_of
from tests.random_programs.tracked import Tracked, difference
from tests.random_programs.tracking import Tracker
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import CODE_GENERATION, CpuTarget, host, level
from trivium.compiler import memory_scheduler, pipeline
from trivium.compiler.donation import DONOR
from trivium.compiler.lower import lower
from trivium.compiler.program import Input, Program
from trivium.compiler.target import TileSizes
from trivium.ir.attributes import UNIT, Dictionary
from trivium.ir.func import Module

GUARD = 96
"""Bytes before and after an array that nothing may write to."""
POISON = 0xA5

LITTLE_SCRATCH = 64
"""Bytes: rows of a few elements are sorted in it; longer ones take a launch for each pass."""

SHORT_ROW = 5
"""On two threads, rows of more elements are in blocks, or take a launch for each pass."""

SPLITTING = {"split_cost": 60.0, "wake_cost": 60.0, "piece_cost": 2.0}
"""Work is split among threads, however small it is."""

SMALL_CACHES = {"prefetch_bytes": 0}
"""Rows at computed places are requested before they are used, however small their arrays are."""

CACHE_BYTES = (4 << 10, 8 << 10)
"""On two threads, products are computed in blocks, and read several rows at the same time, as large ones do."""

SMALL_TILES = TileSizes(largest=80, tile=64, rows=2)
"""On two threads, everything that can be computed in tiles is, with tiles of a few elements."""


class Finding(Exception):
    """A program that does not compile, or has wrong results. `key` is the same for findings of one kind."""

    def __init__(self, key: str, detail: str = ""):
        super().__init__(f"{key}: {detail}")
        self.key = key
        self.detail = detail


@dataclass(frozen=True)
class Legalized(CpuTarget):
    """Returns a target whose vectors LLVM splits into those of the host. Compiling is fast, because the instructions
    themselves are not under test."""

    @property
    def code_generation(self) -> dict[str, int | str]:
        return {**CODE_GENERATION, "opt": 0}


@dataclass(frozen=True)
class Configuration:
    """A vector width, and a number of threads."""

    vector_bytes: int
    threads: int

    def __str__(self) -> str:
        return f"{self.vector_bytes * 8} bits, {self.threads} thread{'s' * (self.threads > 1)}"

    @property
    def target(self) -> CpuTarget:
        own = host()
        facts = {field.name: getattr(own, field.name) for field in dataclasses.fields(own)}
        facts |= {"vector_bytes": self.vector_bytes, "vector_registers": 32 if self.vector_bytes > 32 else 16}
        facts["masks_apart"] = own.masks_apart and self.vector_bytes > 32
        if self.vector_bytes <= 32:
            facts["matrix_instructions"] = level("x86-64-v3").matrix_instructions if "x86" in own.triple else ()
        else:
            if self.threads > 1:
                # Those for tiles come first, and leave few products to the others.
                facts["matrix_instructions"] = tuple(one for one in own.matrix_instructions if one.in_vectors)
            row = SHORT_ROW if self.threads > 1 else own.fusion.serial_row
            facts["fusion"] = dataclasses.replace(own.fusion, scratch_bytes=LITTLE_SCRATCH, serial_row=row)
            facts["shared_result_bytes"] = 1
        if self.threads > 1:
            facts["cache_bytes"] = CACHE_BYTES
        facts["tiles"] = SMALL_TILES if self.threads > 1 else None
        kind = CpuTarget if self.vector_bytes <= own.vector_bytes else Legalized
        return kind(**(facts | {"threads": self.threads} | SPLITTING | SMALL_CACHES))


CONFIGURATIONS = tuple(Configuration(width, threads) for width in (32, 64) for threads in (1, 2))


def judge(module: Module, configurations: Sequence[Configuration] = CONFIGURATIONS) -> None:
    """Raises a `Finding` if a configuration differs, and `Unstable` if the results cannot be judged."""
    arguments = arguments_of(module.main)
    expected = Tracker().main(module, arguments)
    try:
        targets = [configuration.target for configuration in configurations]
        modules = [_donating(module) if target.threads > 1 else module for target in targets]
        programs = [_lowered(each, target) for each, target in zip(modules, targets, strict=True)]
    except Exception as error:
        raise _failure("compile", error) from error
    for configuration, program in zip(configurations, programs, strict=True):
        _compare(configuration, program, arguments, expected)


def _lowered(module: Module, target: CpuTarget) -> Program:
    """Returns the program of a module. On two threads, launches are in the order that may need less memory, whether it
    does or not."""
    graph = pipeline.optimize(module, target)
    if target.threads == 1:
        return lower(graph, target)
    sizes = itertools.count(0, -1)
    with patch.object(memory_scheduler, "arena_size", lambda *_: next(sizes)):
        return lower(graph, target)


def _donating(module: Module) -> Module:
    """Returns the program with all arguments given away: a result may be in the memory of each."""
    given = module.clone()
    main = given.main
    main.attributes["arg_attrs"] = tuple(
        Dictionary({**main.argument_attributes(index), DONOR: UNIT}) for index in range(len(main.arguments))
    )
    return given


def _failure(what: str, error: Exception) -> Finding:
    """Returns an exception as a finding; its kind is its type and the place where it was raised."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        place, trace = f"{code.co_filename.rpartition('/')[2]}:{code.co_name}", trace.tb_next
    return Finding(f"{what}: {type(error).__name__} in {place}", str(error)[:2000])


def _compare(
    configuration: Configuration, program: Program, arguments: Sequence[np.ndarray], expected: Sequence[Tracked]
) -> None:
    for line in in_place.unsound(program):
        raise Finding("in place", f"{configuration}: {line}")
    try:
        executable = CpuExecutable(assemble_program(program, configuration.target))
    except Exception as error:
        raise _failure("compile", error) from error
    given = {place.result: place.index for value in program.inputs if isinstance(place := value.storage, Input)}
    like = [value.array for value in expected]
    for shared in ({}, given)[: configuration.threads]:
        results = run_guarded(executable, arguments, like, str(configuration), shared)
        for index, (result, value) in enumerate(zip(results, expected, strict=True)):
            if found := difference(result, value):
                raise Finding("difference", f"{configuration}, result {index} ({value.array.dtype}): {found}")


def run_guarded(
    executable: CpuExecutable,
    arguments: Sequence[np.ndarray],
    like: Sequence[np.ndarray],
    where: str,
    shared: Mapping[int | None, int],
) -> list[np.ndarray]:
    """Returns the results. The bytes around the arrays must not change, and neither must the arguments, except those in
    whose memory results are (`shared`). Arrays start at arbitrary elements, and results are not zero beforehand."""
    memory = [_guarded(array, filled=True) for array in arguments]
    for index, array in enumerate(like):
        argument = shared.get(index)
        memory.append((memory[argument][0], array) if argument is not None else _guarded(array, filled=False))
    executable.execute_at([block.ctypes.data + GUARD + array.itemsize for block, array in memory])
    for index, (block, array) in enumerate(memory):
        start = GUARD + array.itemsize
        outside = np.concatenate([block[:start], block[start + array.nbytes :]])
        if (outside != POISON).any():
            raise Finding("writes out of bounds", f"{where}, around array {index}")
    results = [_view(block, array) for block, array in memory]
    for index, (result, array) in enumerate(zip(results, arguments, strict=False)):
        if index not in shared.values() and result.tobytes() != array.tobytes():
            raise Finding("writes to an argument", f"{where}, argument {index}")
    return results[len(arguments) :]


def _guarded(array: np.ndarray, filled: bool) -> tuple[np.ndarray, np.ndarray]:
    block = np.full(2 * GUARD + 2 * array.itemsize + array.nbytes, POISON, np.uint8)
    if filled:
        _view(block, array)[...] = array
    return block, array


def _view(block: np.ndarray, array: np.ndarray) -> np.ndarray:
    start = GUARD + array.itemsize
    return block[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
