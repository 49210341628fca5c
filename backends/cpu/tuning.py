"""Schedules of contractions by measurement. Each contraction of a program runs alone, with every distinct schedule that
the knobs give, on the operands' own constants and on random numbers. The fastest one is stored in the cache, for this
processor and number of threads: another compilation of the same kernel only reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from statistics import median

import numpy as np

from trivium.backends import cache, native
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.contraction.constants import packed_launches
from trivium.backends.cpu.contraction.kernels import Lowering, chosen
from trivium.backends.cpu.contraction.tiling import ESTIMATED, KNOBS, Knobs
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import CpuTarget
from trivium.compiler.artifact import Slot
from trivium.compiler.program import Array, Constant, Input, Launch, Output, Program, walk

ROUNDS, TURN = 7, 2e-3
"""How often each schedule has its turn, and how many seconds that takes at least."""

GAIN = 0.95
"""A schedule takes the place of the estimated one if it needs at most this share of its time: less is noise."""

_known: dict[bytes, Knobs] = {}


def tuned(program: Program, target: CpuTarget) -> CpuTarget:
    """Returns the target with the fastest knobs for each contraction of a program."""
    found: dict[str, Knobs] = {}
    packed = packed_launches(program, target)
    for launch in (step for step in walk(program.steps) if isinstance(step, Launch)):
        digest, operand = launch.kernel.digest(), packed[launch].operand if launch in packed else None
        runs_alone = all(param.mode != "inout" for param in launch.kernel.params)
        if digest not in found and runs_alone and chosen(launch.kernel, operand):
            found[digest] = _kept(launch, digest, operand, target)
    return replace(
        target, tuned=tuple(sorted((digest, knobs) for digest, knobs in found.items() if knobs != ESTIMATED))
    )


def _kept(launch: Launch, digest: str, operand: str | None, target: CpuTarget) -> Knobs:
    """Returns the knobs that an earlier compilation found for a kernel, or finds them now."""
    key = "\0".join(("autotune", str(native.VERSION), repr(target), repr(KNOBS), digest, str(operand))).encode()
    if key not in _known:
        store = cache.default()
        data = store.get(key) if store else None
        knobs = Knobs(**json.loads(data)) if data else fastest(launch, operand, target)
        if store and not data:
            store.put(key, json.dumps(asdict(knobs)).encode())
        _known[key] = knobs
    return _known[key]


def fastest(launch: Launch, operand: str | None, target: CpuTarget) -> Knobs:
    """Measures the schedules of a launch, in turns."""
    contenders = {knobs: _call(launch, candidate) for knobs, candidate in candidates(launch, operand, target).items()}
    if len(contenders) == 1:
        return ESTIMATED
    times: dict[Knobs, list[float]] = {knobs: [] for knobs in contenders}
    for _ in range(ROUNDS):
        for knobs, call in contenders.items():
            times[knobs].append(_seconds(call))
    medians = {knobs: median(seconds) for knobs, seconds in times.items()}
    best = min(medians, key=lambda knobs: medians[knobs])
    return best if medians[best] < GAIN * medians[ESTIMATED] else ESTIMATED


def candidates(launch: Launch, operand: str | None, target: CpuTarget) -> Mapping[Knobs, CpuTarget]:
    """Returns a target for each of the knobs that give different schedules; the estimated ones come first."""
    digest, constants = launch.kernel.digest(), frozenset({operand} if operand else ())
    found: dict[object, tuple[Knobs, CpuTarget]] = {}
    for knobs in KNOBS:
        candidate = replace(target, tuned=((digest, knobs),))
        tiling = Lowering(launch.kernel, candidate, constants).tiling
        found.setdefault(tiling, (knobs, candidate))
    return dict(found.values())


def _call(launch: Launch, target: CpuTarget) -> Callable[[], object]:
    """Returns a function that runs a launch alone."""
    program, bound = Program("tuning"), dict[Array, Array]()
    for param, argument in zip(launch.kernel.params, launch.arguments, strict=True):
        if isinstance(argument.storage, Constant) or argument in bound:
            continue
        written = param.mode == "out"
        group = program.outputs if written else program.inputs
        bound[argument] = replace(argument, storage=(Output if written else Input)(len(group)))
        group.append(bound[argument])
    program.steps = [Launch(launch.kernel, tuple(bound.get(argument, argument) for argument in launch.arguments))]
    executable = CpuExecutable(assemble_program(program, target))
    arguments = [_operand(slot) for slot in executable.inputs]
    return lambda: executable.execute(*arguments)


def _operand(slot: Slot) -> np.ndarray:
    """Returns random floats; zeros of other types, which are valid indices."""
    if slot.dtype.kind not in "fc":
        return np.zeros(slot.shape, slot.dtype)
    return np.random.default_rng(0).standard_normal(slot.shape).astype(slot.dtype)


def _seconds(call: Callable[[], object]) -> float:
    """Returns the time of one call, the mean of a turn."""
    call()  # the contender before has left its data in the caches
    begin, calls, passed = time.perf_counter(), 0, 0.0
    while passed < TURN:
        call()
        calls, passed = calls + 1, time.perf_counter() - begin
    return passed / calls
