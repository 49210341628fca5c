"""From an optimized graph to a program: blocks are divided into kernels (`fusion`), kernels are built (`kernels`) and
launched in order, control flow becomes steps, and the buffer plan (`buffers`) gives every value its place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from trivium.compiler.buffers import assign_buffers
from trivium.compiler.fusion import Group, fuse
from trivium.compiler.kernel import DType, KernelBuilder, numpy_dtype
from trivium.compiler.kernels import build, text_of
from trivium.compiler.lowering import STEP, updated_in_place
from trivium.compiler.lowering.scalars import dtype_of, is_pair, parts
from trivium.compiler.program import Arena, Constant, Copy, Input, Launch, Output, Program, Step
from trivium.compiler.program import Value as Place
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Value
from trivium.ir.errors import CompileError
from trivium.ir.func import Module
from trivium.ir.location import Location
from trivium.ir.memory import memory_limit, size_text
from trivium.ir.types import TensorType


def lower(module: Module, target: Target) -> Program:
    """The program of a module's `main`, in which everything but control flow is inlined and every type is static."""
    main = module.main
    program = Program(main.sym_name, graph=module)
    lowering = Lowering(target)
    for index, argument in enumerate(main.arguments):
        place = lowering.make(argument, Input(index), f"arg{index}")
        lowering.bind(argument, place)
        program.inputs.append(place)
    program.steps = lowering.block(main.body.block)
    for index, value in enumerate(main.returned):
        result = lowering.make(value, Output(index), f"result{index}")
        program.outputs.append(result)
        program.steps.append(Copy(lowering.place(value), result))
    assign_buffers(program, target.alignment)
    _require_memory(program)
    program.verify()
    return program


def _require_memory(program: Program) -> None:
    """Refuses a program whose temporaries and results are more than this process may have."""
    results = sum(value.nbytes for value in program.outputs)
    if program.arena_size + results > memory_limit():
        raise CompileError(
            f"{program.name} needs {size_text(program.arena_size)} for temporaries and {size_text(results)} for "
            f"results, expected at most {size_text(memory_limit())}, the memory there is"
        )


LARGEST_STORED_SPLAT = 1 << 20
"""The bytes of a constant of equal elements up to which they are stored one by one; larger ones are filled at run
time."""


