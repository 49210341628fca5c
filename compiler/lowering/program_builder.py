"""The builder that step rules use: the program under construction, with the place of every value that has a buffer, and
the steps of the open block."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from trivium.compiler.kernel import DType, KernelBuilder, numpy_dtype
from trivium.compiler.lowering.launches import Argument, Temporary
from trivium.compiler.lowering.origins import origin_of, text_of
from trivium.compiler.lowering.scalars import dtype_of, is_pair, parts
from trivium.compiler.program import Arena, Constant, Copy, Launch, Step
from trivium.compiler.program import Value as Place
from trivium.ir import ops
from trivium.ir.core import Block, Value
from trivium.ir.errors import CompileError
from trivium.ir.location import Location
from trivium.ir.memory import memory_limit, size_text
from trivium.ir.types import TensorType

LARGEST_STORED_SPLAT = 1 << 20
"""The maximum number of bytes of a constant with equal elements that is stored in full; larger ones are filled at run
time."""


class ProgramBuilder(ABC):
    """A program under construction: its steps, and the place of every value that has a buffer."""

    def __init__(self) -> None:
        self._places: dict[Value, Place] = {}
        self._views: dict[Value, Value] = {}
        self._constants: dict[int, Place] = {}
        self._names: dict[str, int] = {}
        self.steps: list[Step] = []
        self.outermost: list[Step] | None = None

    # Places

    def make(self, value: Argument, storage: object, name: str) -> Place:
        """Returns a new place for a value of that type."""
        shape = static_shape(value)
        kind = value.type.element_type
        shape = (*shape, *parts(kind))
        place = Place(name, dtype_of(kind), shape, storage, is_pair(kind))  # type: ignore[arg-type]
        if place.nbytes > memory_limit():
            raise CompileError(
                f"{name} has type {value.type}, {size_text(place.nbytes)}; expected at most "
                f"{size_text(memory_limit())}, the available memory",
                **origin_of(value.op if isinstance(value, Temporary) else value),
            )
        return place

    def temporary(self, value: Argument, name: str = "") -> Place:
        """Returns a new place in the arena for a value of that type."""
        hint = value.name_hint if isinstance(value, Value) else ""
        return self.make(value, Arena(), self.name(name or (f"{hint}_" if hint else "t")))

    def bind(self, value: Value, place: Place) -> None:
        """Records the place of a value."""
        self._places[value] = place

    def place(self, value: Value) -> Place:
        """Returns the place of a value."""
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
        """Returns the place of a constant: its own memory if it is dense. Constants that share an array share their
        place. A large constant with equal elements is a temporary that is filled."""
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
        """Launches a kernel that fills a temporary with one element, outside of all loops and branches: the rest of the
        program can use it from there on."""
        repeated = place.shape[:-1] if place.is_complex else place.shape
        parts = place.shape[len(repeated) :]
        source = Place(self.name("element"), place.dtype, parts, _stored(np.asarray(element), parts, place.dtype))
        b = KernelBuilder(self.name("fill_"))
        x, y = b.input("x", place.dtype, parts), b.output("y", place.dtype, (math.prod(repeated), *parts))
        with b.parallel(*y.shape) as indices:
            b.store(y, b.load(x, *indices[1:]), *indices)
        assert self.outermost is not None, "a constant is filled before the program begins"
        self.outermost.append(Launch(b.build(), (source, place), (origin,)))

    def name(self, base: str) -> str:
        """Returns `base` with a number that makes it unique."""
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        return f"{base}{count}"

    # Steps

    @abstractmethod
    def block(self, block: Block) -> list[Step]:
        """Returns the steps of a block; afterwards every value that it returns has a place."""

    def copy(self, source: Place, destination: Place) -> None:
        if source is not destination and destination.nbytes:
            self.steps.append(Copy(source, destination))


def static_shape(value: Argument) -> tuple[int, ...]:
    """Returns the shape of a value. Raises a CompileError that names the value if its shape is not static."""
    kind = value.type
    if isinstance(kind, TensorType) and kind.is_static:
        return kind.static_shape
    assert isinstance(value, Value), "temporaries have static shapes"
    name = f"%{value.name_hint}" if value.name_hint else "a value"
    raise CompileError(f"{name} has type {kind}, expected a tensor of static shape", **origin_of(value))


def _stored(origin: np.ndarray, shape: tuple[int, ...], dtype: DType) -> Constant:
    array = np.ascontiguousarray(origin)
    elements = (array.view(numpy_dtype(dtype)) if array.dtype.kind == "c" else array).reshape(shape)
    return Constant(elements, None if origin.flags.c_contiguous else origin)


def static_size(value: Value) -> int:
    return math.prod(static_shape(value))
