"""A program: steps that run in order. Arrays are buffers with a storage (input, output, constant, or an offset in the
arena); steps launch kernels on them, copy, loop, branch or call a function of the host. All of it is data: a backend
turns it into one native function, and looks up the functions that host calls name when that function is loaded. The
buffer planner (`compiler.buffers`) assigns every temporary its offset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from trivium.compiler.collectives import NAMES, CollectiveKind, Groups
from trivium.compiler.kernel import DType, Kernel, storage_bytes
from trivium.ir.core import Operation
from trivium.ir.func import Module
from trivium.ir.location import Location


@dataclass(frozen=True)
class Input:
    """The caller's `index`-th argument. Never written, unless the caller passes its memory as that of the result with
    the number `result`, too."""

    index: int
    result: int | None = None


@dataclass(frozen=True)
class Output:
    """The `index`-th result, allocated for the call and then the caller's own. A temporary may be in its memory, at an
    offset in bytes, until the result is computed."""

    index: int
    offset: int = 0


@dataclass(frozen=True, eq=False)
class Constant:
    """An array that lives as long as the program, passed by pointer. It is C-contiguous and has the value's shape and
    type. `origin` is the array that it was copied from, if its elements had to be copied."""

    array: np.ndarray
    origin: np.ndarray | None = None


@dataclass(frozen=True)
class Arena:
    """A temporary at a byte offset in the call's arena; the offset is None until the planner has run. Values may share
    bytes."""

    offset: int | None = None


@dataclass(frozen=True, eq=False)
class Section:
    """Neighbouring elements of the array `whole`: from element `place` * `stride` on, where `place` (one i32 or i64) is
    read at each use, and clamped to 0 to `last`. Only launches read sections; nothing writes them."""

    whole: Array
    place: Array
    stride: int
    last: int


Storage = Input | Output | Constant | Arena | Section


@dataclass(eq=False)
class Array:
    """A dense row-major buffer of the program. Complex elements (`is_complex`) are pairs: (..., 2) of their float
    type."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    storage: Storage
    is_complex: bool = False

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * storage_bytes(self.dtype)


@dataclass(eq=False)
class Launch:
    """Runs `kernel` with its params bound to `arguments`, in order. An argument's buffer must hold as many elements of
    the same type as the param's; the shapes may differ. Two arguments may share bytes only if `may_share`
    (compiler.kernel.sharing) allows it. `ops` are those of the graph that this launch computes, in program order: they
    belong to the launch because launches from different places may share a kernel. Launches of one `whole` write
    different elements of the same results, and read none of these."""

    kernel: Kernel
    arguments: tuple[Array, ...]
    ops: tuple[Operation, ...] = ()
    whole: object = None

    @property
    def origins(self) -> tuple[Location, ...]:
        """The locations of the ops, each once."""
        return tuple(dict.fromkeys(op.location for op in self.ops))

    @property
    def source(self) -> str:
        """The origins as text: the user's lines and ops, each once."""
        return "; ".join(dict.fromkeys(filter(None, (origin.describe() for origin in self.origins))))


@dataclass(eq=False)
class Copy:
    """Copies all bytes of `source` to `destination`."""

    source: Array
    destination: Array


@dataclass(eq=False)
class While:
    """Runs `condition`; as long as it leaves true in `predicate` (one i1), runs `body` and then `condition` again."""

    condition: list[Step]
    predicate: Array
    body: list[Step]


@dataclass(eq=False)
class Switch:
    """Runs `branches[index]`, or the last branch where `index` (one i32, i64 or i1) is out of range. An `if` is a
    switch on its i1 predicate with branches (false, true)."""

    index: Array
    branches: list[list[Step]]


@dataclass(eq=False)
class HostCall:
    """Calls the backend's function of the name `target`, which reads `arguments` and writes `results`. `attributes` are
    integers that it takes in addition, in this order."""

    target: str
    attributes: Mapping[str, int]
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]


