"""Checks that a kernel is well formed: it is one parallel nest, every value is defined before it is used and within its
block, types agree, accesses have an index for each dimension, and modes are respected. Otherwise a CompileError names
the kernel and the instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trivium.compiler.kernel.dtypes import BOOL, DTYPES, INDEX
from trivium.compiler.kernel.index import Index
from trivium.compiler.kernel.ops import OPERATIONS, result_type
from trivium.compiler.kernel.running import running_fold
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    End,
    If,
    Instruction,
    Load,
    Loop,
    Position,
    Register,
    Scratch,
    SortKeys,
    Store,
    Update,
    While,
    symbols,
    walk,
)
from trivium.ir.errors import CompileError

if TYPE_CHECKING:
    from trivium.compiler.kernel.kernel import Kernel


def verify(kernel: Kernel) -> None:
    """Raises CompileError if `kernel` is malformed."""
    if len(set(kernel.params)) != len(kernel.params):
        raise CompileError(f"kernel {kernel.name}: a buffer appears twice among the parameters")
    try:
        for buffer in kernel.params:
            _check_buffer(buffer)
        _check_nest(kernel.body)
        _Checker(set(kernel.params)).block(kernel.body, frozenset())
    except CompileError as error:
        raise error.add(during=f"verifying kernel {kernel.name}") from None


def _check_nest(body: Block) -> None:
    """Checks that everything a kernel writes is written inside one parallel loop, or that there are no loops. Therefore
    iterations of the loop never wait for each other; work that must wait needs a separate launch."""
    nests = [i for i in body.instructions if isinstance(i, Loop) and i.kind == "parallel"]
    rest = [i for outer in body.instructions if outer not in nests for i in (outer, *_inside(outer))]
    _require(len(nests) <= 1, f"the kernel has {len(nests)} parallel loops in a row, expected one around all")
    if nests or any(isinstance(i, Loop) for i in rest):
        writes = [_describe(i) for i in rest if isinstance(i, Store | Update | SortKeys | Scratch)]
        _require(not writes, f"{', '.join(writes)} outside of the kernel's parallel loop")


def _inside(instruction: Instruction) -> Iterator[Instruction]:
    return (inner for block in instruction.blocks for inner in walk(block))


def _check_buffer(buffer: Buffer) -> None:
    _require(buffer.dtype in DTYPES, f"buffer {buffer.name} has dtype {buffer.dtype}, expected a scalar type")
    _require(
        all(extent >= 0 for extent in buffer.shape), f"buffer {buffer.name} has a negative extent in {buffer.shape}"
    )
    ranks = len(buffer.layout), len(buffer.shape)
    _require(ranks[0] == ranks[1], f"buffer {buffer.name} has {ranks[0]} strides, expected {ranks[1]}")


class _Checker:
    def __init__(self, buffers: set[Buffer]):
        self._buffers = buffers
        self._defined: set[Register] = set()

    def block(
        self, block: Block, outer: frozenset[Register], yields: Sequence[Register] | None = None
    ) -> frozenset[Register]:
        """Checks `block`, where the values `outer` are visible, and that it yields the types of `yields`. Returns the
        values that are visible at its end."""
        visible = set(outer)
        self._define(block.parameters, visible, "a block")
        for instruction in block.instructions:
            self._instruction(instruction, visible)
        _require(visible.issuperset(block.yields), "a block yields a value that is not defined in it")
        if yields is not None:
            has, expected = [v.dtype for v in block.yields], [v.dtype for v in yields]
            _require(has == expected, f"a block yields types {has}, expected {expected}")
        return frozenset(visible)

    def _instruction(self, instruction: Instruction, visible: set[Register]) -> None:
        what = _describe(instruction)
        _require(visible.issuperset(instruction.operands), f"{what} uses a value that is not defined before it")
        match instruction:
            case Apply(op, arguments, attributes, result):
                expected = result_type(op, attributes, tuple(v.dtype for v in arguments))
                _require(result.dtype == expected, f"{what} has result type {result.dtype}, expected {expected}")
            case Position(index, result):
                _check_indices(what, [index])
                _require(result.dtype == INDEX, f"{what} has result type {result.dtype}, expected {INDEX}")
            case Load(buffer, indices, result):
                self._access(what, buffer, indices, result)
            case Store(buffer, value, indices):
                _require(buffer.mode != "in", f"{what} writes an input buffer")
                self._access(what, buffer, indices, value)
            case Update():
                self._update(instruction, visible)
            case SortKeys(buffer, indices, count):
                has, sortable = f"{buffer.dtype}[{count}]", buffer.dtype in ("i32", "i64") and count > 0
                _require(sortable, f"{what} has {has}, expected elements of type i32 or i64")
                _require(buffer.layout[-1:] == (1,), f"{what} has elements that are not neighbours")
                self._updated(what, buffer)
                self._access(what, buffer, indices, Register(buffer.dtype))
            case Scratch(buffer):
                _check_buffer(buffer)
                self._buffers.add(buffer)
            case Loop():
                self._loop(instruction, visible)
            case If(condition, then, otherwise, outcomes):
                _require(condition.dtype == BOOL, f"{what}: the condition has type {condition.dtype}, expected i1")
                self.block(then, frozenset(visible), outcomes)
                self.block(otherwise, frozenset(visible), outcomes)
            case While(inits, condition, body, outcomes):
                _same_types(what, "carried values", condition.parameters, inits)
                _same_types(what, "results", outcomes, inits)
                inner = self.block(condition, frozenset(visible), [Register(BOOL)])
                self.block(body, inner, inits)
        self._define(instruction.results, visible, what)

    def _update(self, update: Update, visible: set[Register]) -> None:
        what, values = _describe(update), update.values
        counts = len(update.targets), len(values)
        _require(counts[0] == counts[1], f"{what} has {counts[1]} values, expected {counts[0]}, one for each target")
        for target, value in zip(update.targets, values, strict=True):
            self._updated(what, target.buffer)
            self._access(what, target.buffer, target.indices, value)
        self._combiner(what, update.combiner, values, visible)

    def _updated(self, what: str, buffer: Buffer) -> None:
        has, possible = buffer.mode, buffer.mode in ("inout", "scratch")
        _require(possible, f"{what} updates a buffer of mode {has}, expected inout or scratch")

    def _combiner(self, what: str, combiner: str | Block, values: Sequence[Register], visible: set[Register]) -> None:
        if isinstance(combiner, Block):
            _same_types(what, "combiner parameters", combiner.parameters, [*values, *values])
            self.block(combiner, frozenset(visible), values)
            return
        operation = OPERATIONS.get(combiner)
        associative = operation is not None and operation.associative
        _require(associative, f"{what}: {combiner} is not an associative operation")
        _require(len(values) == 1, f"{what}: a combiner by name folds one value, has {len(values)}")

    def _access(self, what: str, buffer: Buffer, indices: Sequence[Index], value: Register) -> None:
        _require(buffer in self._buffers, f"{what}: the buffer is neither a parameter nor a scratch made before")
        rank = len(buffer.shape)
        _require(len(indices) == rank, f"{what} has {len(indices)} indices, expected {rank}")
        _check_indices(what, indices)
        _require(value.dtype == buffer.dtype, f"{what} has a value of type {value.dtype}, expected {buffer.dtype}")

    def _loop(self, loop: Loop, visible: set[Register]) -> None:
        what = _describe(loop)
        _require(bool(loop.extents), f"{what} has no extents, expected at least one")
        extents = [e for e in loop.extents if isinstance(e, Register)]
        _require(
            all(e.dtype == INDEX for e in (*extents, *loop.indices)),
            f"{what} has an index or extent not of type {INDEX}",
        )
        carried = loop.body.parameters[len(loop.extents) :]
        _same_types(what, "carried values", carried, loop.inits if loop.kind == "sequential" else [])
        _same_types(what, "results", loop.carried, loop.inits)
        _require(loop.kind != "parallel" or not loop.inits, f"{what} carries values, expected none")
        has_combiner = loop.combiner is not None
        fits = has_combiner if loop.kind == "reduction" else not has_combiner or running_fold(loop) is not None
        _require(fits, f"{what}: reductions must have a combiner, and other loops none, unless they are running folds")
        for end in loop.ends:
            self._end(what, loop, end)
        self.block(loop.body, frozenset(visible), loop.inits)
        if loop.combiner is not None:
            self._combiner(what, loop.combiner, loop.inits, visible)

    def _end(self, what: str, loop: Loop, end: End) -> None:
        known = end.extent in self._buffers and (end.extent.dtype, end.extent.shape) == (INDEX, ())
        _require(known, f"{what} ends at {end.extent.name}, expected a 0-d {INDEX} parameter")
        fits = loop.kind == "parallel" and end.dimension < len(loop.extents) and min(end.step, end.count) > 0
        _require(fits, f"{what} has no dimension {end.dimension} that may end")

    def _define(self, values: Sequence[Register], visible: set[Register], what: str) -> None:
        _require(self._defined.isdisjoint(values), f"{what} defines a value a second time")
        self._defined.update(values)
        visible.update(values)


def _check_indices(what: str, indices: Sequence[Index]) -> None:
    typed = all(symbol.dtype == INDEX for symbol in symbols(*indices))
    _require(typed, f"{what} has an index of a type other than {INDEX}")
    positive = all(division.divisor > 0 for index in indices for division in index.divisions())
    _require(positive, f"{what} divides an index by a number that is not positive")


def _same_types(what: str, which: str, values: Sequence[Register], expected: Sequence[Register]) -> None:
    has, wants = [v.dtype for v in values], [v.dtype for v in expected]
    _require(has == wants, f"{what} has {which} of types {has}, expected {wants}")


def _describe(instruction: Instruction) -> str:
    match instruction:
        case Apply(op):
            return op
        case Load(buffer) | Store(buffer) | SortKeys(buffer):
            return f"{type(instruction).__name__.lower()} of {buffer.name}{list(buffer.shape)}"
        case Update(targets):
            return f"update of {', '.join(f'{t.buffer.name}{list(t.buffer.shape)}' for t in targets)}"
        case Loop(kind):
            return f"{kind} loop"
    return type(instruction).__name__.lower()


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CompileError(message)
