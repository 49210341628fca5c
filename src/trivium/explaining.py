"""Explains in sentences how the compiler transformed a program: which ops share a kernel, why others do not, what is
copied, and for which shapes it was compiled again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from trivium.backends.parts import PartedExecutable
from trivium.backends.pjrt import LoadedExecutable
from trivium.backends.specializing import SpecializingExecutable
from trivium.compiler.costs import is_kernel_op, is_marked_contraction, is_reduction
from trivium.compiler.lowering import kernel_rule
from trivium.compiler.program import Copy, HostCall, Launch, Program, PythonCall, walk
from trivium.compiler.stages import Stages
from trivium.ir import ops
from trivium.ir.core import Operation, Value
from trivium.ir.errors import Error
from trivium.ir.func import Function, Module
from trivium.ir.location import file_locations
from trivium.page.tags import ops_of

FEW = 6
"""The kinds of ops of a kernel that a sentence names."""

FEW_LINES = 3
"""The lines of the user's that a sentence names."""


def explain_executable(loaded: LoadedExecutable) -> str:
    """See `Executable.explain`."""
    if isinstance(loaded, SpecializingExecutable):
        shapes, ranges = loaded.compiled_shapes(), loaded.compiled_ranges()
        lines = [
            f"{loaded.name} has dynamic shapes, and is compiled for those of its arguments, or for ranges of them."
        ]
        lines += [
            f"It was compiled for the shapes {_shapes(now)}{_since(before, now)}."
            for before, now in pairwise([None, *shapes])
        ]
        lines += [f"It was also compiled for {sizes}." for sizes in ranges]
        if len(shapes) > 1:
            lines.append("To avoid further compilations, pad arguments to one of these shapes.")
        return "\n".join([*lines, *([explain_executable(loaded.last)] if shapes or ranges else [])])
    if isinstance(loaded, PartedExecutable):
        line = f"{loaded.name} runs in 2 parts: the extents of the second one depend on what the first one computes."
        return "\n".join([line, explain_executable(loaded.first), explain_executable(loaded.rest)])
    stages: Stages | None = getattr(loaded, "stages", None)
    if stages is None:
        raise Error(f"{loaded.name} has no stages on its device, and cannot be explained")
    return explain(stages.program, stages.graph)


def _shapes(shapes: Shapes | None) -> str:
    return ", ".join("x".join(map(str, shape)) or "a scalar" if shape is not None else "-" for shape in shapes or ())


def _since(before: Shapes | None, now: Shapes | None) -> str:
    """Names the arguments whose shapes made another compilation necessary."""
    if before is None or now is None:
        return ""
    changed = [str(index) for index, (a, b) in enumerate(zip(before, now, strict=True)) if a != b]
    return (
        f": the shape of argument {_listed(changed)} is new" if changed else ": a value that extents depend on is new"
    )


Shapes = tuple[tuple[int, ...] | None, ...]


def explain(program: Program, graph: Module) -> str:
    """Returns what a graph became, one sentence per line."""
    every = ops_of([graph.main])
    launches = [step for step in walk(program.steps) if isinstance(step, Launch)]
    places: dict[Operation, list[int]] = {}
    for number, launch in enumerate(launches):
        for op in launch.ops:
            places.setdefault(op, []).append(number)
    lines = [_summary(program, launches, every), *_fused(launches), *_apart(every, places, launches)]
    return "\n".join([*lines, *_copies(program), *_calls(program)])


def _summary(program: Program, launches: Sequence[Launch], every: Sequence[Operation]) -> str:
    kernels = len({launch.kernel.digest() for launch in launches})
    computing = sum(1 for op in every if op.results and not isinstance(op, ops.Constant))
    if not launches and not computing:
        return "It computes nothing: its results are its arguments, or constants."
    became = f"{_many(len(launches), 'launch', 'launches')} of {_many(kernels, 'kernel', 'kernels')}"
    between = f"the values that pass between them take {program.arena_size:,} bytes" if program.arena_size else ""
    return f"{_many(computing, 'op', 'ops')} became {became}; {between or 'no value passes between them in memory'}."


def _fused(launches: Sequence[Launch]) -> Iterator[str]:
    """One sentence for each form of kernel, since the layers of a model repeat them."""
    seen: dict[tuple[str, ...], list[Launch]] = {}
    for launch in launches:
        names = tuple(_name(op) for op in launch.ops)
        if len(names) > 1:
            seen.setdefault(names, []).append(launch)
    for names, alike in seen.items():
        times = f", which is launched {len(alike)} times" if len(alike) > 1 else ""
        kernel, lines = alike[0].kernel.name, _lines_of(alike)
        yield f"{kernel}{lines}: {_kinds(names)} are one kernel{times}; what is between them is never stored."


