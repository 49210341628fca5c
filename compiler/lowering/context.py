"""The context in which lowering rules emit code: the kernel under construction, and the scalars known so far. A rule
requests the element of a value at symbolic indices; the context finds it among those known in the open loops, or lets
the rule of the defining op compute it, or loads it."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from trivium.compiler.kernel import Block, Buffer, KernelBuilder, Register
from trivium.compiler.kernel.builder import LoopFrame
from trivium.compiler.kernel.dtypes import bit_width, numpy_dtype
from trivium.compiler.lowering.index import Index, Indices, RunTimeIndex, Variable, variable
from trivium.compiler.lowering.ranges import Part, part_where, simplified
from trivium.compiler.lowering.rules import ELEMENT, INDEXING, SCALAR
from trivium.compiler.lowering.scalars import Scalar, dtype_of, is_pair, literal, parts
from trivium.ir import ops
from trivium.ir.core import Block as Body
from trivium.ir.core import Operation, Region, Value
from trivium.ir.errors import CompileError


class LoweringContext:
    """A kernel under construction. `members` are the ops computed inside it; all other values are loaded. `written`
    contains the values that earlier launches have written, in part or as a whole."""

    def __init__(self, name: str, members: Iterable[Operation] = (), written: Container[Any] = ()):
        self.b = KernelBuilder(name)
        self.arguments: list[Any] = []
        """The value that each parameter of the kernel is bound to."""
        self.reduced: dict[Operation, tuple[Variable, ...]] = {}
        """The loop variables that reductions must run over, if the form of the kernel determines them."""
        self.written_out = False
        """Whether folds are emitted term by term: elements that are in registers have no run-time index."""
        self._members = set(members)
        self._earlier = written
        self._buffers: dict[tuple[Any, tuple[int, ...], str], Buffer] = {}
        self._redirected: dict[tuple[Value, Indices], tuple[Buffer, Indices]] = {}
        self._held: dict[Value, Buffer] = {}
        self._written: dict[Any, tuple[Buffer, Indices]] = {}
        self._scopes: list[dict[Any, Any]] = [{}]

    # Elements

    def element(self, value: Value, indices: Indices = ()) -> Scalar:
        """Returns the element of `value` at `indices`."""
        key = value, indices
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        if key in self._redirected:
            buffer, at = self._redirected[key]
            scalar = self.read(buffer, at)
            self.know(value, indices, scalar)
            return scalar
        op = value.defining_op
        if value in self._held:
            scalar = self.read(self._held[value], indices)
        elif isinstance(op, ops.Constant) and op.value.is_splat:
            scalar = self.literal(op.value.array.flat[0], value.type.element_type)
        elif op is not None and op in self._members:
            return self._compute(op, value, indices)
        else:
            scalar = self.load(value, indices)
        self.know(value, indices, scalar)
        return scalar

    def redirect(self, value: Value, indices: Indices, buffer: Buffer, at: Indices) -> None:
        """Records that the elements of `value` at `indices` are in a buffer, at `at`."""
        self._redirected[value, indices] = buffer, at

    def hold(self, value: Value, buffer: Buffer) -> None:
        """Records that a buffer holds `value`, from now on and until it is overwritten."""
        self._held[value] = buffer

    def held(self, value: Value) -> Buffer:
        """Returns the buffer that holds `value`."""
        return self._held[value]

    def real(self, value: Value, indices: Indices = ()) -> Register:
        """Returns the element of a value whose elements are not complex."""
        scalar = self.element(value, indices)
        assert not isinstance(scalar, tuple), f"{value.type} has complex elements"
        return scalar

    def know(self, value: Value, indices: Indices, scalar: Scalar) -> None:
        """Records an element, for the rest of the open block."""
        self._scopes[-1][value, indices] = scalar

    def _compute(self, op: Operation, value: Value, indices: Indices) -> Scalar:
        with self.b.computing(op):
            scalars = self._computed(op, indices)
        scalars = scalars if isinstance(scalars, list) else [scalars]
        for result, scalar in zip(op.results, scalars, strict=True):
            self.know(result, indices, scalar)
        return scalars[value.index]  # type: ignore[attr-defined]

    def _computed(self, op: Operation, indices: Indices) -> Any:
        kind = type(op)
        if kind in INDEXING:
            return self.element(op.operands[0], INDEXING[kind](op, indices))
        if kind in ELEMENT:
            return ELEMENT[kind](self, op, indices)
        if kind in SCALAR and not indices:
            return SCALAR[kind](self, op)
        raise CompileError(f"{op.NAME} cannot be computed inside a kernel", source=op.location.describe() or None)

    def literal(self, number: Any, element_type: Any) -> Scalar:
        """Returns a constant scalar of an element type."""
        dtype = dtype_of(element_type)
        if is_pair(element_type):
            return self._constant(np.real(number), dtype), self._constant(np.imag(number), dtype)
        return self._constant(number, dtype)

    def _constant(self, number: Any, dtype: str) -> Register:
        """Adds a constant. A NaN whose bits a Python number would lose is written as an integer."""
        if number != number:
            nan, usual = (np.asarray(value, numpy_dtype(dtype)) for value in (number, np.nan))
            if nan.tobytes() != usual.tobytes():
                unsigned = f"ui{8 * nan.itemsize}"
                bits = int.from_bytes(nan.tobytes(), sys.byteorder)
                return self.b.apply("bitcast_convert", self.b.constant(bits, unsigned), dtype=dtype)
        return self.b.constant(literal(number), dtype)

    @contextmanager
    def opened(self, region: Region) -> Iterator[Body]:
        """Opens a scope in which the values of a region can be computed."""
        self._members.update(region.block)
        with self.scope():
            yield region.block

    @contextmanager
    def entered(self, region: Region, arguments: Sequence[Scalar]) -> Iterator[Body]:
        """Opens a scope in which the values of a region that takes scalars can be computed."""
        with self.opened(region) as block:
            for argument, scalar in zip(block.arguments, arguments, strict=True):
                self.know(argument, (), scalar)
            yield block

    def region(self, region: Region, arguments: Sequence[Scalar]) -> list[Scalar]:
        """Computes a region that takes and returns scalars, and returns its results."""
        with self.entered(region, arguments) as block:
            for op in block:
                # Scalars are computed here, in order; elements of tensors are computed where they are needed.
                if op is not block.last and op.results and not getattr(op.results[0].type, "rank", 0):
                    self.element(op.results[0])
            return [self.element(value) for value in block.terminator.operands]

    # Memory

    def load(self, value: Any, indices: Indices) -> Scalar:
        """Reads an element of a value that has a buffer."""
        return self.read(*self._place(value, indices, "in"))

    def store(self, value: Any, indices: Indices, scalar: Scalar, mode: str = "out") -> None:
        """Writes an element of a result of the kernel, or of a temporary."""
        self._written[value] = self._place(value, indices, mode)
        op = value.defining_op if isinstance(value, Value) else None
        with self.b.computing(*([op] if op is not None else self.b.origins)):
            self.write(*self._written[value], scalar)

    def is_written(self, value: Value) -> bool:
        """Whether a result of the kernel has been stored."""
        return value in self._written

    def written_place(self, value: Value) -> tuple[Buffer, Indices]:
        """Returns where a result of the kernel was stored last."""
        return self._written[value]

    def read(self, buffer: Buffer, indices: Indices) -> Scalar:
        """Reads an element of a buffer; a pair if the buffer has one dimension more than there are indices."""
        at = [self._expression(index) for index in indices]
        if len(buffer.shape) > len(indices):
            return self.b.load(buffer, *at, 0), self.b.load(buffer, *at, 1)
        return self.b.load(buffer, *at)

    def write(self, buffer: Buffer, indices: Indices, scalar: Scalar) -> None:
        at = [self._expression(index) for index in indices]
        if isinstance(scalar, tuple):
            for part, register in enumerate(scalar):
                self.b.store(buffer, register, *at, part)
        else:
            self.b.store(buffer, scalar, *at)

    def update(
        self, targets: Sequence[tuple[Buffer, Indices]], scalars: Sequence[Scalar], combiner: str | Block
    ) -> None:
        """Combines scalars into elements of buffers."""
        elements: list[tuple[Buffer, list[Any]]] = []
        for (buffer, indices), scalar in zip(targets, scalars, strict=True):
            at: list[Any] = [self._expression(index) for index in indices]
            elements += [(buffer, [*at, part]) for part in range(2)] if isinstance(scalar, tuple) else [(buffer, at)]
        parts = [part for scalar in scalars for part in (scalar if isinstance(scalar, tuple) else (scalar,))]
        self.b.update(elements, parts, combiner)

    def sort_keys(self, memory: Any, indices: Indices, count: int) -> None:
        """Sorts neighbours in a buffer, or in a temporary."""
        buffer, at = (memory, indices) if isinstance(memory, Buffer) else self._place(memory, indices, "inout")
        self.b.sort_keys(buffer, count, *map(self._expression, at))

    def scratch(self, element_type: Any, shape: Sequence[int]) -> Buffer:
        """Adds a temporary of the open block."""
        return self.b.scratch(dtype_of(element_type), (*shape, *parts(element_type)))

    def buffer(self, value: Any, shape: tuple[int, ...], mode: str) -> Buffer:
        """Returns the parameter that is bound to `value` (an op's result or a temporary), viewed as an array of
        `shape`."""
        if mode == "out" and value in self._earlier:
            mode = "inout"
        key = value, shape, mode
        if key not in self._buffers:
            make = {"in": self.b.input, "out": self.b.output, "inout": self.b.inout}[mode]
            names = {"in": "x", "out": "y", "inout": "z"}
            name = f"{names[mode]}{sum(p.mode == mode for p in self.b.params)}"
            element_type = value.type.element_type
            self._buffers[key] = make(name, dtype_of(element_type), (*shape, *parts(element_type)))
            self.arguments.append(value)
        return self._buffers[key]

    def _place(self, value: Any, indices: Indices, mode: str) -> tuple[Buffer, Indices]:
        shape, indices = _simplest(value.type.shape, tuple(map(self._narrowed, indices)))
        return self.buffer(value, shape, mode), indices

    # Indices

    def position(self, index: Index) -> Register:
        """Computes an index that is used as a number."""
        for scope in reversed(self._scopes):
            if index in scope:
                return scope[index]
        register = self.b.position(self._expression(index))
        self._scopes[-1][index] = register
        return register

    def _expression(self, index: Index) -> Index:
        """Returns an index as an expression of the kernel's values, which is the form that loads and stores need."""
        return index.replace(self._bound)

    def _bound(self, symbol: Any) -> Index | None:
        if isinstance(symbol, RunTimeIndex):
            return variable(symbol.value)
        if not isinstance(symbol, Variable):
            return None
        for scope in reversed(self._scopes):
            if symbol in scope:
                return scope[symbol]
        raise CompileError("a kernel uses a loop variable outside its loop")

    def narrow(self, index: Index, low: int, high: int) -> None:
        """Records that an index is in [low, high], for the rest of the open block."""
        if part := part_where(index, low, high):
            self.bind(part.number, self._expression(variable(part.whole) - part.first) // part.step)
            self._scopes[-1][Part, part.whole] = part

    def _narrowed(self, index: Index) -> Index:
        """Returns an index whose quotients and remainders use what is known about ranges, if it has any."""
        return simplified(index, self._part) if _opacity(index) else index

    def _part(self, symbol: Any) -> Part | None:
        """Returns the part of a variable's range that the open block is for."""
        key = Part, symbol
        return next((scope[key] for scope in reversed(self._scopes) if key in scope), None)

    def known(self, register: Register, extent: int, size: int = 1) -> Index:
        """Returns a run-time start index of any integer type as an index, clamped so that `size` elements fit in
        `extent`."""
        high, largest = extent - size, (1 << bit_width(register.dtype) - register.dtype.startswith("i")) - 1
        # Before they are extended, more narrow numbers fit in a vector.
        place = self.b.clamp(0, register, min(high, largest))
        return variable(RunTimeIndex(self.b.convert(place, "i64"), high))

    # Blocks

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Opens a scope at whose end the elements recorded inside are forgotten: their block ends, or their meaning
        changes."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    def bind(self, atom: Variable, index: Register | Index) -> None:
        """Binds a loop variable to an index, for the rest of the open block. What was known about its range does not
        apply any more."""
        self._scopes[-1][atom] = index if isinstance(index, Index) else variable(index)
        self._scopes[-1][Part, atom] = None

    @contextmanager
    def parallel(self, variables: Sequence[Variable]) -> Iterator[None]:
        """Opens a parallel loop nest over `variables`; no loop if there is nothing to loop over."""
        variables = [v for v in variables if v.extent != 1]
        if not variables:
            with self.scope():
                yield
            return
        with self.b.parallel(*[v.extent for v in variables]) as registers, self.scope():
            for atom, register in zip(variables, registers, strict=True):
                self.bind(atom, register)
            yield

    @contextmanager
    def nest(self, variables: Sequence[Variable]) -> Iterator[None]:
        """Opens the kernel's parallel nest: all loops, stores and scratch of a kernel are inside it. It has one
        iteration if there is nothing to loop over; it is removed if the kernel has only scalars."""
        if any(v.extent != 1 for v in variables):
            with self.parallel(variables):
                yield
            return
        with self.b.parallel(1), self.scope():
            yield
        instructions = self.b.body.instructions
        inside = instructions[-1].blocks[0].instructions
        if not any(instruction.blocks for instruction in inside):
            instructions[-1:] = inside

    @contextmanager
    def inside(self, frame: LoopFrame, variables: Sequence[Variable]) -> Iterator[LoopFrame]:
        """Opens a loop of another kind over `variables`."""
        with frame, self.scope():
            for atom, register in zip(variables, frame.indices, strict=True):
                self.bind(atom, register)
            yield frame

    @contextmanager
    def block(self, frame: Any) -> Iterator[Any]:
        """Opens an if, a while or a free-standing block."""
        with frame as opened, self.scope():
            yield opened

    def choose(self, condition: Register, then: Any, otherwise: Any) -> Scalar:
        """Returns `then()` if the condition holds, else `otherwise()`; only one of them is computed."""
        with self.block(self.b.if_(condition)) as branch:
            first = then()
            branch.yield_(*(first if isinstance(first, tuple) else (first,)))
        with self.block(branch.otherwise()):
            second = otherwise()
            branch.yield_(*(second if isinstance(second, tuple) else (second,)))
        return tuple(branch.results) if isinstance(first, tuple) else branch.results[0]


def _simplest(shape: Sequence[int], indices: Indices) -> tuple[tuple[int, ...], Indices]:
    """Simplifies an access: merges neighbouring dimensions if that makes the indices simpler, and drops dimensions of
    extent 1."""
    extents: list[int] = []
    merged: list[Index] = []
    for extent, index in zip(shape, indices, strict=True):
        if extent == 1:
            continue
        if merged:
            both = merged[-1] * extent + index
            if _opacity(both) < _opacity(merged[-1]) + _opacity(index):
                extents[-1] *= extent
                merged[-1] = both
                continue
        extents.append(extent)
        merged.append(index)
    return tuple(extents), tuple(merged)


def _opacity(index: Index) -> int:
    """Returns the number of quotients and remainders in an index."""
    return sum(not isinstance(atom, Variable | RunTimeIndex) for atom in index.terms)
