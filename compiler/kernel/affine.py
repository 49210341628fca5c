"""Facts that follow from the index expressions of a kernel: which values depend on which loop indices, every access as
one linear address, and where quotients and remainders must be computed. Schedules and emitters use this analysis
instead of matching instructions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from trivium.compiler.kernel.dtypes import INDEX
from trivium.compiler.kernel.index import Atom, Index, Indices, Quotient, Remainder, constant, variable
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.lanes import Places, lanes_of
from trivium.compiler.kernel.structure import (
    Block,
    Buffer,
    Constant,
    Instruction,
    Load,
    Loop,
    MemoryAccess,
    Position,
    Register,
    SortKeys,
    Store,
    Update,
    symbols,
    walk,
)


class Analysis:
    """What is known about the index arithmetic of a kernel, or of a free-standing block."""

    def __init__(self, kernel: Kernel | Block):
        self._forms: dict[Register, Index] = {}
        self._depends: dict[Register, frozenset[Register]] = {}
        self._addresses: dict[tuple[Buffer, Indices], Index] = {}
        self.divisions: dict[Block, tuple[Quotient | Remainder, ...]] = {}
        """For each block, the quotients and remainders that its own instructions compute."""
        self.escaping: set[Register] = set()
        """Values that are used for more than terms of addresses: as numbers, as extents, or in divisions."""
        self._visit(kernel.body if isinstance(kernel, Kernel) else kernel, frozenset(), set())

    def form(self, value: Register) -> Index:
        """Returns `value` as an index expression: itself, unless it is a constant or the value of an expression."""
        return self._forms.get(value) or variable(value)

    def symbols(self, value: Register) -> tuple[Register, ...]:
        """Returns the values that `form(value)` depends on."""
        form = self._forms.get(value)
        return (value,) if form is None else symbols(form)

    def is_index(self, instruction: Instruction) -> bool:
        """Whether the instruction only names an index expression, so that it need not be computed."""
        return isinstance(instruction, Position | Constant) and instruction.result in self._forms

    def depends(self, atom: Register | Atom) -> frozenset[Register]:
        """Returns the loop indices and block parameters that a value, or an atom of an expression, depends on."""
        if isinstance(atom, Quotient | Remainder):
            return self._union(symbols(atom.dividend))
        return self._depends.get(atom, frozenset())  # type: ignore[arg-type]

    def address(self, buffer: Buffer, indices: Indices) -> Index:
        """Returns the element's place in `buffer`."""
        place = buffer, indices
        if place not in self._addresses:
            total = constant(buffer.offset)
            for index, step in zip(indices, buffer.layout, strict=True):
                total = total + index * step
            self._addresses[place] = total
        return self._addresses[place]

    def step(self, address: Index, index: Register) -> int | None:
        """Returns by how many elements the address moves when `index` grows by one; None if that is not constant."""
        opaque = any(atom is not index and index in self.depends(atom) for atom in address.terms)
        return None if opaque else address.terms.get(index, 0)

    def lane_offsets(self, address: Index, places: Places) -> tuple[int, ...] | None:
        """Returns by how many elements the address of each lane differs from that of lane 0; None if that is not
        constant."""
        total = [0] * lanes_of(places)
        for atom, factor in address.terms.items():
            if atom in places or any(index in self.depends(atom) for index in places):
                offsets = atom_offsets(atom, places)
                if offsets is None:
                    return None
                total = [one + factor * other for one, other in zip(total, offsets, strict=True)]
        return tuple(total)

    def _visit(
        self, block: Block, outer: frozenset[Register], computed: set[Quotient | Remainder]
    ) -> frozenset[Register]:
        """Returns the values that the operands in a block depend on, found through expressions. `computed` are the
        quotients and remainders that surrounding blocks have already computed."""
        computed, read = set(computed), set[Register]()
        self.divisions[block] = ()
        for parameter in block.parameters:
            self._depends.setdefault(parameter, frozenset([parameter]))
        for instruction in block.instructions:
            self._note_index(instruction)
            self._note_uses(instruction)
            self._note_divisions(block, instruction, computed)
            control = outer | self._union(instruction.operands)
            if isinstance(instruction, Loop):
                self._carried(instruction, control)
            inside = frozenset().union(*(self._visit(nested, control, computed) for nested in instruction.blocks))
            self._results(instruction, inside)
            read |= inside | self._found(instruction)
        for value in block.yields:
            self._escape(value)
        return frozenset(read)

    def _carried(self, loop: Loop, control: frozenset[Register]) -> None:
        """Records that carried values may depend on everything that the loop reads."""
        carried = loop.body.parameters[len(loop.extents) :]
        if carried:
            read = frozenset().union(*map(self._found, walk(loop.body)))
            self._depends |= dict.fromkeys(carried, control | frozenset(loop.indices) | read)

    def _found(self, instruction: Instruction) -> frozenset[Register]:
        """Returns the values that operands depend on, found through expressions."""
        return self._union(instruction.operands).union(*map(self.symbols, instruction.operands))

    def _note_index(self, instruction: Instruction) -> None:
        match instruction:
            case Constant(literal, result) if result.dtype == INDEX:
                self._forms[result] = constant(int(literal))
            case Position(index, result):
                self._forms[result] = index

    def _note_uses(self, instruction: Instruction) -> None:
        for division in divisions(instruction):
            self.escaping.update(symbols(division.dividend))
        match instruction:
            case Load() | SortKeys():
                pass
            case Store(_, value, _):
                self._escape(value)
            case Update(_, values):
                for value in values:
                    self._escape(value)
            case _ if not self.is_index(instruction):
                for operand in instruction.operands:
                    self._escape(operand)

    def _note_divisions(self, block: Block, instruction: Instruction, computed: set[Quotient | Remainder]) -> None:
        fresh = dict.fromkeys(division for division in divisions(instruction) if division not in computed)
        self.divisions[block] += tuple(fresh)
        computed.update(fresh)

    def _escape(self, value: Register) -> None:
        self.escaping.update(self.symbols(value))

    def _results(self, instruction: Instruction, inside: frozenset[Register]) -> None:
        """Records what results depend on. `inside` is what is read in the instruction's blocks."""
        given = *instruction.operands, *(value for nested in instruction.blocks for value in nested.yields)
        self._depends |= dict.fromkeys(instruction.results, inside | self._union(given))

    def _union(self, values: Sequence[Register]) -> frozenset[Register]:
        return frozenset().union(*(self.depends(value) for value in values))


