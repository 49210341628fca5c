"""Kernels whose short loops are written out: an iteration of what remains, such as a point of three coordinates or a
small matrix, has no loops of its own. All places in it differ by constants, each element is loaded once, and temporary
elements are values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from trivium.compiler.kernel.affine import accesses
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.contraction_nest import sum_of
from trivium.compiler.kernel.dtypes import BOOL, INDEX, numpy_dtype
from trivium.compiler.kernel.evaluation import evaluate
from trivium.compiler.kernel.index import Index, Indices, Symbol, constant, variable
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
    If,
    Instruction,
    Load,
    Loop,
    Position,
    Register,
    Scratch,
    Store,
    symbols,
    walk,
)

LARGEST = 256
"""The number of instructions up to which an iteration is written out."""
LONGEST = 16
"""The extent up to which a dimension of a parallel loop is written out."""


def written_out(kernel: Kernel, fused: bool) -> Kernel | None:
    """Returns a kernel that does the same, in which an iteration of the outermost loop has no loops of its own; None if
    these are too long, or there are none. `fused`: whether a sum of products adds each product with one rounding."""
    constants = [i for i in kernel.body.instructions if isinstance(i, Constant)]
    others = [i for i in kernel.body.instructions if not isinstance(i, Constant)]
    match others:
        case [Loop() as loop] if kernel.attention is None and _is_short(loop):
            builder = KernelBuilder(kernel.name)
            builder.params.extend(kernel.params)
            _Writer(builder, sum_of(kernel) if fused else None).kernel(constants, loop)
            return builder.build()
    return None


def _is_short(loop: Loop) -> bool:
    """Whether a loop can be written out, but for its first dimensions."""
    inner = [i for i in walk(loop.body) if isinstance(i, Loop)]
    indices = {index for other in inner for index in other.indices}
    held = [access for access in accesses(loop.body) if access.buffer.mode == "scratch"]
    known = all(indices.issuperset(symbols(*access.indices)) for access in held)
    branches = (block for i in walk(loop.body) if isinstance(i, If) for block in i.blocks)
    decided = not any(isinstance(a, Store) and a.buffer.mode == "scratch" for b in branches for a in accesses(b))
    kinds = Constant | Position | Apply | Load | Store | If | Loop | Scratch
    plain = all(isinstance(i, kinds) for i in walk(loop.body))
    if loop.kind != "parallel" or not (plain and known and decided):
        return False
    return _size(loop.body) <= LARGEST and (bool(inner) or _remaining(loop) < len(loop.extents))


def _remaining(loop: Loop) -> int:
    """Returns how many of a loop's dimensions remain."""
    remaining, size = len(loop.extents), _size(loop.body)
    while remaining > 1 and isinstance(extent := loop.extents[remaining - 1], int):
        size *= extent
        if extent > LONGEST or size > LARGEST or all(e == 1 for e in loop.extents[: remaining - 1]):
            break
        remaining -= 1
    return remaining


def _size(block: Block) -> float:
    """Returns the number of instructions of a block that is written out."""
    total = 0.0
    for i in block.instructions:
        if isinstance(i, Loop):
            trips = math.prod(extent if isinstance(extent, int) else math.inf for extent in i.extents)
            total += trips * (_size(i.body) + len(i.carried))
        elif not isinstance(i, Constant | Position):
            total += 1 + sum(map(_size, i.blocks))
    return total