class Lowering:
    """Turns blocks into steps. Knows the place of every value that has a buffer."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._places: dict[Value, Place] = {}
        self._views: dict[Value, Value] = {}
        self._constants: dict[int, Place] = {}
        self._names: dict[str, int] = {}
        self.steps: list[Step] = []
        self._outermost: list[Step] | None = None

    # Places

    def make(self, value: Value, storage: object, name: str) -> Place:
        """A new place for a value of that type."""
        shape = static_shape(value)
        kind = value.type.element_type
        shape = (*shape, *parts(kind))
        place = Place(name, dtype_of(kind), shape, storage, is_pair(kind))  # type: ignore[arg-type]
        if place.nbytes > memory_limit():
            raise CompileError(
                f"{name} has type {value.type}, {size_text(place.nbytes)}; expected at most "
                f"{size_text(memory_limit())}, the memory there is",
                **_origin(value),
            )
        return place

    def temporary(self, value: Value, name: str = "") -> Place:
        """A new place in the arena for a value of that type."""
        return self.make(value, Arena(), self.name(name or (f"{value.name_hint}_" if value.name_hint else "t")))

    def bind(self, value: Value, place: Place) -> None:
        """States where a value is."""
        self._places[value] = place

    def place(self, value: Value) -> Place:
        """Where a value is."""
        while value in self._views:
            value = self._views[value]
        if value not in self._places:
            op = value.defining_op
            if not isinstance(op, ops.Constant):
                what = text_of(op) if op is not None else "an argument"
                raise CompileError(f"a value has no buffer, the result of {what}")
            self._places[value] = self._constant(op)
        return self._places[value]

    def _constant(self, op: ops.Constant) -> Place:
        """The constant's own memory, where it is dense; the same for constants that are one array. A large one of equal
        elements is a temporary that is filled."""
        elements = op.value
        if id(elements) not in self._constants:
            place = self.make(op.result, Arena(), self.name("constant"))
            if elements.is_splat and place.nbytes > LARGEST_STORED_SPLAT:
                self._fill(place, elements.array[(0,) * elements.array.ndim], op.location)
            else:
                place.storage = _stored(elements.array, place.shape, place.dtype)
            self._constants[id(elements)] = place
        return self._constants[id(elements)]

    def _fill(self, place: Place, element: np.ndarray, origin: Location) -> None:
        """Launches what fills a temporary with one element, outside of all loops and branches: all of the program may
        use it from there on."""
        repeated = place.shape[:-1] if place.is_complex else place.shape
        parts = place.shape[len(repeated) :]
        source = Place(self.name("element"), place.dtype, parts, _stored(np.asarray(element), parts, place.dtype))
        b = KernelBuilder(self.name("fill_"))
        x, y = b.input("x", place.dtype, parts), b.output("y", place.dtype, (math.prod(repeated), *parts))
        with b.parallel(*y.shape) as indices:
            b.store(y, b.load(x, *indices[1:]), *indices)
        assert self._outermost is not None, "a constant is filled before the program begins"
        self._outermost.append(Launch(b.build(), (source, place), (origin,)))

    def name(self, base: str) -> str:
        """`base` with a number that it had not before."""
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        return f"{base}{count}"

    # Steps

    def block(self, block: Block) -> list[Step]:
        """The steps of a block; afterwards every value that it returns has a place."""
        outer, self.steps = self.steps, []
        if self._outermost is None:
            self._outermost = self.steps
        plan = fuse(block, self._target)
        self._views |= plan.views
        for item in plan.items:
            if isinstance(item, Group):
                self._launch(item)
            else:
                self._step(item)
        steps, self.steps = self.steps, outer
        return steps

    def copy(self, source: Place, destination: Place) -> None:
        if source is not destination and destination.nbytes:
            self.steps.append(Copy(source, destination))

    def _launch(self, group: Group) -> None:
        for value in group.outputs:
            self.bind(value, self.temporary(value))
        if all(static_size(value) == 0 for value in group.outputs):
            return
        for operand, result in updated_in_place(group.whole) if group.whole is not None else ():
            # The buffer plan drops the copies that are not needed.
            self.copy(self.place(operand), self.place(result))
        kernel, arguments = build(group, self.name(kernel_name(group)), self._target)
        self.steps.append(Launch(kernel, tuple(map(self.place, arguments)), group.origins()))

    def _step(self, op: Operation) -> None:
        rule = STEP.get(type(op))
        if rule is None:
            raise CompileError(f"{op.NAME} is not compiled", inside=text_of(op), source=op.location.describe() or None)
        rule(self, op)


def kernel_name(group: Group) -> str:
    """A readable name: the first few kinds of ops that do something."""
    if group.whole is not None:
        return f"{_short(group.whole)}_"
    kinds = list(dict.fromkeys(map(_short, _telling(group.ordered()))))
    if group.contraction is not None:
        kinds = [_short(group.contraction), *(kind for kind in kinds if kind != _short(group.contraction))]
    if not kinds:
        kinds = [_short(next(iter(group.members)))]
    return "_".join(["fused", *kinds[:4]] if len(kinds) > 1 else kinds) + "_"


def _telling(members: Sequence[Operation]) -> Iterable[Operation]:
    silent = (ops.Constant, ops.Iota, ops.Reshape, ops.BroadcastInDim, ops.Convert, ops.Transpose, ops.Slice)
    return (op for op in members if not isinstance(op, silent))


def _short(op: Operation) -> str:
    return op.NAME.rpartition(".")[2].removesuffix("_general")


def static_shape(value: Value) -> tuple[int, ...]:
    """The shape of a value; a CompileError that names it where it is not static."""
    kind = value.type
    if isinstance(kind, TensorType) and kind.is_static:
        return kind.static_shape
    name = f"%{value.name_hint}" if value.name_hint else "a value"
    raise CompileError(f"{name} has type {kind}, expected a tensor of static shape", **_origin(value))


def _origin(value: Value) -> dict[str, str | None]:
    """Where a value comes from, for errors."""
    op = value.defining_op
    if op is None:
        return {}
    return {"inside": text_of(op), "source": op.location.describe() or None}


def _stored(array: np.ndarray, shape: tuple[int, ...], dtype: DType) -> Constant:
    array = np.ascontiguousarray(array)
    return Constant((array.view(numpy_dtype(dtype)) if array.dtype.kind == "c" else array).reshape(shape))


def static_size(value: Value) -> int:
    return math.prod(static_shape(value))