def atom_offsets(atom: Atom | Register, places: Places) -> Sequence[int] | None:
    """`Analysis.lane_offsets` for an atom that depends on indices in lanes. A quotient, or remainder, of nothing else
    is i // 2 + (0, 0, 1, 1, ...) for example, if i is even; or i // 64 + (0, 0, 0, ...), if i is a multiple of 16 and
    there are no more lanes than that."""
    if atom in places:
        numbers: Sequence[int] = places[atom].numbers  # type: ignore[index]
        return [number - numbers[0] for number in numbers]
    if not isinstance(atom, Quotient | Remainder) or not set(atom.dividend.terms) <= set(places):
        return None
    terms = [(places[symbol], factor) for symbol, factor in atom.dividend.terms.items()]  # type: ignore[index]
    first = atom.dividend.offset
    dividends = [
        first + sum(place.numbers[lane] * factor for place, factor in terms) for lane in range(lanes_of(places))
    ]
    # All of these dividends change by multiples of `period`, which divides the divisor.
    period = math.gcd(atom.divisor, *(factor * place.multiple for place, factor in terms))
    if period < atom.divisor and len({dividend // period for dividend in dividends}) > 1:
        return None
    part = 0 if isinstance(atom, Quotient) else 1
    every = [divmod(dividend, period)[part] for dividend in dividends]
    return [each - every[0] for each in every]


def divisions(instruction: Instruction) -> Iterator[Quotient | Remainder]:
    return (division for index in expressions(instruction) for division in index.divisions())


def expressions(instruction: Instruction) -> Indices:
    """Returns the index expressions of an instruction."""
    match instruction:
        case Load(_, indices) | Store(_, _, indices) | SortKeys(_, indices):
            return indices
        case Position(index):
            return (index,)
        case Update(targets):
            return tuple(index for target in targets for index in target.indices)
    return ()


def accesses(block: Block) -> Iterator[MemoryAccess]:
    """Yields all loads, stores, sorts and targets of updates in `block`, including nested ones."""
    for instruction in walk(block):
        if isinstance(instruction, Load | Store | SortKeys):
            yield instruction
        elif isinstance(instruction, Update):
            yield from instruction.targets


def apart(loop: Loop, inside: Loop | None = None) -> frozenset[int]:
    """Returns the dimensions of a loop along which no two iterations update the same element: all dimensions if the
    loop has no updates. Otherwise, each target must have an index that depends linearly on that dimension, and on
    nothing else in the loop. If the loop is inside another one, its iterations for all of that one's are meant."""
    whole = inside or loop
    targets = [target for update in walk(whole.body) if isinstance(update, Update) for target in update.targets]
    own = inner_values(whole) if targets else set()
    return frozenset(
        dimension
        for dimension, variable in enumerate(loop.indices)
        if all(any(follows(index, variable, own) for index in target.indices) for target in targets)
    )


def inner_values(loop: Loop) -> set[Register]:
    """Returns the values that are defined in a loop, its indices included."""
    blocks = [loop.body, *(block for i in walk(loop.body) for block in i.blocks)]
    return {*(p for block in blocks for p in block.parameters), *(v for i in walk(loop.body) for v in i.results)}


def follows(index: Index, variable: Register, own: AbstractSet[Register]) -> bool:
    """Whether an index depends linearly on `variable`, and on no other one of the values `own`."""
    return {s for s in symbols(index) if s in own} == {variable} and index.terms.get(variable, 0) != 0


def holds(block: Block, *kinds: type[Instruction]) -> bool:
    """Whether `block` contains an instruction of one of `kinds`."""
    return any(isinstance(instruction, kinds) for instruction in walk(block))
