"""A program: what is run, in order. Values are buffers with a place (input, output, constant, or an offset in the
arena); steps launch kernels on them, copy, loop, branch or call back into the host. A backend turns the whole of it
into one native function; the buffer planner (`compiler.buffers`) gives every temporary its offset."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from trivium.compiler.kernel import Buffer, DType, Kernel, numpy_dtype, storage_bytes
from trivium.ir.errors import CompileError


@dataclass(frozen=True)
class Input:
    """The caller's `index`-th argument. Never written."""

    index: int


@dataclass(frozen=True)
class Output:
    """The `index`-th result, allocated for the call and then the caller's own."""

    index: int


@dataclass(frozen=True, eq=False)
class Constant:
    """An array that lives as long as the program, passed by pointer. C-contiguous, of the value's shape and type."""

    array: np.ndarray


@dataclass(frozen=True)
class Arena:
    """A temporary at a byte offset in the call's arena; None until the planner has placed it. Values may share
    bytes."""

    offset: int | None = None


Storage = Input | Output | Constant | Arena


@dataclass(eq=False)
class Value:
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
    """Runs `kernel` with its params bound to `arguments`, in order. An argument's buffer must hold as many elements
    of the same type as the param's, the shape may differ. Two arguments may share bytes only where `may_share`
    (compiler.kernel.sharing) says so."""

    kernel: Kernel
    arguments: tuple[Value, ...]


@dataclass(eq=False)
class Copy:
    """Copies all bytes of `source` to `destination`."""

    source: Value
    destination: Value


@dataclass(eq=False)
class While:
    """Runs `condition`; as long as it leaves true in `predicate` (one i1), runs `body` and then `condition` again."""

    condition: list[Step]
    predicate: Value
    body: list[Step]


@dataclass(eq=False)
class Switch:
    """Runs `branches[index]`, or the last branch where `index` (one i32, i64 or i1) is out of range. An `if` is a
    switch on its i1 predicate with branches (false, true)."""

    index: Value
    branches: list[list[Step]]


@dataclass(eq=False)
class HostCall:
    """Calls `function(*arguments, *results)` on the host with NumPy arrays over the buffers; it writes into the
    results' arrays."""

    name: str
    function: Callable[..., None]
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]


Step = Launch | Copy | While | Switch | HostCall


@dataclass(eq=False)
class Program:
    """Steps in order, with the values they use. `inputs[i]` has storage `Input(i)`, `outputs[i]` has `Output(i)`."""

    name: str
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    arena_size: int = 0

    def values(self) -> list[Value]:
        """Every value, inputs and outputs first, then in the order of first use."""
        found = dict.fromkeys([*self.inputs, *self.outputs])
        for step in walk(self.steps):
            found.update(dict.fromkeys(operands(step)))
        return list(found)

    def kernels(self) -> list[Kernel]:
        """Every kernel object that is launched, once."""
        return list(dict.fromkeys(step.kernel for step in walk(self.steps) if isinstance(step, Launch)))

    def verify(self) -> None:
        """Raises CompileError where a launch does not fit its kernel or a value its place."""
        for value in self.values():
            _verify_value(self, value)
        for step in walk(self.steps):
            if isinstance(step, Launch):
                _verify_launch(step)
            elif isinstance(step, Copy):
                _require(step.source.nbytes == step.destination.nbytes, f"copy of {step.source.name}: sizes differ")

    def __str__(self) -> str:
        lines = [f"program @{self.name} (arena {self.arena_size} bytes) {{"]
        lines += [f"  {_describe(value)}" for value in self.values()]
        lines += _print_steps(self.steps, "  ")
        return "\n".join([*lines, "}"])


def nested(step: Step) -> list[list[Step]]:
    """The step lists inside a step."""
    match step:
        case While(condition, _, body):
            return [condition, body]
        case Switch(_, branches):
            return branches
    return []


def walk(steps: list[Step]) -> Iterator[Step]:
    """All steps, outer before inner."""
    for step in steps:
        yield step
        for inner in nested(step):
            yield from walk(inner)


def operands(step: Step) -> tuple[Value, ...]:
    """The values that the step itself reads or writes, without those of nested steps."""
    match step:
        case Launch(_, arguments):
            return arguments
        case Copy(source, destination):
            return source, destination
        case While(_, predicate, _):
            return (predicate,)
        case Switch(index, _):
            return (index,)
        case HostCall(_, _, arguments, results):
            return (*arguments, *results)


def reads(step: Step) -> tuple[Value, ...]:
    """The values whose contents the step itself reads."""
    match step:
        case Launch(kernel, arguments):
            return tuple(a for p, a in zip(kernel.params, arguments, strict=True) if p.mode != "out")
        case Copy(source, _):
            return (source,)
        case HostCall(_, _, arguments, _):
            return arguments
    return operands(step)


def writes(step: Step) -> tuple[Value, ...]:
    """The values whose contents the step itself writes."""
    match step:
        case Launch(kernel, arguments):
            return tuple(a for p, a in zip(kernel.params, arguments, strict=True) if p.mode != "in")
        case Copy(_, destination):
            return (destination,)
        case HostCall(_, _, _, results):
            return results
    return ()


def _verify_value(program: Program, value: Value) -> None:
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


def _verify_launch(launch: Launch) -> None:
    kernel, name = launch.kernel, launch.kernel.name
    counts = len(launch.arguments), len(kernel.params)
    _require(counts[0] == counts[1], f"launch of {name} has {counts[0]} arguments, expected {counts[1]}")
    for param, argument in zip(kernel.params, launch.arguments, strict=True):
        fits = param.dtype == argument.dtype and _reach(param) <= math.prod(argument.shape)
        _require(
            fits,
            f"launch of {name}: {_describe(argument)} does not fit param {param.name} {param.shape}",
        )
        _require(
            param.mode == "in" or not isinstance(argument.storage, Input | Constant),
            f"launch of {name} writes {argument.name}",
        )


def _reach(param: Buffer) -> int:
    """One past the last element that a param addresses."""
    if 0 in param.shape:
        return 0
    return param.offset + 1 + sum((extent - 1) * step for extent, step in zip(param.shape, param.layout, strict=True))


def _describe(value: Value) -> str:
    shape = "x".join(map(str, (*value.shape, value.dtype)))
    match value.storage:
        case Constant():
            place = "constant"
        case Arena(offset):
            place = f"arena {'?' if offset is None else offset}"
        case Input(index) | Output(index):
            place = f"{type(value.storage).__name__.lower()} {index}"
    return f"{value.name}: {shape} at {place}"


def _print_steps(steps: list[Step], indent: str) -> Iterator[str]:
    for step in steps:
        match step:
            case Launch(kernel, arguments):
                yield f"{indent}launch @{kernel.name}({', '.join(a.name for a in arguments)})"
            case Copy(source, destination):
                yield f"{indent}copy {source.name} to {destination.name}"
            case HostCall(name, _, arguments, results):
                sources, targets = (", ".join(v.name for v in values) for values in (arguments, results))
                yield f"{indent}call @{name}({sources}) to ({targets})"
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


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CompileError(message)
