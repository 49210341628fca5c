"""Where lowering rules write: the kernel under construction, and the scalars known so far. A rule asks for the element
of a value at symbolic indices; the context finds it among those known in the open loops, or lets the rule of the
defining op compute it, or loads it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from trivium.compiler.kernel import Block, Buffer, KernelBuilder
from trivium.compiler.kernel import Value as Register
from trivium.compiler.kernel.builder import LoopFrame
from trivium.compiler.lowering.index import Index, Indices, RunTimeIndex, Variable, variable
from trivium.compiler.lowering.rules import ELEMENT, INDEXING, SCALAR
from trivium.compiler.lowering.scalars import Scalar, dtype_of, is_pair, literal, parts
from trivium.ir import ops
from trivium.ir.core import Operation, Region, Value
from trivium.ir.errors import CompileError


class LoweringContext:
    """A kernel under construction. `members` are the ops computed inside it; all other values are loaded. `written`
    are the values that launches before this one have written in part or whole."""

    def __init__(self, name: str, members: Iterable[Operation] = (), written: Container[Any] = ()):
        self.b = KernelBuilder(name)
        self.arguments: list[Any] = []
        """What each parameter of the kernel is bound to."""
        self.reduced: dict[Operation, tuple[Variable, ...]] = {}
        """The loop variables that reductions shall run over, where the kernel's layout fixes them."""
        self._members = set(members)
        self._earlier = written
        self._buffers: dict[tuple[Any, tuple[int, ...], str], Buffer] = {}
        self._redirected: dict[tuple[Value, Indices], tuple[Buffer, Indices]] = {}
        self._written: dict[Any, tuple[Buffer, Indices]] = {}
        self._scopes: list[dict[Any, Any]] = [{}]

    # Elements

    def element(self, value: Value, indices: Indices = ()) -> Scalar:
        """The element of `value` at `indices`."""
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
        if isinstance(op, ops.Constant) and op.value.is_splat:
            scalar = self.literal(op.value.array.flat[0], value.type.element_type)
        elif op is not None and op in self._members:
            return self._compute(op, value, indices)
        else:
            scalar = self.load(value, indices)
        self.know(value, indices, scalar)
        return scalar

    def redirect(self, value: Value, indices: Indices, buffer: Buffer, at: Indices) -> None:
        """States that the elements of `value` at `indices` stand in a buffer."""
        self._redirected[value, indices] = buffer, at

    def real(self, value: Value, indices: Indices = ()) -> Register:
        """The element of a value whose elements are no complex numbers."""
        scalar = self.element(value, indices)
        assert not isinstance(scalar, tuple), f"{value.type} has complex elements"
        return scalar

    def know(self, value: Value, indices: Indices, scalar: Scalar) -> None:
        """States an element, for the rest of the open block."""
        self._scopes[-1][value, indices] = scalar

    def _compute(self, op: Operation, value: Value, indices: Indices) -> Scalar:
        kind = type(op)
        if kind in INDEXING:
            scalars: Any = self.element(op.operands[0], INDEXING[kind](op, indices))
        elif kind in ELEMENT:
            scalars = ELEMENT[kind](self, op, indices)
        elif kind in SCALAR and not indices:
            scalars = SCALAR[kind](self, op)
        else:
            raise CompileError(f"{op.NAME} cannot be computed inside a kernel", source=op.location.describe() or None)
        scalars = scalars if isinstance(scalars, list) else [scalars]
        for result, scalar in zip(op.results, scalars, strict=True):
            self.know(result, indices, scalar)
        return scalars[value.index]  # type: ignore[attr-defined]

    def literal(self, number: Any, element_type: Any) -> Scalar:
        """A constant scalar of an element type."""
        dtype = dtype_of(element_type)
        if is_pair(element_type):
            return self.b.constant(literal(np.real(number)), dtype), self.b.constant(literal(np.imag(number)), dtype)
        return self.b.constant(literal(number), dtype)

    def region(self, region: Region, arguments: Sequence[Scalar]) -> list[Scalar]:
        """Computes a region that takes and returns scalars; what it returns."""
        block = region.block
        self._members.update(block)
        with self.scope():
            for argument, scalar in zip(block.arguments, arguments, strict=True):
                self.know(argument, (), scalar)
            for op in block:
                # What has no dimensions is computed here, in order; elements of tensors where they are asked for.
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
        self.write(*self._written[value], scalar)

    def is_written(self, value: Value) -> bool:
        """Whether a result of the kernel has been stored."""
        return value in self._written

    def written_place(self, value: Value) -> tuple[Buffer, Indices]:
        """Where a result of the kernel was stored last."""
        return self._written[value]

    def read(self, buffer: Buffer, indices: Indices) -> Scalar:
        """Reads an element of a buffer; a pair where the buffer has one dimension more."""
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

    def scratch(self, element_type: Any, shape: Sequence[int]) -> Buffer:
        """A temporary of the open block."""
        return self.b.scratch(dtype_of(element_type), (*shape, *parts(element_type)))

    def buffer(self, value: Any, shape: tuple[int, ...], mode: str) -> Buffer:
        """The parameter that is bound to `value`, an op's or a temporary, seen as an array of `shape`."""
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
        shape = value.type.shape
        shape, indices = _simplest(shape, indices)
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
        """An index as an expression of the kernel's values, as loads and stores hold it."""
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

    def known(self, register: Register, extent: int, size: int = 1) -> Index:
        """A run-time start index of any integer type as an index, clamped so that `size` elements fit in `extent`."""
        high = extent - size
        if register.dtype.startswith("ui"):
            limit = self.b.constant(min(high, (1 << int(register.dtype[2:])) - 1), register.dtype)
            register = self.b.apply("minimum", register, limit)
        register = self.b.convert(register, "i64")
        return variable(RunTimeIndex(self.b.clamp(0, register, high), high))

    # Blocks

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What becomes known inside is forgotten at the end: its block ends, or its meaning changes."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    def bind(self, atom: Variable, index: Register | Index) -> None:
        """What a loop variable is, for the rest of the open block."""
        self._scopes[-1][atom] = index if isinstance(index, Index) else variable(index)

    @contextmanager
    def parallel(self, variables: Sequence[Variable]) -> Iterator[None]:
        """A parallel loop nest over `variables`; none where there is nothing to loop over."""
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
        """The kernel's parallel nest: all loops, stores and scratch of a kernel are inside of it. It has one iteration
        where there is nothing to loop over; a kernel of scalars needs none."""
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
        """An open loop of another kind, over `variables`."""
        with frame, self.scope():
            for atom, register in zip(variables, frame.indices, strict=True):
                self.bind(atom, register)
            yield frame

    @contextmanager
    def block(self, frame: Any) -> Iterator[Any]:
        """An open if, while or free-standing block."""
        with frame as opened, self.scope():
            yield opened

    def choose(self, condition: Register, then: Any, otherwise: Any) -> Scalar:
        """`then()` where the condition holds, else `otherwise()`; only one is computed."""
        with self.block(self.b.if_(condition)) as branch:
            first = then()
            branch.yield_(*(first if isinstance(first, tuple) else (first,)))
        with self.block(branch.otherwise()):
            second = otherwise()
            branch.yield_(*(second if isinstance(second, tuple) else (second,)))
        return tuple(branch.results) if isinstance(first, tuple) else branch.results[0]


def _simplest(shape: Sequence[int], indices: Indices) -> tuple[tuple[int, ...], Indices]:
    """An access with neighbouring dimensions merged where that makes the indices simpler, and unit ones dropped."""
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
    """How many quotients and remainders an index has."""
    return sum(not isinstance(atom, Variable | RunTimeIndex) for atom in index.terms)
