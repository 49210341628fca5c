"""The builder that step rules use: the program under construction, with the array of every value that has a buffer, and
the steps of the open block."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from trivium.compiler.kernel import DType, KernelBuilder, numpy_dtype
from trivium.compiler.lowering.launches import Argument, Temporary
from trivium.compiler.lowering.origins import origin_of, text_of
from trivium.compiler.lowering.scalars import dtype_of, is_pair, parts
from trivium.compiler.program import Arena, Array, Constant, Copy, Launch, Step
from trivium.ir import ops
from trivium.ir.core import Block, Operation, Value
from trivium.ir.errors import CompileError
from trivium.ir.memory import size_text
from trivium.ir.types import TensorType

LARGEST_STORED_SPLAT = 1 << 20
"""The maximum number of bytes of a constant with equal elements that is stored in full; larger ones are filled at run
time."""


class ProgramBuilder(ABC):
    """A program under construction: its steps, and the array of every value that has a buffer. `available`: the bytes
    of memory that there are."""

    def __init__(self, available: int) -> None:
        self._available = available
        self._arrays: dict[Value, Array] = {}
        self._views: dict[Value, Value] = {}
        self._constants: dict[int, Array] = {}
        self._names: dict[str, int] = {}
        self.steps: list[Step] = []
        self.outermost: list[Step] | None = None

    # Places

    def make(self, value: Argument, storage: object, name: str) -> Array:
        """Returns a new array for a value of that type."""
        shape = static_shape(value)
        kind = value.type.element_type
        shape = (*shape, *parts(kind))
        array = Array(name, dtype_of(kind), shape, storage, is_pair(kind))  # type: ignore[arg-type]
        if array.nbytes > self._available:
            raise CompileError(
                f"{name} has type {value.type}, {size_text(array.nbytes)}; expected at most "
                f"{size_text(self._available)}, the available memory",
                **origin_of(value.op if isinstance(value, Temporary) else value),
            )
        return array

    def temporary(self, value: Argument, name: str = "") -> Array:
        """Returns a new array in the arena for a value of that type."""
        hint = value.name_hint if isinstance(value, Value) else ""
        return self.make(value, Arena(), self.name(name or (f"{hint}_" if hint else "t")))

    def bind(self, value: Value, array: Array) -> None:
        """Records the array of a value."""
        self._arrays[value] = array

    def array(self, value: Value) -> Array:
        """Returns the array of a value."""
        while value in self._views:
            value = self._views[value]
        if value not in self._arrays:
            op = value.defining_op
            if not isinstance(op, ops.Constant):
                what = text_of(op) if op is not None else "an argument"
                raise CompileError(f"a value has no buffer, the result of {what}")
            self._arrays[value] = self._constant(op)
        return self._arrays[value]

    def _constant(self, op: ops.Constant) -> Array:
        """Returns the array of a constant: its own memory if it is dense. Constants of one NumPy array share one
        `Array`. A large constant with equal elements is a temporary that is filled."""
        elements = op.value
        if id(elements) not in self._constants:
            array = self.make(op.result, Arena(), self.name("constant"))
            if elements.is_splat and array.nbytes > LARGEST_STORED_SPLAT:
                self._fill(array, elements.array[(0,) * elements.array.ndim], op)
            else:
                array.storage = _stored(elements.array, array.shape, array.dtype)
            self._constants[id(elements)] = array
        return self._constants[id(elements)]

    def _fill(self, array: Array, element: np.ndarray, op: Operation) -> None:
        """Launches a kernel that fills a temporary with one element, outside of all loops and branches: the rest of the
        program can use it from there on."""
        repeated = array.shape[:-1] if array.is_complex else array.shape
        parts = array.shape[len(repeated) :]
        source = Array(self.name("element"), array.dtype, parts, _stored(np.asarray(element), parts, array.dtype))
        b = KernelBuilder(self.name("fill_"))
        x, y = b.input("x", array.dtype, parts), b.output("y", array.dtype, (math.prod(repeated), *parts))
        with b.parallel(*y.shape) as indices:
            b.store(y, b.load(x, *indices[1:]), *indices)
        assert self.outermost is not None, "a constant is filled before the program begins"
        self.outermost.append(Launch(b.build(), (source, array), (op,)))

    def name(self, base: str) -> str:
        """Returns `base` with a number that makes it unique."""
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        return f"{base}{count}"

    # Steps

    @abstractmethod
    def block(self, block: Block) -> list[Step]:
        """Returns the steps of a block; afterwards every value that it returns has an array."""

    def copy(self, source: Array, destination: Array) -> None:
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
