"""The meaning of a kernel, without any backend: its instructions run on NumPy arrays. All iterations of a parallel loop
or of a reduction run at once: each loop adds an axis, and a value is an array with an axis for each loop that is open
where it is defined (trailing axes may be missing). A mask says which iterations are active inside branches and inside
loops with computed extents.

The interpreter also checks the guarantees of kernels: indices are in bounds, and no two iterations of a parallel loop
write the same element with one store. Memory that the kernel has not written contains garbage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from trivium.compiler.kernel import evaluation
from trivium.compiler.kernel.contraction import Access, Contraction
from trivium.compiler.kernel.dtypes import from_numpy, numpy_dtype
from trivium.compiler.kernel.index import Index, Indices, Quotient, Remainder
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
    SortKeys,
    Store,
    Update,
    While,
)
from trivium.ir.errors import CompileError
from trivium.ir.ops import numerics

Arrays = list[np.ndarray]


def run(kernel: Kernel, memory: Sequence[np.ndarray], marks: bool = False) -> None:
    """Runs `kernel` with each parameter bound to a flat array of its type, in order. With `marks`, contractions run as
    their marks describe them, instead of as loop nests."""
    state = Interpreter(dict(zip(kernel.params, memory, strict=True)))
    try:
        with np.errstate(all="ignore"):
            if marks and kernel.contraction is not None:
                _contraction(state, kernel.contraction)
            else:
                state.block(kernel.body)
    except CompileError as error:
        raise error.add(during=f"interpreting kernel {kernel.name}") from None


def garbage(size: int, dtype: np.dtype) -> np.ndarray:
    """Returns memory that stands for undefined contents."""
    return np.full(size * dtype.itemsize, 0xA5, np.uint8).view(dtype) if dtype != np.bool_ else np.ones(size, dtype)


class Interpreter:
    """Runs blocks. `shape` has an axis for each open loop, `mask` says which of its iterations are active."""

    def __init__(self, memory: dict[Buffer, np.ndarray]):
        self.shape: tuple[int, ...] = ()
        self.mask = np.ones((), np.bool_)
        self._memory = memory
        self._owners: dict[Buffer, tuple[int, ...]] = {}
        """For each scratch buffer, the extents of the loops around it: each of their iterations has its own copy."""
        self._values: dict[Register, np.ndarray] = {}

    def block(self, block: Block, *arguments: np.ndarray) -> Arrays:
        """Runs a block with its parameters bound to `arguments`, and returns the values that it yields."""
        self._values.update(zip(block.parameters, arguments, strict=True))
        for instruction in block.instructions:
            self._instruction(instruction)
        return self.values(block.yields)

    def value(self, value: Register) -> np.ndarray:
        """Returns a value with an axis for each open loop."""
        array = self._values[value]
        return array.reshape(array.shape + (1,) * (len(self.shape) - array.ndim))

    def values(self, values: Sequence[Register]) -> Arrays:
        return [self.value(value) for value in values]

    def index(self, index: Index) -> np.ndarray:
        """Returns the value of an index expression."""
        total = np.full((1,) * len(self.shape), index.offset)
        for atom, factor in index.terms.items():
            if isinstance(atom, Quotient):
                number = self.index(atom.dividend) // atom.divisor
            elif isinstance(atom, Remainder):
                number = self.index(atom.dividend) % atom.divisor
            else:
                number = self.value(atom)  # type: ignore[arg-type]
            total = total + number * factor
        return total

    def indices(self, indices: Indices) -> Arrays:
        return [self.index(index) for index in indices]

    @contextmanager
    def inside(self, count: int, mask: np.ndarray) -> Iterator[None]:
        """Adds an axis of `count` iterations; `mask` says which are active."""
        outer = self.shape, self.mask
        self.shape, self.mask = (*self.shape, count), mask
        yield
        self.shape, self.mask = outer

    @contextmanager
    def masked(self, mask: np.ndarray) -> Iterator[None]:
        """Makes only the iterations of `mask` active."""
        outer, self.mask = self.mask, mask
        yield
        self.mask = outer

    def _instruction(self, instruction: Instruction) -> None:
        match instruction:
            case Constant(literal, result):
                self._values[result] = np.asarray(literal).astype(numpy_dtype(result.dtype))
            case Apply(_, arguments, _, result):
                self._values[result] = evaluation.evaluate(instruction, self.values(arguments))
            case Load(buffer, indices, result):
                self._values[result] = self.load(buffer, self.indices(indices))
            case Store(buffer, value, indices):
                self.store(buffer, self.value(value), self.indices(indices))
            case Update():
                self._update(instruction)
            case SortKeys(buffer, indices, count):
                self._sort_keys(buffer, self.indices(indices), count)
            case Position(index, result):
                self._values[result] = self.index(index)
            case Scratch(buffer):
                self._owners[buffer] = self.shape
                self._memory[buffer] = garbage(math.prod(self.shape) * buffer.size, numpy_dtype(buffer.dtype))
            case Loop(kind):
                run = {"parallel": self._parallel, "sequential": self._sequential, "reduction": self._reduction}[kind]
                self._values.update(zip(instruction.results, run(instruction), strict=True))
            case If():
                self._if(instruction)
            case While():
                self._while(instruction)

    # Memory

    def load(self, buffer: Buffer, indices: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the elements at these indices; the values for inactive iterations are arbitrary."""
        if not self.mask.any():
            return np.zeros((1,) * len(self.shape), numpy_dtype(buffer.dtype))
        return self._memory[buffer][self.addresses(buffer, indices)]

    def store(self, buffer: Buffer, value: np.ndarray, indices: Sequence[np.ndarray]) -> None:
        """Writes the values of active iterations to the elements at these indices."""
        active = np.broadcast_to(self.mask, self.shape)
        addresses = np.broadcast_to(self.addresses(buffer, indices), self.shape)[active]
        if len(np.unique(addresses)) < len(addresses):
            raise CompileError(f"store to {buffer.name}: several iterations of a parallel loop write one element")
        self._memory[buffer][addresses] = np.broadcast_to(value, self.shape)[active]

    def _update(self, update: Update) -> None:
        """Runs an update in turns: for each element, the first turn runs the first iteration that updates it, the
        second turn the second one, and so on."""
        places = [self.indices(target.indices) for target in update.targets]
        active = np.broadcast_to(self.mask, self.shape)
        turns = np.zeros(self.shape, np.int64)
        which = [
            np.broadcast_to(self.addresses(target.buffer, at), self.shape)[active]
            for target, at in zip(update.targets, places, strict=True)
        ]
        turns[active] = _occurrences(which, update)
        values = self.values(update.values)
        for turn in range(1 + int(np.max(turns, initial=-1, where=active))):
            with self.masked(active & (turns == turn)):
                old = [self.load(t.buffer, at) for t, at in zip(update.targets, places, strict=True)]
                new = self._combined(update.combiner, old, values)
                for target, value, at in zip(update.targets, new, places, strict=True):
                    self.store(target.buffer, value, at)

    def _sort_keys(self, buffer: Buffer, indices: Sequence[np.ndarray], count: int) -> None:
        active = np.broadcast_to(self.mask, self.shape)
        ends = (self.addresses(buffer, [*indices[:-1], indices[-1] + end]) for end in (0, count - 1))
        first, last = (np.broadcast_to(end, self.shape)[active] for end in ends)
        places = np.linspace(first, last, count, dtype=np.int64, axis=-1)
        self._memory[buffer][places] = np.sort(self._memory[buffer][places], axis=-1)

    def addresses(self, buffer: Buffer, indices: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the addresses of elements; 0 for inactive iterations."""
        total = np.asarray(buffer.offset)
        if buffer in self._owners:
            owners = self._owners[buffer]
            numbers = np.arange(math.prod(owners)).reshape(owners + (1,) * (len(self.shape) - len(owners)))
            total = total + numbers * buffer.size
        for index, extent, step in zip(indices, buffer.shape, buffer.layout, strict=True):
            outside = self.mask & ((index < 0) | (index >= extent))
            if outside.any():
                wrong = np.broadcast_to(index, outside.shape)[outside][0]
                raise CompileError(f"access to {buffer.name}{list(buffer.shape)}: index {wrong} is out of bounds")
            total = total + index * step
        return np.where(self.mask, total, 0)

    # Loops

    def _indices(self, loop: Loop) -> tuple[Arrays, np.ndarray]:
        """Returns the indices of every iteration of a loop, and whether it is active, along a new last axis. Computed
        extents may differ between iterations of the loops around it: the box has the largest of them."""
        extents = [self._extent(extent) for extent in loop.extents]
        counts = [int(np.max(extent, initial=0, where=self.mask)) for extent in extents]
        outer = (1,) * len(self.shape)
        grid = np.indices(counts, np.int64).reshape(len(counts), *outer, math.prod(counts))
        mask = self.mask[..., None]
        for indices, extent in zip(grid, extents, strict=True):
            mask = mask & (indices < extent[..., None])
        return list(grid), mask

    def _extent(self, extent: int | Register) -> np.ndarray:
        array = self.value(extent) if isinstance(extent, Register) else np.asarray(extent)
        return np.broadcast_to(array, np.broadcast_shapes(array.shape, self.mask.shape))

    def _parallel(self, loop: Loop) -> Arrays:
        indices, mask = self._indices(loop)
        with self.inside(mask.shape[-1], mask):
            self.block(loop.body, *indices)
        return []

    def _sequential(self, loop: Loop) -> Arrays:
        indices, mask = self._indices(loop)
        carried = self.values(loop.inits)
        for number in range(mask.shape[-1]):
            active = mask[..., number]
            with self.masked(active):
                following = self.block(loop.body, *(index[..., number] for index in indices), *carried)
            carried = [np.where(active, new, old) for new, old in zip(following, carried, strict=True)]
        return carried

    def _reduction(self, loop: Loop) -> Arrays:
        """Folds the terms pairwise in halves, then onto the inits."""
        indices, mask = self._indices(loop)
        count = mask.shape[-1]
        with self.inside(count, mask):
            terms = [np.broadcast_to(term, (*self.shape[:-1], count)) for term in self.block(loop.body, *indices)]
        while count > 1:
            half = count // 2
            low, high, rest = slice(half), slice(half, 2 * half), slice(2 * half, count)
            with self.inside(half, mask[..., low] & mask[..., high]):
                both = self._combined(loop.combiner, [t[..., low] for t in terms], [t[..., high] for t in terms])
            choices = [mask[..., low] & mask[..., high], mask[..., low]]
            pairs = zip(both, terms, strict=True)
            folded = [np.where(choices[0], x, np.where(choices[1], t[..., low], t[..., high])) for x, t in pairs]
            terms = [np.concatenate([f, t[..., rest]], -1) for f, t in zip(folded, terms, strict=True)]
            mask = np.concatenate([mask[..., low] | mask[..., high], mask[..., rest]], -1)
            count -= half
        inits = self.values(loop.inits)
        if not count:
            return inits
        active = mask[..., 0]
        with self.masked(active):
            totals = self._combined(loop.combiner, inits, [t[..., 0] for t in terms])
        return [np.where(active, total, init) for total, init in zip(totals, inits, strict=True)]

    def _combined(self, combiner: str | Block | None, accumulated: Arrays, terms: Arrays) -> Arrays:
        if isinstance(combiner, Block):
            return self.block(combiner, *accumulated, *terms)
        assert combiner is not None, "reductions and updates have a combiner"
        return [evaluation.named(combiner, from_numpy(terms[0].dtype), [*accumulated, *terms])]

    # Branches

    def _if(self, branch: If) -> None:
        """Runs each branch that any iteration takes."""
        condition = self.value(branch.condition)
        yielded: list[Arrays] = []
        for block, taken in ((branch.then, self.mask & condition), (branch.otherwise, self.mask & ~condition)):
            with self.masked(taken):
                nothing = [np.zeros((), numpy_dtype(value.dtype)) for value in branch.outcomes]
                yielded.append(self.block(block) if taken.any() else nothing)
        for result, then, otherwise in zip(branch.outcomes, *yielded, strict=True):
            self._values[result] = np.where(condition, then, otherwise)

    def _while(self, loop: While) -> None:
        carried, active = self.values(loop.inits), self.mask
        while True:
            with self.masked(active):
                (going,) = self.block(loop.condition, *carried)
                active = active & going
            if not active.any():
                break
            with self.masked(active):
                following = self.block(loop.body)
            carried = [np.where(active, new, old) for new, old in zip(following, carried, strict=True)]
        self._values.update(zip(loop.outcomes, carried, strict=True))


def _occurrences(addresses: Sequence[np.ndarray], update: Update) -> np.ndarray:
    """Returns, for each iteration that updates elements at `addresses`, how many earlier ones update the same
    elements."""
    elements = [np.unique(each, return_inverse=True)[1] for each in addresses]
    if any((numbers != elements[0]).any() for numbers in elements):
        names = ", ".join(target.buffer.name for target in update.targets)
        raise CompileError(f"update of {names}: two iterations share some of their targets, but not all")
    order = np.argsort(elements[0], kind="stable")
    ordered = elements[0][order]
    begins = np.searchsorted(ordered, ordered)
    counts = np.empty(len(order), np.int64)
    counts[order] = np.arange(len(order)) - begins
    return counts


# Marks


def _contraction(state: Interpreter, contraction: Contraction) -> None:
    """Runs a contraction as its mark describes it: with one axis for the loops of the result, and one for those that
    are summed over."""
    outer = [loop.extent for loop in contraction.loops if loop.role != "k"]
    inner = [loop.extent for loop in contraction.loops if loop.role == "k"]
    rows = list(np.indices(outer, np.int64).reshape(len(outer), -1)) if outer else []
    terms = np.indices(inner, np.int64).reshape(len(inner), 1, -1) if inner else []
    with state.inside(math.prod(outer), np.ones(1, np.bool_)):
        with state.inside(math.prod(inner), np.ones((1, 1), np.bool_)):
            loops = [*(row[:, None] for row in rows), *terms]
            factors = [
                _operand(state, contraction, contraction.lhs, contraction.lhs_prologue, loops),
                _operand(state, contraction, contraction.rhs, contraction.rhs_prologue, loops),
            ]
            products = np.broadcast_to(evaluation.named("multiply", contraction.accumulate, factors), state.shape)
        total = np.zeros(state.shape, products.dtype)
        for number in range(products.shape[-1]):
            total = evaluation.named("add", contraction.accumulate, [total, products[..., number]])
        state.block(contraction.epilogue, total, *rows)


def _operand(
    state: Interpreter, contraction: Contraction, access: Access, prologue: Block | None, loops: Arrays
) -> np.ndarray:
    """Returns an operand's elements, after the prologue; zero where they are padding."""
    inside, indices = np.ones((1, 1), np.bool_), []
    for subscript, extent in zip(access.subscripts, access.buffer.shape, strict=True):
        position = np.full((1, 1), subscript.position.offset)
        for loop, index in zip(contraction.loops, loops, strict=True):
            position = position + subscript.position.terms.get(loop, 0) * index
        indices.append(position // subscript.dilation)
        inside = inside & (position % subscript.dilation == 0) & (indices[-1] >= 0) & (indices[-1] < extent)
    with state.masked(inside):
        element = state.load(access.buffer, indices)
        if prologue is not None:
            (element,) = state.block(prologue, element, *loops)
    dtype = numpy_dtype(contraction.accumulate)
    return np.where(inside, numerics.convert(element, dtype), np.zeros((), dtype))
