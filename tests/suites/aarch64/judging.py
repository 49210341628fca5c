"""Programs with what their results must be, and whether they are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.backends.cpu.emulation import Emulated
from tests.compiler.lowering.coverage import COMPILED, expect_equal
from tests.ir.ops.records import Record
from tests.random_programs.arrays import arguments_of
from tests.random_programs.programs import random_program
from tests.random_programs.runner import SPLITTING
from tests.random_programs.tracked import Tracked, Unstable, difference
from tests.random_programs.tracking import Tracker
from trivium.backends.cpu.assembly import assemble, assemble_program
from trivium.backends.cpu.executable import whole
from trivium.backends.cpu.packed import constants_of
from trivium.backends.cpu.target import level
from trivium.compiler import pipeline
from trivium.compiler.artifact import Artifact, PythonFunction
from trivium.compiler.constants import constant_arrays
from trivium.compiler.lower import lower
from trivium.compiler.stages import CompileOptions, Stages

TARGET = level("aarch64")


@dataclass(frozen=True)
class Case:
    """A compiled program. `judge` returns what is wrong with results, if anything."""

    name: str
    artifact: Artifact
    arguments: Sequence[np.ndarray]
    judge: Callable[[Sequence[np.ndarray]], str]


def judged(cases: Sequence[Case], emulated: Emulated, folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the name of each case, and what is wrong with it, if anything."""
    ran = emulated.run([(case.artifact, case.arguments) for case in cases], folder)
    for case, results in zip(cases, ran, strict=True):
        yield case.name, results if isinstance(results, str) else case.judge(results)


def record_cases(every: int) -> Iterator[Case]:
    """Yields every N-th record of an op that can be compiled, but for those whose programs call LAPACK, which only a
    process with Python finds."""
    for record in COMPILED[::every]:
        module = record.module()
        stages = Stages(module, TARGET, CompileOptions(target="aarch64"))
        artifact = embedded(assemble(stages, TARGET), constant_arrays(module))
        if any(isinstance(call, PythonFunction) or call.routine for call in artifact.host_functions):
            continue
        yield Case(str(record), artifact, record.arrays, functools.partial(_judge_record, record))


def _judge_record(record: Record, results: Sequence[np.ndarray]) -> str:
    try:
        expect_equal(record, record.module(), results)
    except AssertionError as error:
        return " ".join(str(error).split())[:400]
    return ""


def random_cases(seed: int, count: int) -> Iterator[Case]:
    """Yields random programs whose results can be judged; every second one splits its work among two threads."""
    for number in range(seed, seed + count):
        module = random_program(number)
        arguments = arguments_of(module.main)
        try:
            expected = Tracker().main(module, arguments)
        except Unstable:
            continue
        target = replace(TARGET, threads=1 + number % 2, **SPLITTING)
        program = lower(pipeline.optimize(module, target), target)
        artifact = embedded(assemble_program(program, target), ())
        yield Case(f"seed {number}", artifact, arguments, functools.partial(_judge_random, expected))


def _judge_random(expected: Sequence[Tracked], results: Sequence[np.ndarray]) -> str:
    told = (difference(result, value) for result, value in zip(results, expected, strict=True))
    return "; ".join(filter(None, told))


def embedded(artifact: Artifact, constants: Sequence[np.ndarray]) -> Artifact:
    """Returns the artifact with its constants as its program reads them."""
    return whole(artifact, constants_of(artifact, constants))