@dataclass(eq=False)
class PythonCall:
    """Calls a custom call that the user registered: the only step that enters the Python interpreter. `program` is the
    text of a module whose entry function has only that op; its arguments and results are those of this step."""

    target: str
    program: str
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]


@dataclass(eq=False)
class Collective:
    """Exchanges values among the devices that run this program at the same time: each sends its `source` to its group,
    and writes what it receives to its `destination`. `groups` lists the numbers of devices; for a permutation, each
    group is a pair of a source and a target. A device waits in this step until its whole group has reached it."""

    kind: CollectiveKind
    groups: Groups
    source: Array
    destination: Array
    viewed_shape: tuple[int, ...] | None = None
    """The shape in which the source is exchanged, if it differs from the source's own."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.source.shape if self.viewed_shape is None else self.viewed_shape


Step = Launch | Copy | While | Switch | HostCall | PythonCall | Collective


@dataclass(eq=False)
class Program:
    """Steps in order, with the values they use. `inputs[i]` has storage `Input(i)`, `outputs[i]` has `Output(i)`."""

    name: str
    inputs: list[Array] = field(default_factory=list)
    outputs: list[Array] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    arena_size: int = 0
    graph: Module | None = None
    """The optimized module that the program was made from."""

    def values(self) -> list[Array]:
        """Returns every value with memory of its own: inputs and outputs first, then the others in the order of their
        first use."""
        found = dict.fromkeys([*self.inputs, *self.outputs])
        for step in walk(self.steps):
            found.update(dict.fromkeys(operands(step)))
        return list(found)

    def sections(self) -> list[Array]:
        """Returns the values that are sections of others."""
        launches = (step for step in walk(self.steps) if isinstance(step, Launch))
        found = (value for launch in launches for value in launch.arguments if isinstance(value.storage, Section))
        return list(dict.fromkeys(found))

    def kernels(self) -> list[Kernel]:
        """Returns every kernel object that is launched, once."""
        return list(dict.fromkeys(step.kernel for step in walk(self.steps) if isinstance(step, Launch)))

    def __str__(self) -> str:
        lines = [f"program @{self.name} (arena {self.arena_size} bytes) {{"]
        lines += [f"  {describe(value)}" for value in (*self.values(), *self.sections())]
        lines += _print_steps(self.steps, "  ")
        return "\n".join([*lines, "}"])


def nested(step: Step) -> list[list[Step]]:
    """Returns the step lists inside a step."""
    match step:
        case While(condition, _, body):
            return [condition, body]
        case Switch(_, branches):
            return branches
    return []


def walk(steps: list[Step]) -> Iterator[Step]:
    """Yields all steps, outer ones before inner ones."""
    for step in steps:
        yield step
        for inner in nested(step):
            yield from walk(inner)


def operands(step: Step) -> tuple[Array, ...]:
    """Returns the values that the step itself reads or writes, without those of nested steps. Instead of a section,
    these are the array that it is in, and its place."""
    match step:
        case Launch(_, arguments):
            return with_memory(arguments)
        case Copy(source, destination) | Collective(_, _, source, destination):
            return source, destination
        case While(_, predicate, _):
            return (predicate,)
        case Switch(index, _):
            return (index,)
        case HostCall(_, _, arguments, results) | PythonCall(_, _, arguments, results):
            return (*arguments, *results)


def reads(step: Step) -> tuple[Array, ...]:
    """Returns the values whose contents the step itself reads."""
    match step:
        case Launch(kernel, arguments):
            return with_memory(a for p, a in zip(kernel.params, arguments, strict=True) if p.mode != "out")
        case Copy(source, _) | Collective(_, _, source, _):
            return (source,)
        case HostCall(_, _, arguments, _) | PythonCall(_, _, arguments, _):
            return arguments
    return operands(step)


def writes(step: Step) -> tuple[Array, ...]:
    """Returns the values whose contents the step itself writes."""
    match step:
        case Launch(kernel, arguments):
            return tuple(a for p, a in zip(kernel.params, arguments, strict=True) if p.mode != "in")
        case Copy(_, destination) | Collective(_, _, _, destination):
            return (destination,)
        case HostCall(_, _, _, results) | PythonCall(_, _, _, results):
            return results
    return ()


def with_memory(values: Iterable[Array]) -> tuple[Array, ...]:
    """Returns the values, and instead of each section the array that it is in, and its place."""
    found: list[Array] = []
    for value in values:
        match value.storage:
            case Section(whole, place):
                found += with_memory((whole, place))
            case _:
                found.append(value)
    return tuple(found)


def replace_values(steps: list[Step], names: dict[Array, Array]) -> None:
    """Replaces values, everywhere in `steps`: each key of `names` by its value there."""

    def replaced(values: tuple[Array, ...]) -> tuple[Array, ...]:
        for value in values:
            if isinstance(section := value.storage, Section):
                whole, place = replaced((section.whole, section.place))
                value.storage = replace(section, whole=whole, place=place)
        return tuple(names.get(value, value) for value in values)

    for step in walk(steps):
        match step:
            case Launch():
                step.arguments = replaced(step.arguments)
            case Copy() | Collective():
                step.source, step.destination = replaced((step.source, step.destination))
            case While():
                (step.predicate,) = replaced((step.predicate,))
            case Switch():
                (step.index,) = replaced((step.index,))
            case HostCall() | PythonCall():
                step.arguments, step.results = replaced(step.arguments), replaced(step.results)


def describe(value: Array) -> str:
    """Describes an array on one line: its name, type and storage."""
    shape = "x".join(map(str, (*value.shape, value.dtype)))
    match value.storage:
        case Constant():
            storage = "constant"
        case Arena(offset):
            storage = f"arena {'?' if offset is None else offset}"
        case Input(index, result):
            storage = f"input {index}" + ("" if result is None else f" and result {result}")
        case Output(index, offset):
            storage = f"output {index}" + (f" + {offset}" if offset else "")
        case Section(whole, place, stride):
            storage = f"{whole.name} + {place.name} * {stride}"
    return f"{value.name}: {shape} at {storage}"


def _names(values: tuple[Array, ...]) -> str:
    return ", ".join(value.name for value in values)


def _describe_kind(kind: CollectiveKind) -> str:
    """Describes a collective with its attributes: `all_reduce combiner=add`."""
    return " ".join([NAMES[type(kind)], *(f"{name}={value}" for name, value in vars(kind).items())])


def _print_steps(steps: list[Step], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Launch(kernel, arguments):
                known = step.source
                yield f"{indent}launch @{kernel.name}({_names(arguments)}){f'  // {known}' if known else ''}"
            case Copy(source, destination):
                yield f"{indent}copy {source.name} to {destination.name}"
            case Collective(kind, groups, source, destination):
                yield f"{indent}{_describe_kind(kind)} of {list(map(list, groups))} {source.name} to {destination.name}"
            case HostCall(target, attributes, arguments, results):
                about = ", ".join(f"{name} = {value}" for name, value in attributes.items())
                yield f"{indent}call @{target}({_names(arguments)}) {{{about}}} to ({_names(results)})"
            case PythonCall(target, _, arguments, results):
                yield f"{indent}python call @{target}({_names(arguments)}) to ({_names(results)})"
            case While(condition, predicate, body):
                yield f"{indent}while {{"
                yield from _print_steps(condition, indent + "  ")
                yield f"{indent}}} {predicate.name} {{"
                yield from _print_steps(body, indent + "  ")
                yield f"{indent}}}"
            case Switch(index, branches):
                for i, branch in enumerate(branches):
                    yield f"{indent}switch {index.name} {{ case {i}:" if i == 0 else f"{indent}case {i}:"
                    yield from _print_steps(branch, indent + "  ")
                yield f"{indent}}}"