def _kinds(names: Sequence[str]) -> str:
    """Names the ops of a kernel, each kind once."""
    kinds, counts = [*dict.fromkeys(names)], Counter(names)
    words = [f"{kind} ({counts[kind]} times)" if counts[kind] > 1 else kind for kind in kinds[:FEW]]
    rest = sum(counts[kind] for kind in kinds[FEW:])
    return _listed([*words, _many(rest, "more op", "more ops")] if rest else words)


def _lines_of(launches: Sequence[Launch]) -> str:
    """Names the lines of the user's that launches compute."""
    places = (place for x in launches for origin in x.origins for place in file_locations(origin, 1))
    known = (place for place in places if place.line and not place.file.startswith("<"))
    lines = sorted({(Path(place.file).name, place.line) for place in known})
    shown = [
        str(line) if file == before else f"{file}:{line}" for (before, _), (file, line) in pairwise([("", 0), *lines])
    ]
    more = [_many(len(shown) - FEW_LINES, "more line", "more lines")] if len(shown) > FEW_LINES else []
    return f" ({_listed([*shown[:FEW_LINES], *more])})" if shown else ""


def _apart(every: Sequence[Operation], places: dict[Operation, list[int]], launches: Sequence[Launch]) -> Iterator[str]:
    """One sentence for each reason why a value is stored between two kernels, with an example and a count."""
    found: dict[tuple[str, str], list[str]] = {}
    for op in every:
        for value in op.results:
            readers = [
                user for user in value.users if user in places and not set(places[user]) & set(places.get(op, []))
            ]
            if op in places and readers:
                reason = _reason(op, value, readers[0], places)
                writer, first = launches[places[op][0]], launches[places[readers[0]][0]]
                example = f"by {writer.kernel.name}{_lines_of([writer])} for {first.kernel.name}"
                found.setdefault((_name(op), reason), []).append(example)
    for (name, reason), examples in found.items():
        others = f", like {_many(len(examples) - 1, 'other', 'others')}" if len(examples) > 1 else ""
        yield f"The result of {name} is stored {examples[0]}{others}: {reason}."


def _reason(op: Operation, value: Value, reader: Operation, places: dict[Operation, list[int]]) -> str:
    """Why a value is stored in memory: the facts on which the compiler bases the decision, the strongest first."""
    kernels = {number for user in value.users for number in places.get(user, [])}
    ends = [user for user in value.users if not user.results]
    if ends:
        outermost = isinstance(ends[0].parent_op, Function)
        return "it is a result of the program" if outermost else "the loop or branch around it passes it on"
    if not is_kernel_op(reader):
        return f"{_name(reader)} is a step of its own"
    if kernel_rule(op) is not None:
        return f"{_name(op)} has a kernel of its own, which nothing after it joins"
    if kernel_rule(reader) is not None:
        return f"{_name(reader)} has a kernel of its own, which reads whole arrays"
    if len(kernels) > 1:
        return f"{len(kernels)} kernels read it, and loading it is cheaper than computing it again in each"
    if is_marked_contraction(reader):
        return f"{_name(reader)} reads each element many times, and would compute it each time"
    if is_marked_contraction(op) or is_reduction(op):
        return f"{_name(reader)} needs its elements in another order than the loops of {_name(op)} finish them"
    return f"the kernel of {_name(reader)} would compute it more than once, or read too many arrays"


def _copies(program: Program) -> Iterator[str]:
    for step in walk(program.steps):
        if isinstance(step, Copy):
            size = f"{step.source.nbytes:,} bytes"
            why = (
                "a result of its own"
                if step.destination in program.outputs
                else "a value that a loop or branch changes"
            )
            yield f"{size} are copied from {step.source.name} to {step.destination.name}, which is {why}."


def _calls(program: Program) -> Iterator[str]:
    for step in walk(program.steps):
        match step:
            case HostCall(target):
                yield f"{target} is a function of the host, which runs between kernels."
            case PythonCall(target):
                yield f"{target} is a custom call in Python: each run waits for the interpreter."


def _name(op: Operation) -> str:
    return op.NAME.rpartition(".")[2]


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"
