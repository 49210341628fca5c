"""The steps of the host that run a program on a GPU, as data: kernel launches, copies, loops and branches. The machine
code of an artifact is such a plan, followed by the device's binary."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from trivium.compiler import program as whole
from trivium.compiler.collectives import NAMES, CollectiveKind, Groups
from trivium.compiler.kernel import storage_bytes
from trivium.ir.errors import CompileError


@dataclass(frozen=True)
class Value:
    """An array: the input, output or constant of that number, or the bytes of the arena from there on. A temporary may
    be in the memory of an output, at an offset."""

    storage: str
    number: int
    dtype: str
    shape: tuple[int, ...]
    is_complex: bool
    offset: int = 0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * storage_bytes(self.dtype)


@dataclass(frozen=True)
class TensorMap:
    """An array of which the device itself copies boxes to shared memory. It begins `offset` bytes into the launch's
    argument of that number. `extents` and `box` begin with the innermost dimension, along which elements are
    neighbours; `strides` are the bytes between neighbours along all others. In shared memory, the lines of a box, of
    128 bytes, are permuted, and elements of f32 are rounded if `dtype` is tf32.

    If it has `corners`, windows of an image are copied instead: `box` has their features and their number, `corners`
    where the first and the last one begins along each spatial dimension, relative to the first and the last element,
    and `steps` their strides."""

    argument: int
    offset: int
    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    corners: tuple[tuple[int, int], ...] = ()
    steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Launch:
    """Runs a kernel in `blocks` blocks of `threads` threads on the values of these numbers, and grants each block
    `memory` bytes of dynamic shared memory. `origin` says where in the user's program it comes from.
    `maps`: the array descriptors that the kernel takes after the values, the workspace and the counters."""

    kernel: str
    blocks: int
    threads: int
    memory: int
    arguments: tuple[int, ...]
    origin: str
    maps: tuple[TensorMap, ...] = ()


@dataclass(frozen=True)
class Copy:
    """Copies all bytes of a value to another."""

    source: int
    destination: int


@dataclass(frozen=True)
class While:
    """Runs `condition`; as long as it leaves true in `predicate`, runs `body` and then `condition` again."""

    condition: tuple[Step, ...]
    predicate: int
    body: tuple[Step, ...]


@dataclass(frozen=True)
class Switch:
    """Runs one of the branches, the last one if `index` is out of range."""

    index: int
    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Call:
    """Calls a function on the host: `target` with these attributes, or, if `program` is not empty, the custom call that
    is its only op."""

    target: str
    attributes: tuple[tuple[str, int], ...]
    program: str
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Collective:
    """Exchanges values of this shape with the other devices that run the program: see `whole.Collective`."""

    kind: CollectiveKind
    groups: Groups
    source: int
    destination: int
    shape: tuple[int, ...]


Step = Launch | Copy | While | Switch | Call | Collective


@dataclass(frozen=True)
class Plan:
    """The steps of a program, the values that they use, and the offsets in the arena from which on kernels have their
    counters, which are zero before each launch, and their scratch memory."""

    values: tuple[Value, ...]
    steps: tuple[Step, ...]
    counters: int
    workspace: int


@dataclass(frozen=True)
class Launched:
    """A function of the device that a launch runs, with `memory` bytes that it grants each block, and `maps` of
    arguments."""

    kernel: str
    blocks: int
    threads: int
    memory: int = 0
    maps: tuple[TensorMap, ...] = ()


@dataclass(frozen=True)
class Work:
    """What the device does in the place of a step: functions, one after the other, on these arrays; none, if functions
    in the place of an earlier step do its work."""

    functions: tuple[Launched, ...] = ()
    arguments: tuple[whole.Array, ...] = ()
    origin: str = ""


def plan_of(program: whole.Program, launched: Mapping[whole.Step, Work], counters: int, workspace: int) -> Plan:
    """Returns the plan of a program, of whose launches the work is given, as is that of copies that are part of a
    launch. Constants are numbered in the order of `Program.values`."""
    return _Planner(program, launched).plan(counters, workspace)


class _Planner:
    def __init__(self, program: whole.Program, launched: Mapping[whole.Step, Work]):
        self._program, self._launched = program, launched
        self._arrays = program.values()
        self._numbers = {array: number for number, array in enumerate(self._arrays)}

    def plan(self, counters: int, workspace: int) -> Plan:
        constants = [array for array in self._arrays if isinstance(array.storage, whole.Constant)]
        values = tuple(_value(array, constants) for array in self._arrays)
        return Plan(values, self._steps(self._program.steps), counters, workspace)

    def _steps(self, steps: Sequence[whole.Step]) -> tuple[Step, ...]:
        return tuple(made for step in steps for made in self._made(step))

    def _made(self, step: whole.Step) -> Sequence[Step]:
        """Returns a step of the program as steps of the plan: one, or the launches of a kernel, in order."""
        if (work := self._launched.get(step)) is not None:
            rest = self._all(work.arguments), work.origin
            return [Launch(one.kernel, one.blocks, one.threads, one.memory, *rest, one.maps) for one in work.functions]
        match step:
            case whole.Launch(kernel):
                raise CompileError(f"{kernel.name} has not been compiled")
            case whole.Copy(source, destination):
                return [Copy(*self._all((source, destination)))]
            case whole.While(condition, predicate, body):
                return [While(self._steps(condition), self._numbers[predicate], self._steps(body))]
            case whole.Switch(index, branches):
                return [Switch(self._numbers[index], tuple(map(self._steps, branches)))]
            case whole.HostCall(target, attributes, arguments, results):
                return [Call(target, tuple(attributes.items()), "", self._all(arguments), self._all(results))]
            case whole.PythonCall(target, program, arguments, results):
                return [Call(target, (), program, self._all(arguments), self._all(results))]
            case whole.Collective(kind, groups, source, destination):
                ends = self._numbers[source], self._numbers[destination]
                return [Collective(kind, groups, *ends, step.shape)]

    def _all(self, arrays: Sequence[whole.Array]) -> tuple[int, ...]:
        return tuple(self._numbers[array] for array in arrays)


def _value(array: whole.Array, constants: Sequence[whole.Array]) -> Value:
    begin = 0
    match array.storage:
        case whole.Input(index):
            place = "input", index
        case whole.Output(index, begin):
            place = "output", index
        case whole.Constant():
            place = "constant", constants.index(array)
        case whole.Arena(offset):
            assert offset is not None, "the buffer plan has given every value its place"
            place = "arena", offset
        case whole.Section():
            raise AssertionError("no target of this backend has sections")
    return Value(*place, str(array.dtype), tuple(array.shape), array.is_complex, begin)


def to_bytes(plan: Plan, binary: bytes) -> bytes:
    """Returns a plan with the binary that has its kernels."""
    text = json.dumps(_encoded(plan), separators=(",", ":")).encode()
    return len(text).to_bytes(8, "little") + text + binary


def from_bytes(data: bytes) -> tuple[Plan, bytes]:
    """Returns a plan and its binary."""
    end = 8 + int.from_bytes(data[:8], "little")
    plan = _decoded(json.loads(data[8:end]))
    assert isinstance(plan, Plan), "the code of a GPU's artifact begins with a plan"
    return plan, data[end:]


_TYPES = {
    kind.__name__: kind for kind in (Value, TensorMap, Launch, Copy, While, Switch, Call, Collective, *NAMES, Plan)
}


def _encoded(item: object) -> object:
    if isinstance(item, tuple):
        return list(map(_encoded, item))
    if is_dataclass(item):
        return [{"type": type(item).__name__}, *(_encoded(getattr(item, field.name)) for field in fields(item))]
    return item


def _decoded(item: Any) -> Any:
    if not isinstance(item, list):
        return item
    if item and isinstance(item[0], dict) and "type" in item[0]:
        return _TYPES[item[0]["type"]](*map(_decoded, item[1:]))
    return tuple(map(_decoded, item))


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Yields all steps, outer ones before inner ones."""
    for step in steps:
        yield step
        match step:
            case While(condition, _, body):
                yield from walk((*condition, *body))
            case Switch(_, branches):
                yield from walk([inner for branch in branches for inner in branch])
