"""Emits a kernel's code, for any device. It walks the kernel's blocks in order; if a schedule says that a loop
dimension runs in lanes, the same walk emits vectors: values that do not depend on that index stay scalars, addresses
distinguish contiguous from irregular access, and conditions become masks. A device that spreads loops over more than
lanes overrides `loop`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import llvmlite.ir as ll

from trivium.backends.llvm import division, folds, kernel_loops, memory
from trivium.backends.llvm.apply import apply
from trivium.backends.llvm.code import Code, is_true
from trivium.backends.llvm.jammed import Tile
from trivium.backends.llvm.key_sort import emit_sort
from trivium.backends.llvm.lines import LinedModule, at_line
from trivium.backends.llvm.narrow import constant
from trivium.backends.llvm.numbers import Int, Number, i64
from trivium.backends.llvm.workspace import Workspace
from trivium.compiler.kernel.affine import Analysis, atom_offsets
from trivium.compiler.kernel.dtypes import INDEX, bit_width
from trivium.compiler.kernel.index import Atom, Index, Indices, Quotient, Remainder, Symbol
from trivium.compiler.kernel.interleaving import Groups, interleaved
from trivium.compiler.kernel.lanes import Places, neighbours
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
    If,
    Instruction,
    Load,
    Loop,
    Register,
    Scratch,
    SortKeys,
    Store,
    Update,
    While,
)
from trivium.compiler.schedule import LoopSchedule, Schedule


class Emitter:
    """Emits blocks at the builder's position. `values` maps kernel values to LLVM values: scalars, or vectors of
    `lanes`; index arithmetic is only computed where a value itself is needed. `vector` is the loop index that is spread
    over lanes, `places` the values of all indices that differ from lane to lane, whose `values` are those of lane 0;
    `mask` are the active lanes; scratch buffers are in `workspace`."""

    def __init__(
        self,
        code: Code,
        analysis: Analysis,
        schedule: Schedule,
        buffers: dict[Buffer, ll.Value],
        workspace: Workspace,
    ):
        self.code = code
        self.builder = code.builder
        self.analysis = analysis
        self.schedule = schedule
        self.buffers = buffers
        self.workspace = workspace
        self.lined = isinstance(code.builder.module, LinedModule)
        self.values: dict[Register | Atom, ll.Value] = {}
        self.reciprocals: dict[Register, ll.Value] = {}
        """1 / x of values x, in f64."""
        self.sums: dict[Index, ll.Value] = {}
        """Index expressions, those without an offset, whose values are known."""
        self.unrolled: dict[Symbol, Index] = {}
        """Loop indices that have no value of their own: what they are in terms of others."""
        self.tile: Tile | None = None
        """The iterations that run in one body."""
        self.vector: Register | None = None
        self.lanes = 1
        self.places: Places = {}
        self.mask: ll.Value | None = None
        self.sums_of_products: Sequence[Loop] = ()
        """The sums of a contraction, which add products that are not rounded before."""

    def block(self, block: Block) -> list[ll.Value]:
        """Emits the instructions and returns what the block yields. Values defined in it are forgotten afterwards."""
        with self.scope():
            return self.inline(block)

    def inline(self, block: Block) -> list[ll.Value]:
        """Like `block`, but its values stay known (a while's body uses those of its condition)."""
        groups = self._interleaved(block)
        for instruction in block.instructions:
            group = groups.get(instruction)  # type: ignore[call-overload]
            if group is None:
                self.emit(instruction)
            elif group:
                self._together(group)
        return [self.value(value) for value in block.yields]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forgets, at the end, the values that are defined inside."""
        outer = self.values, self.reciprocals, self.unrolled, self.sums
        self.values, self.reciprocals = dict(self.values), dict(self.reciprocals)
        try:
            yield
        finally:
            self.values, self.reciprocals, self.unrolled, self.sums = outer

    @contextmanager
    def in_lanes(
        self, index: Register | None, lanes: int, mask: ll.Value | None, multiple: int = 1, places: Places | None = None
    ) -> Iterator[None]:
        """Spreads the iterations of `index` over lanes: those at `places`, or the neighbours of its present value,
        which is a multiple of `multiple`. Vector loops do not nest: the schedule of a block that is in lanes does not
        vectorize the loops inside it."""
        assert self.lanes == 1, "a vector loop inside a vector loop"
        outer = self.vector, self.lanes, self.mask, self.places
        self.vector, self.lanes, self.mask = (index if lanes > 1 else None), lanes, mask
        self.places = {} if self.vector is None else places or neighbours(self.vector, lanes, multiple)
        try:
            yield
        finally:
            self.vector, self.lanes, self.mask, self.places = outer

    # Values

    def value(self, value: Register) -> ll.Value:
        """Returns the LLVM value; index arithmetic is computed now."""
        found = self.values.get(value)
        if found is not None and value not in self.places:
            return found
        return self.number(self.analysis.form(value))

    def number(self, index: Index) -> ll.Value:
        """Returns the value of an index expression."""
        base, offsets, scattered = self.split(index)
        if any(offsets):
            base = self.code.iadd(self.code.splat(base, self.lanes), memory.lane_literal(offsets))
        return base if scattered is None else self.code.iadd(self.code.splat(base, self.lanes), scattered)

    def division(self, atom: Quotient | Remainder) -> ll.Value:
        """Returns a quotient or remainder, that of lane 0 if those of the others follow from it. It is computed once in
        each block."""
        if atom not in self.values:
            op = "divide" if isinstance(atom, Quotient) else "remainder"
            regular = self._offsets(atom) is not None
            dividend = self.split(atom.dividend)[0] if regular else self.number(atom.dividend)
            self.values[atom] = kernel_loops.divide_index(self.code, op, dividend, atom.divisor)
        return self.values[atom]

    def _offsets(self, atom: Atom) -> Sequence[int] | None:
        """Returns by how much each lane's value differs from that of lane 0, if that is constant."""
        return atom_offsets(atom, self.places) if self.places else None

    def split(self, index: Index) -> tuple[ll.Value, tuple[int, ...], ll.Value | None]:
        """Returns an index expression as a scalar for lane 0, what is added to it in each lane, and a vector for the
        irregular part."""
        index = index.replace(self.unrolled.get)
        total = [0] * self.lanes
        for atom, coefficient in index.terms.items():
            if offsets := self._offsets(atom):
                total = [one + coefficient * other for one, other in zip(total, offsets, strict=True)]
        if self.sums and (known := self.sums.get(Index(index.terms))) is not None:
            return i64(Int(self.code, known) + index.offset), tuple(total), None
        base: Number = 0
        offset, scattered = index.offset, None
        for atom, coefficient in index.terms.items():
            value = self.division(atom) if isinstance(atom, Quotient | Remainder) else self.values[atom]  # type: ignore[index]
            if isinstance(value, ll.Constant) and isinstance(value.constant, int):
                offset += coefficient * value.constant
                continue
            term = value if coefficient == 1 else self.builder.mul(value, self.code.like(value, coefficient))
            if isinstance(term.type, ll.VectorType):
                scattered = term if scattered is None else self.code.iadd(scattered, term)
            else:
                base = base + Int(self.code, term)
        return i64(base + offset), tuple(total), scattered

    def extent(self, extent: int | Register) -> Number:
        """Returns a loop's extent as a number."""
        return extent if isinstance(extent, int) else Int(self.code, self.value(extent))

    def same_shape(self, values: Sequence[ll.Value]) -> list[ll.Value]:
        """Repeats scalars over the lanes if one of the values is a vector."""
        if any(isinstance(value.type, ll.VectorType) for value in values):
            return [self.code.splat(value, self.lanes) for value in values]
        return list(values)

    def address(self, buffer: Buffer, indices: Indices) -> memory.Address:
        """Returns the address of an access."""
        return memory.Address(self.buffers[buffer], buffer.dtype, *self.split(self.analysis.address(buffer, indices)))

    # Instructions

    def emit(self, instruction: Instruction) -> None:
        """Emits an instruction, with its line in the kernel's text if these are recorded."""
        with at_line(self.builder, instruction) if self.lined else nullcontext():
            self.instruction(instruction)

    def is_known(self, instruction: Instruction) -> bool:
        """Whether nothing is to be emitted for an instruction: its results are known, or index arithmetic."""
        if self.analysis.is_index(instruction):
            return True
        return bool(instruction.results) and all(result in self.values for result in instruction.results)

    def instruction(self, instruction: Instruction) -> None:
        if self.is_known(instruction):
            return
        match instruction:
            case Constant(number, result):
                self.values[result] = constant(result.dtype, number)
            case Apply(_, arguments, _, result):
                self.values[result] = self._apply(instruction, [self.value(argument) for argument in arguments])
            case Load(buffer, indices, result):
                address = self.address(buffer, indices)
                self.values[result] = memory.load(self.code, address, self.lanes, self.mask)
            case Store(buffer, value, indices):
                address = self.address(buffer, indices)
                memory.store(self.code, address, self.value(value), self.lanes, self.mask)
            case Update():
                self._update(instruction)
            case SortKeys(buffer, indices, count):
                self._sort_keys(buffer, indices, count)
            case Scratch(buffer):
                self.buffers[buffer] = self.workspace.room(self.builder, buffer.nbytes)
            case Loop():
                self.loop(instruction)
            case If():
                self._if(instruction)
            case While():
                self._while(instruction)

    def _interleaved(self, block: Block) -> Groups:
        """Returns the accesses of a block that together move vectors."""
        if self.vector is None or len(self.places) > 1 or self.mask is not None:
            return {}
        return interleaved(block, self.vector, self.analysis)

    def _together(self, group: Sequence[Load | Store]) -> None:
        """Emits loads or stores that move whole vectors."""
        address = self.address(group[0].buffer, group[0].indices)
        stored = [self.value(each.value) for each in group if isinstance(each, Store)]
        if stored:
            memory.store_interleaved(self.code, address, stored, self.lanes)
            return
        results = [each.result for each in group if isinstance(each, Load)]
        self.values.update(
            zip(results, memory.load_interleaved(self.code, address, len(group), self.lanes), strict=True)
        )

    def loop(self, loop: Loop) -> None:
        """Emits a loop according to its schedule, inside one thread."""
        kernel_loops.emit_loop(self, loop)

    def before(self, loop: Loop, schedule: LoopSchedule) -> None:
        """Emits what precedes a parallel loop's body, for each iteration of the dimensions that are not in lanes:
        nothing, on most devices."""

    def beside(self, loop: Loop) -> None:
        """Emits what accompanies each vector of a loop in lanes: nothing, on most devices."""

    def is_awaited(self, loop: Loop) -> bool:
        """Whether a loop waits for what it computes rather than for memory."""
        return True

    def _apply(self, instruction: Apply, operands: list[ll.Value]) -> ll.Value:
        """Emits an operation, without the guards of a division if the divisor is a literal, with its reciprocal if that
        is known, and without operands of a conjunction that are known to be true."""
        if division.is_division(instruction) and self.lanes >= division.FEWEST_LANES:
            reciprocal, (dividend, divisor) = self.reciprocals.get(instruction.arguments[1]), operands
            if reciprocal is not None and isinstance(dividend.type, ll.VectorType):
                return division.by_halves(self.code, dividend, divisor, reciprocal)
        operands = self.same_shape(operands)
        if instruction.op == "and" and instruction.result.dtype == "i1":
            operands = [operand for operand in operands if not is_true(operand)] or operands[:1]
            if len(operands) == 1:
                return operands[0]
        if instruction.op in ("divide", "remainder") and instruction.result.dtype == INDEX:
            divisor = self.analysis.form(instruction.arguments[1])
            if divisor.is_constant and divisor.offset > 0:
                return kernel_loops.divide_index(self.code, instruction.op, operands[0], divisor.offset)
        return apply(self.code, instruction, operands)

    def _update(self, update: Update) -> None:
        """Emits a load and a store: the schedule lets no two threads or lanes update one element."""
        places = [self.address(target.buffer, target.indices) for target in update.targets]
        old = [memory.load(self.code, place, self.lanes, self.mask) for place in places]
        values = [self.value(value) for value in update.values]
        new = folds.combined(self, update.combiner, old, values, [value.dtype for value in update.values])
        for place, value in zip(places, new, strict=True):
            memory.store(self.code, place, value, self.lanes, self.mask)

    def _sort_keys(self, buffer: Buffer, indices: Indices, count: int) -> None:
        keys, bits = self.address(buffer, indices), bit_width(buffer.dtype)
        first = self.builder.gep(keys.pointer, [keys.base], source_etype=ll.IntType(bits))
        self.sort_keys(bits, first, self.workspace.room(self.builder, count * bits // 8), count)

    def sort_keys(self, bits: int, keys: ll.Value, spare: ll.Value, count: int) -> None:
        """Emits the sort of `count` integers of `bits` bits at `keys`; `spare` has room for as many."""
        emit_sort(self.code, bits, keys, spare, count)

    # Branches

    def _if(self, branch: If) -> None:
        condition = self.value(branch.condition)
        if is_true(condition):
            self.values.update(zip(branch.outcomes, self.block(branch.then), strict=True))
            return
        if isinstance(condition.type, ll.VectorType):
            self._masked_if(branch, condition)
            return
        builder = self.builder
        blocks = [builder.append_basic_block(name) for name in ("then", "else", "end")]
        builder.cbranch(condition, blocks[0], blocks[1])
        outcomes: list[list[ll.Value]] = []
        ends: list[ll.Block] = []
        for block, body in zip(blocks[:2], (branch.then, branch.otherwise), strict=True):
            builder.position_at_end(block)
            outcomes.append(self.block(body))
            ends.append(builder.block)
        shaped = [self._shape_at(ends, pair) for pair in zip(*outcomes, strict=True)]
        for end in ends:
            builder.position_at_end(end)
            builder.branch(blocks[2])
        builder.position_at_end(blocks[2])
        for result, pair in zip(branch.outcomes, shaped, strict=True):
            self.values[result] = self.code.phi(list(zip(pair, ends, strict=True)))

    def _shape_at(self, ends: list[ll.Block], pair: tuple[ll.Value, ...]) -> list[ll.Value]:
        """Does the same as `same_shape` for values that must each be repeated in its own branch."""
        if len({value.type for value in pair}) == 1:
            return list(pair)
        result = []
        for end, value in zip(ends, pair, strict=True):
            self.builder.position_at_end(end)
            result.append(self.code.splat(value, self.lanes))
        return result

    def _masked_if(self, branch: If, condition: ll.Value) -> None:
        """Lanes disagree: both branches run, each with its own lanes."""
        outer = self.mask
        outcomes = []
        for body, lanes in ((branch.then, condition), (branch.otherwise, self.builder.not_(condition))):
            self.mask = lanes if outer is None else self.builder.and_(outer, lanes)
            outcomes.append(self.block(body))
        self.mask = outer
        for result, pair in zip(branch.outcomes, zip(*outcomes, strict=True), strict=True):
            then, otherwise = (self.code.splat(value, self.lanes) for value in pair)
            self.values[result] = self.builder.select(condition, then, otherwise)

    def _while(self, loop: While) -> None:
        """Emitted only outside vector loops: lanes would end at different times."""
        assert self.lanes == 1, "a while inside a vector loop"
        builder = self.builder
        before = builder.block
        header, body, after = (builder.append_basic_block(name) for name in ("while", "do", "done"))
        inits = [self.value(value) for value in loop.inits]
        builder.branch(header)
        builder.position_at_end(header)
        phis = [self.code.phi([(init, before)]) for init in inits]
        with self.scope():
            self.values.update(zip(loop.condition.parameters, phis, strict=True))
            (condition,) = self.inline(loop.condition)
            builder.cbranch(condition, body, after)
            builder.position_at_end(body)
            for phi, value in zip(phis, self.block(loop.body), strict=True):
                phi.add_incoming(value, builder.block)
            builder.branch(header)
        builder.position_at_end(after)
        self.values.update(zip(loop.outcomes, phis, strict=True))
