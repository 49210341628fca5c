"""Builds kernels: instructions are appended to the current block, and loops, ifs and whiles are `with` blocks.

    b = KernelBuilder("row_sums")
    x = b.input("x", "f32", (8, 100))
    y = b.output("y", "f32", (8,))
    with b.parallel(8) as (i,):
        with b.reduction(100, inits=[b.constant(0.0, "f32")], combiner="add") as loop:
            loop.yield_(b.load(x, i, loop.index))
        b.store(y, loop.result, i)
    kernel = b.build()

Python numbers among operands become constants of the other operands' type. Loads and stores take index expressions
(`index`), values or numbers as indices: `b.load(x, expression([(i, 2)], 1))` reads `x[i*2 + 1]`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from trivium.compiler.kernel import index as expressions
from trivium.compiler.kernel.clone import clone_into
from trivium.compiler.kernel.dtypes import BOOL, INDEX, INTEGERS, DType
from trivium.compiler.kernel.index import Index, Indices
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.ops import result_type
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
    If,
    Instruction,
    Kind,
    Load,
    Loop,
    Position,
    Register,
    Scratch,
    SortKeys,
    Store,
    Target,
    Update,
    While,
)
from trivium.ir.errors import CompileError

Operand = Register | Index | bool | int | float


class KernelBuilder:
    """Holds the kernel under construction and the stack of open blocks; instructions are appended to the innermost."""

    def __init__(self, name: str):
        self.name = name
        self.params: list[Buffer] = []
        self.body = Block()
        self.origins: tuple[Hashable, ...] = ()
        """Those of the instructions that are added."""
        self._stack = [self.body]
        self._constants: dict[Register, bool | int | float] = {}
        self._positions: dict[expressions.Symbol, Index] = {}
        """The index expressions that values were computed from."""

    def build(self) -> Kernel:
        """Returns the finished, verified kernel."""
        kernel = Kernel(self.name, self.params, self.body)
        kernel.verify()
        return kernel

    # Buffers

    def input(self, name: str, dtype: str, shape: Sequence[int], **view: Any) -> Buffer:
        """Adds a parameter that is only read."""
        return self._param(Buffer(name, DType(dtype), tuple(shape), "in", **view))

    def output(self, name: str, dtype: str, shape: Sequence[int], **view: Any) -> Buffer:
        """Adds a parameter that is written: every element of it, and none is read before it is written."""
        return self._param(Buffer(name, DType(dtype), tuple(shape), "out", **view))

    def inout(self, name: str, dtype: str, shape: Sequence[int], **view: Any) -> Buffer:
        """Adds a parameter that is updated in place."""
        return self._param(Buffer(name, DType(dtype), tuple(shape), "inout", **view))

    def scratch(self, dtype: str, shape: Sequence[int], name: str = "scratch") -> Buffer:
        """Adds a temporary of the enclosing block, with undefined contents."""
        buffer = Buffer(name, DType(dtype), tuple(shape), "scratch")
        self._append(Scratch(buffer))
        return buffer

    def load(self, buffer: Buffer, *indices: Operand) -> Register:
        result = Register(buffer.dtype)
        self._append(Load(buffer, self._indices(indices), result))
        return result

    def store(self, buffer: Buffer, value: Operand, *indices: Operand) -> None:
        self._append(Store(buffer, self._value(value, buffer.dtype), self._indices(indices)))

    def update(
        self, targets: Sequence[tuple[Buffer, Sequence[Operand]]], values: Sequence[Register], combiner: str | Block
    ) -> None:
        """Combines values into elements, each specified by a buffer and indices (see `Update`)."""
        places = tuple(Target(buffer, self._indices(indices)) for buffer, indices in targets)
        self._append(Update(places, tuple(values), combiner))

    def sort_keys(self, buffer: Buffer, count: int, *indices: Operand) -> None:
        """Sorts neighbours, from these indices on (see `SortKeys`)."""
        self._append(SortKeys(buffer, self._indices(indices), count))

    # Scalars

    def constant(self, literal: bool | float, dtype: str) -> Register:
        result = Register(DType(dtype))
        kind = bool if dtype == BOOL else int if dtype in INTEGERS else float
        self._append(Constant(kind(literal), result))
        self._constants[result] = literal
        if dtype == INDEX:
            self._positions[result] = expressions.constant(int(literal))
        return result

    def index(self, literal: int) -> Register:
        """Adds an i64 constant."""
        return self.constant(literal, INDEX)

    def apply(self, op: str, *operands: Operand, **attributes: object) -> Register:
        """Applies a scalar operation, by its StableHLO name: `b.apply("tanh", x)`, `b.apply("convert", x,
        dtype="bf16")`."""
        operands = tuple(self.position(o) if isinstance(o, Index) else o for o in operands)
        typed = next((o for o in operands[::-1] if isinstance(o, Register)), None)
        if typed is None:
            raise CompileError(f"{op}: has only Python numbers as operands, expected at least one value")
        if typed.dtype == INDEX and (folded := self._fold_index(op, operands)) is not None:
            return folded
        values = tuple(self._value(operand, typed.dtype) for operand in operands)
        result = Register(result_type(op, attributes, tuple(v.dtype for v in values)))
        self._append(Apply(op, values, attributes, result))
        return result

    def add(self, lhs: Operand, rhs: Operand) -> Register:
        return self.apply("add", lhs, rhs)

    def subtract(self, lhs: Operand, rhs: Operand) -> Register:
        return self.apply("subtract", lhs, rhs)

    def multiply(self, lhs: Operand, rhs: Operand) -> Register:
        return self.apply("multiply", lhs, rhs)

    def divide(self, lhs: Operand, rhs: Operand) -> Register:
        return self.apply("divide", lhs, rhs)

    def remainder(self, lhs: Operand, rhs: Operand) -> Register:
        return self.apply("remainder", lhs, rhs)

    def clamp(self, low: Operand, operand: Register, high: Operand) -> Register:
        return self.apply("clamp", self._value(low, operand.dtype), operand, self._value(high, operand.dtype))

    def compare(self, direction: str, lhs: Operand, rhs: Operand, total_order: bool = False) -> Register:
        attributes = {"direction": direction, "total_order": True} if total_order else {"direction": direction}
        return self.apply("compare", lhs, rhs, **attributes)

    def select(self, pred: Register, on_true: Operand, on_false: Operand) -> Register:
        typed = next((o for o in (on_true, on_false) if isinstance(o, Register)), None)
        if typed is None:
            raise CompileError("select: both branches are Python numbers, expected at least one value")
        values = (pred, self._value(on_true, typed.dtype), self._value(on_false, typed.dtype))
        return self.apply("select", *values)

    def convert(self, operand: Register, dtype: str) -> Register:
        return operand if operand.dtype == dtype else self.apply("convert", operand, dtype=dtype)

    def position(self, index: Index) -> Register:
        """Returns the value of an index expression as a number."""
        index = self._expression(index)
        sole = index.sole
        if isinstance(sole, Register):
            return sole
        if index.is_constant:
            return self.index(index.offset)
        result = Register(INDEX)
        self._append(Position(index, result))
        self._positions[result] = index
        return result

    # Control flow

    @contextmanager
    def parallel(self, *extents: int | Register) -> Iterator[list[Register]]:
        """Opens a loop nest whose iterations are independent; yields the indices."""
        with self._loop("parallel", extents, (), None) as frame:
            yield frame.indices

    def sequential(
        self, *extents: int | Register, inits: Sequence[Register] = (), combiner: str | None = None
    ) -> LoopFrame:
        """Opens a loop that runs in order; `carried` values start as `inits` and become the values that the body
        yields: with a `combiner`, a running fold (see `Loop`)."""
        return self._loop("sequential", extents, tuple(inits), combiner)

    def reduction(self, *extents: int | Register, inits: Sequence[Register], combiner: str | Block) -> LoopFrame:
        """Opens a loop whose body yields terms, which are folded onto `inits` with `combiner` (see `Loop`)."""
        return self._loop("reduction", extents, tuple(inits), combiner)

    def while_(self, *inits: Register) -> WhileFrame:
        """Opens a while loop: compute the condition, call `frame.condition(pred)`, compute the body, call
        `frame.yield_(...)`."""
        return WhileFrame(self, inits)

    def if_(self, condition: Register) -> IfFrame:
        """Opens an if: `with b.if_(c) as branch: ...; branch.yield_(x)`, then `with branch.otherwise(): ...;
        branch.yield_(y)`."""
        return IfFrame(self, condition)

    @contextmanager
    def block(self, *dtypes: str) -> Iterator[Block]:
        """Opens a free-standing block with parameters of these types, for a combiner or an epilogue: set its `yields`
        before leaving it."""
        block = Block([Register(DType(dtype)) for dtype in dtypes])
        with self._inside(block):
            yield block

    def inline(self, block: Block, *arguments: Register) -> list[Register]:
        """Copies `block` here with its parameters bound to `arguments`; returns the copies of the values it yields."""
        return clone_into(block, arguments, self._stack[-1], forms=self._positions)

    @contextmanager
    def computing(self, *origins: Hashable) -> Iterator[None]:
        """Adds instructions of other origins."""
        outer, self.origins = self.origins, origins
        try:
            yield
        finally:
            self.origins = outer

    # Internals

    def _loop(
        self, kind: Kind, extents: tuple[int | Register, ...], inits: tuple[Register, ...], combiner: str | Block | None
    ) -> LoopFrame:
        indices = [Register(INDEX) for _ in extents]
        carried = [Register(init.dtype) for init in inits] if kind == "sequential" else []
        results = tuple(Register(init.dtype) for init in inits)
        return LoopFrame(self, Loop(kind, extents, Block(indices + carried), inits, combiner, results))

    def _param(self, buffer: Buffer) -> Buffer:
        self.params.append(buffer)
        return buffer

    def _append(self, instruction: Instruction) -> None:
        instruction.origins = self.origins
        self._stack[-1].instructions.append(instruction)

    @contextmanager
    def _inside(self, block: Block) -> Iterator[None]:
        self._stack.append(block)
        try:
            yield
        finally:
            self._stack.pop()

    def _value(self, operand: Operand, dtype: str) -> Register:
        if isinstance(operand, Index):
            return self.position(operand)
        return operand if isinstance(operand, Register) else self.constant(operand, dtype)

    def _indices(self, indices: Sequence[Operand]) -> Indices:
        """Returns operands as index expressions."""
        return tuple(self._expression(index) for index in indices)

    def _expression(self, operand: Operand) -> Index:
        """Returns an operand as an expression of values that are not themselves expressions."""
        if isinstance(operand, Register):
            return self._positions.get(operand) or expressions.variable(operand)
        return (
            operand.replace(self._positions.get) if isinstance(operand, Index) else expressions.constant(int(operand))
        )

    def _fold_index(self, op: str, operands: tuple[Operand, ...]) -> Register | None:
        """Folds x + 0, x - 0, x * 1, x * 0, and arithmetic on two constants; returns None if nothing folds."""
        if op not in ("add", "subtract", "multiply"):
            return None
        known = [self._constants.get(o) if isinstance(o, Register) else o for o in operands if not isinstance(o, Index)]
        if None not in known:
            lhs, rhs = (int(number) for number in known if number is not None)
            return self.index({"add": lhs + rhs, "subtract": lhs - rhs, "multiply": lhs * rhs}[op])
        if known[0] is not None and op != "subtract":
            operands, known = operands[::-1], known[::-1]
        kept = operands[0]
        if known[1] == 0 and op == "multiply":
            return self.index(0)
        neutral = 1 if op == "multiply" else 0
        return kept if isinstance(kept, Register) and known[1] == neutral else None


class LoopFrame:
    """An open loop: `index`/`indices`, `carried` inside; `yield_` ends the body; `result`/`results` after it, and
    `loop`, the instruction."""

    def __init__(self, builder: KernelBuilder, loop: Loop):
        self._builder = builder
        self.loop = loop
        self._inside = builder._inside(loop.body)
        self.indices = loop.indices
        self.carried = loop.body.parameters[len(loop.extents) :]
        self.results = list(loop.carried)

    @property
    def index(self) -> Register:
        (index,) = self.indices
        return index

    @property
    def result(self) -> Register:
        (result,) = self.results
        return result

    def yield_(self, *values: Register) -> None:
        """Sets the values of this iteration: terms of a reduction, or the next carried values of a sequential loop."""
        self.loop.body.yields = list(values)

    def __enter__(self) -> Self:
        self._builder._append(self.loop)
        self._inside.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._inside.__exit__(kind, error, traceback)


class WhileFrame:
    """An open while: `carried` inside, `condition(pred)` between condition and body, `yield_` at the end; `results`
    after it."""

    def __init__(self, builder: KernelBuilder, inits: Sequence[Register]):
        self._builder = builder
        self.carried = [Register(init.dtype) for init in inits]
        self.results = [Register(init.dtype) for init in inits]
        self._while = While(tuple(inits), Block(list(self.carried)), Block(), tuple(self.results))

    def condition(self, pred: Register) -> None:
        """Ends the condition and begins the body."""
        self._while.condition.yields = [pred]
        self._builder._stack[-1] = self._while.body

    def yield_(self, *values: Register) -> None:
        self._while.body.yields = list(values)

    def __enter__(self) -> Self:
        self._builder._append(self._while)
        self._builder._stack.append(self._while.condition)
        return self

    def __exit__(self, *error: object) -> None:
        self._builder._stack.pop()


class IfFrame:
    """An open if: `yield_` ends a branch; `results` after both."""

    def __init__(self, builder: KernelBuilder, condition: Register):
        self._builder = builder
        self._if = If(condition, Block(), Block())
        self.results: list[Register] = []

    def yield_(self, *values: Register) -> None:
        self._builder._stack[-1].yields = list(values)
        self.results = self.results or [Register(value.dtype) for value in values]
        self._if.outcomes = tuple(self.results)

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Opens the branch that is taken if the condition is false."""
        with self._builder._inside(self._if.otherwise):
            yield

    def __enter__(self) -> Self:
        self._builder._append(self._if)
        self._builder._stack.append(self._if.then)
        return self

    def __exit__(self, *error: object) -> None:
        self._builder._stack.pop()