class _Writer:
    """Copies instructions to the open block of a builder. `summed` is a loop whose products are added with one
    rounding."""

    def __init__(self, builder: KernelBuilder, summed: Loop | None) -> None:
        self._b, self._summed = builder, summed
        self._values: dict[Register, Register] = {}
        self._places: dict[Register, Index] = {}
        self._known: dict[Register, bool | int] = {}
        self._loaded: dict[tuple[Buffer, Indices], Register] = {}
        self._held: dict[tuple[Buffer, Indices], Register] = {}
        self._products: dict[Register, list[Register]] = {}

    def kernel(self, constants: Sequence[Instruction], loop: Loop) -> None:
        """Copies the loop of a kernel, of which the first dimensions remain, and the constants before it."""
        for each in constants:
            self._instruction(each)
        remaining = _remaining(loop)
        with self._b.parallel(*loop.extents[:remaining]) as indices:
            self._values.update(zip(loop.indices, indices, strict=False))
            for _ in self._iterations(loop, remaining):
                self._block(loop.body)

    def _instruction(self, instruction: Instruction) -> None:
        with self._b.computing(*instruction.origins):
            self._copy(instruction)

    def _block(self, block: Block) -> list[Register]:
        """Copies a block, and returns the values that it yields."""
        for instruction in block.instructions:
            self._instruction(instruction)
        return self._all(block.yields)

    def _copy(self, instruction: Instruction) -> None:
        match instruction:
            case Constant(literal, result):
                self._literal(result, literal)
            case Position(index, result):
                self._position(result, self._index(index))
            case Apply():
                self._apply(instruction)
            case Load(buffer, indices, result):
                self._values[result] = self._load(buffer, self._indices(indices))
            case Store(buffer, value, indices):
                places, value = self._indices(indices), self._value(value)
                if buffer.mode == "scratch":
                    self._held[buffer, places] = value
                else:
                    self._b.store(buffer, value, *places)
            case If():
                self._if(instruction)
            case Loop():
                self._loop(instruction)
            case _:
                assert isinstance(instruction, Scratch), "loops with other instructions are not written out"

    def _literal(self, result: Register, literal: bool | float) -> None:
        self._values[result] = self._b.constant(literal, result.dtype)
        if result.dtype in (BOOL, INDEX):
            self._known[self._values[result]] = literal  # type: ignore[assignment]

    def _position(self, result: Register, index: Index) -> None:
        if index.is_constant:
            self._literal(result, index.offset)
        else:
            self._values[result] = self._b.position(index)

    def _apply(self, apply: Apply) -> None:
        """Copies an operation, or finds its result if it depends on positions only."""
        operands, dtype = self._all(apply.arguments), apply.result.dtype
        if dtype in (BOOL, INDEX) and all(operand in self._known for operand in operands):
            known = [np.array(self._known[o], numpy_dtype(o.dtype)) for o in operands]
            self._literal(apply.result, evaluate(apply, known).item())
        elif apply.op == "select" and operands[0] in self._known:
            self._values[apply.result] = operands[1] if self._known[operands[0]] else operands[2]
        else:
            copy = self._values[apply.result] = self._b.apply(apply.op, *operands, **apply.attributes)
            if apply.op == "multiply" and dtype in ("f32", "f64"):
                self._products[copy] = operands

    def _load(self, buffer: Buffer, places: Indices) -> Register:
        if buffer.mode == "scratch":
            found = self._held.get((buffer, places))
            return found if found is not None else self._b.constant(0, buffer.dtype)  # it may be anything
        if buffer.mode != "in":
            return self._b.load(buffer, *places)
        if (buffer, places) not in self._loaded:
            self._loaded[buffer, places] = self._b.load(buffer, *places)
        return self._loaded[buffer, places]

    def _if(self, branch: If) -> None:
        condition = self._value(branch.condition)
        if condition in self._known:
            results = self._block(branch.then if self._known[condition] else branch.otherwise)
        else:
            with self._b.if_(condition) as copy:
                copy.yield_(*self._inside(branch.then))
            with copy.otherwise():
                copy.yield_(*self._inside(branch.otherwise))
            results = copy.results
        self._values.update(zip(branch.outcomes, results, strict=True))

    def _inside(self, block: Block) -> list[Register]:
        """Copies a block, and forgets at its end what was found inside."""
        outer = self._values, self._known, self._loaded
        self._values, self._known, self._loaded = (dict(found) for found in outer)  # type: ignore[arg-type]
        results = self._block(block)
        self._values, self._known, self._loaded = outer
        return results

    def _loop(self, loop: Loop) -> None:
        """Writes out a loop."""
        carried = self._all(loop.inits)
        for _ in self._iterations(loop, 0):
            if loop.kind == "sequential":
                self._values.update(zip(loop.body.parameters[len(loop.extents) :], carried, strict=True))
            results = self._block(loop.body)
            carried = self._folded(loop, carried, results) if loop.kind == "reduction" else results
        self._values.update(zip(loop.carried, carried, strict=True))

    def _iterations(self, loop: Loop, first: int) -> Iterator[None]:
        """Binds the indices of a loop's dimensions from `first` on, for one iteration after the other."""
        extents = [extent for extent in loop.extents[first:] if isinstance(extent, int)]
        for position in itertools.product(*map(range, extents)):
            for index, number in zip(loop.indices[first:], position, strict=True):
                self._literal(index, number)
                self._places[index] = constant(number)
            yield

    def _folded(self, loop: Loop, accumulated: list[Register], terms: list[Register]) -> list[Register]:
        """Returns what a reduction accumulates after one more term for each result."""
        if isinstance(loop.combiner, Block):
            return self._b.inline(loop.combiner, *accumulated, *terms)
        assert loop.combiner is not None, "a reduction has a combiner"
        if loop is self._summed and terms[0] in self._products:
            return [self._b.apply("fma", *self._products[terms[0]], accumulated[0])]
        return [self._b.apply(loop.combiner, *pair) for pair in zip(accumulated, terms, strict=True)]

    def _value(self, value: Register) -> Register:
        return self._values.get(value, value)

    def _all(self, values: Sequence[Register]) -> list[Register]:
        return [self._value(value) for value in values]

    def _indices(self, indices: Indices) -> Indices:
        return tuple(map(self._index, indices))

    def _index(self, index: Index) -> Index:
        def place(symbol: Symbol) -> Index | None:
            assert isinstance(symbol, Register), "kernels depend on values"
            if symbol in self._places:
                return self._places[symbol]
            return variable(self._values[symbol]) if symbol in self._values else None

        return index.replace(place)
