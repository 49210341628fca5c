"""Checks that a program is well formed, and proves its buffer plan correct: values that are alive at the same time do
not share bytes, except arguments of a launch whose kernel allows it (`compiler.kernel.sharing`), and nothing is read
before it is written. Liveness is computed from the finished steps, so that a mistake of the planner is detected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from operator import itemgetter

from trivium.compiler.collectives import NAMES, CollectivePermute, result_shape
from trivium.compiler.kernel import Buffer, may_share, numpy_dtype
from trivium.compiler.kernel.ops import OPERATIONS
from trivium.compiler.liveness import Liveness
from trivium.compiler.program import (
    Arena,
    Array,
    Collective,
    Constant,
    Copy,
    Input,
    Launch,
    Output,
    Program,
    Section,
    describe,
    walk,
    writes,
)
from trivium.ir.errors import CompileError


def verify(program: Program, loops_in_order: bool = False) -> None:
    """Raises CompileError if `program` is malformed, on a device with this property (`Target.loops_in_order`)."""
    for value in program.values():
        _verify_value(program, value)
    for value in program.sections():
        assert isinstance(value.storage, Section)
        _verify_section(value, value.storage)
    for step in walk(program.steps):
        if isinstance(step, Launch):
            _verify_count(step)
        for value in writes(step):
            if isinstance(value.storage, Input | Constant | Section):
                raise CompileError(f"a step writes {describe(value)}")
        if isinstance(step, Launch):
            _verify_launch(step)
            _verify_sharing(step, loops_in_order)
        elif isinstance(step, Copy):
            _require(step.source.nbytes == step.destination.nbytes, f"copy of {step.source.name}: sizes differ")
        elif isinstance(step, Collective):
            _verify_collective(step)
    _verify_memory(program)


def _verify_value(program: Program, value: Array) -> None:
    match value.storage:
        case Constant(array):
            fits = array.dtype == numpy_dtype(value.dtype) and array.nbytes == value.nbytes
            _require(
                fits, f"constant {value.name} holds {array.dtype}{array.shape}, expected {value.dtype}{value.shape}"
            )
            _require(array.flags.c_contiguous, f"constant {value.name} is not C-contiguous")
        case Arena(offset):
            if offset is None:
                raise CompileError(f"value {value.name} has no place in the arena: the buffer planner has not run")
            inside = offset >= 0 and offset + value.nbytes <= program.arena_size
            _require(inside, f"value {value.name} reaches outside the arena of {program.arena_size} bytes")
        case Input(_, int(result)):
            same = value.nbytes == program.outputs[result].nbytes
            _require(same, f"{describe(value)} is not as large as this result")
        case Output(index, offset):
            inside = offset >= 0 and offset + value.nbytes <= program.outputs[index].nbytes
            _require(inside, f"value {value.name} reaches outside result {index}")


def _verify_section(value: Array, section: Section) -> None:
    whole, place = section.whole, section.place
    elements = math.prod(value.shape) + section.last * section.stride * (1 + value.is_complex)
    inside = section.last >= 0 and section.stride >= 0 and elements <= math.prod(whole.shape)
    _require(value.dtype == whole.dtype and inside, f"{describe(value)} is not inside of {describe(whole)}")
    number = place.dtype in ("i32", "i64") and math.prod(place.shape) == 1
    _require(number, f"{describe(value)}: the place is {describe(place)}, expected one i32 or i64")


def _verify_count(launch: Launch) -> None:
    given, expected = len(launch.arguments), len(launch.kernel.params)
    _require(given == expected, f"launch of {launch.kernel.name} has {given} arguments, expected {expected}")


def _verify_launch(launch: Launch) -> None:
    kernel, name = launch.kernel, launch.kernel.name
    for param, argument in zip(kernel.params, launch.arguments, strict=True):
        fits = param.dtype == argument.dtype and _reach(param) <= math.prod(argument.shape)
        if not fits:
            raise CompileError(f"launch of {name}: {describe(argument)} does not fit param {param.name} {param.shape}")


def _verify_collective(step: Collective) -> None:
    name, source, destination = NAMES[type(step.kind)], step.source, step.destination
    _require(
        source.dtype == destination.dtype, f"{name}: {describe(source)} and {describe(destination)} differ in type"
    )
    combiner = getattr(step.kind, "combiner", "add")
    _require(combiner in OPERATIONS, f"{name}: {combiner!r} is not a scalar operation of kernels")
    _require(combiner == "add" or not source.is_complex, f"{name}: complex numbers are combined by add only")
    numbers = [number for group in step.groups for number in group]
    if isinstance(step.kind, CollectivePermute):
        pairs = all(len(group) == 2 for group in step.groups)
        targets = [group[-1] for group in step.groups]
        sources = [group[0] for group in step.groups]
        fits = pairs and len(set(targets)) == len(targets) and len(set(sources)) == len(sources)
        _require(fits, f"{name}: has groups {step.groups}, expected pairs in which no source or target repeats")
    else:
        _require(len(set(numbers)) == len(numbers), f"{name}: has groups {step.groups}, in which a device repeats")
    for size in {len(group) for group in step.groups} or {1}:
        expected = result_shape(step.kind, step.shape, size)
        _require(
            expected is not None and math.prod(expected) == math.prod(destination.shape),
            f"{name}: {describe(destination)} does not fit {describe(source)} in a group of {size}",
        )


def _reach(param: Buffer) -> int:
    """Returns one past the last element that a param addresses."""
    if 0 in param.shape:
        return 0
    return param.offset + 1 + sum((extent - 1) * step for extent, step in zip(param.shape, param.layout, strict=True))


# Memory

Region = tuple[object, int, int]
"""The memory that contains a value (the arena or an output), and where the value begins and ends there, in bytes."""


def region(value: Array) -> Region | None:
    """Returns where a value is in writable memory; None if it takes none of it. An argument may be in a result's, and
    a section is anywhere in its array."""
    match value.storage:
        case Section(whole):
            return region(whole)
        case Input(_, int(result)) if value.nbytes:
            return (Output, result), 0, value.nbytes
        case Arena(int(offset)) if value.nbytes:
            return Arena, offset, offset + value.nbytes
        case Output(index, offset) if value.nbytes:
            return (Output, index), offset, offset + value.nbytes
    return None


def overlap(one: Region | None, other: Region | None) -> bool:
    return one is not None and other is not None and one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


def _verify_sharing(launch: Launch, loops_in_order: bool) -> None:
    """Checks that arguments share bytes only where the kernel allows it."""
    kernel, pairs = launch.kernel, list(zip(launch.kernel.params, launch.arguments, strict=True))
    for number, (written, destination) in enumerate(pairs):
        place = region(destination)
        if written.mode == "in" or place is None:
            continue
        for other, (param, source) in enumerate(pairs):
            if other == number or not overlap(place, region(source)):
                continue
            allowed = param.mode == "in" and written.mode == "out" and place == region(source)
            _require(
                allowed and may_share(kernel, param, written, loops_in_order=loops_in_order),
                f"launch of {kernel.name}: {describe(source)} and {describe(destination)} share bytes, "
                f"which params {param.name} and {written.name} may not",
            )


def _verify_memory(program: Program) -> None:
    """Checks that values that are alive together do not share bytes, except as arguments of one launch."""
    liveness = Liveness(program)
    for value in liveness.entry:
        if region(value) is not None and not isinstance(value.storage, Input):
            raise CompileError(f"{describe(value)} is read before it is written")
    arguments = {2 * n: step.arguments for n, step in enumerate(walk(program.steps)) if isinstance(step, Launch)}
    for one, other in _shared(liveness.points):
        common = liveness.points[one] & liveness.points[other]
        alone = all(one in (args := arguments.get(point, ())) and other in args for point in _bits(common))
        _require(alone, f"{describe(one)} and {describe(other)} share bytes, and are alive together")


def _shared(points: dict[Array, int]) -> Iterator[tuple[Array, Array]]:
    """Yields every pair of values that share bytes at a point where both are alive."""
    spans = [
        (start, end, value, place)
        for value in points
        if (place := region(value)) is not None
        for start, end in _spans(points[value])
    ]
    active: dict[object, list[tuple[int, int, Array, Region]]] = {}
    for span in sorted(spans, key=itemgetter(0)):
        start, _, value, place = span
        others = [other for other in active.get(place[0], ()) if other[1] > start]
        yield from ((value, other[2]) for other in others if overlap(place, other[3]))
        active[place[0]] = [*others, span]


def _spans(points: int) -> Iterator[tuple[int, int]]:
    """Yields the runs of consecutive points, each as its first point and one past its last."""
    position = 0
    while points:
        gap = (points & -points).bit_length() - 1
        points >>= gap
        length = (~points & (points + 1)).bit_length() - 1
        yield position + gap, position + gap + length
        points >>= length
        position += gap + length


def _bits(points: int) -> Iterable[int]:
    return (point for start, end in _spans(points) for point in range(start, end))


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CompileError(message)
