"""What follows from the index expressions of a kernel: which values depend on which loop indices, every access as one
linear address, and where quotients and remainders must be computed. Schedules and emitters ask this instead of matching
instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trivium.compiler.kernel.dtypes import INDEX
from trivium.compiler.kernel.index import Atom, Index, Indices, Quotient, Remainder, constant, variable
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import (
    Block,
    Buffer,
    Constant,
    Instruction,
    Load,
    Loop,
    Position,
    Store,
    Target,
    Update,
    Value,
    symbols,
    walk,
)


class Analysis:
    """What is known of the index arithmetic of a kernel, or of a free-standing block."""

    def __init__(self, kernel: Kernel | Block):
        self._forms: dict[Value, Index] = {}
        self._depends: dict[Value, frozenset[Value]] = {}
        self.divisions: dict[Block, int] = {}
        """How many quotients and remainders the instructions of a block itself compute."""
        self.escaping: set[Value] = set()
        """Values that are used elsewhere than as terms of addresses: as numbers, as extents, or divided."""
        self._visit(kernel.body if isinstance(kernel, Kernel) else kernel, frozenset(), set())

    def form(self, value: Value) -> Index:
        """`value` as an index expression: itself, unless it is a constant or the number that an expression is."""
        return self._forms.get(value) or variable(value)

    def is_index(self, instruction: Instruction) -> bool:
        """Whether the instruction only gives an index expression a name, so that nobody needs to compute it."""
        return isinstance(instruction, Position | Constant) and instruction.result in self._forms

    def depends(self, atom: Value | Atom) -> frozenset[Value]:
        """The loop indices and block parameters that a value, or an atom of an expression, follows from."""
        if isinstance(atom, Quotient | Remainder):
            return self._union(symbols(atom.dividend))
        return self._depends.get(atom, frozenset())  # type: ignore[arg-type]

    def address(self, buffer: Buffer, indices: Indices) -> Index:
        """The element's place in `buffer`."""
        total = constant(buffer.offset)
        for index, step in zip(indices, buffer.layout, strict=True):
            total = total + index * step
        return total

    def step(self, address: Index, index: Value) -> int | None:
        """How many elements the address moves when `index` grows by one; None where that is not constant."""
        opaque = any(atom is not index and index in self.depends(atom) for atom in address.terms)
        return None if opaque else address.terms.get(index, 0)

    def _visit(self, block: Block, outer: frozenset[Value], computed: set[Quotient | Remainder]) -> None:
        """`computed` are the quotients and remainders that blocks around have computed before."""
        computed = set(computed)
        self.divisions[block] = 0
        for parameter in block.parameters:
            self._depends.setdefault(parameter, frozenset([parameter]))
        for instruction in block.instructions:
            self._note_index(instruction)
            self._note_uses(instruction)
            self._note_divisions(block, instruction, computed)
            control = outer | self._union(instruction.operands)
            if isinstance(instruction, Loop):
                self._carried(instruction, control)
            for nested in instruction.blocks:
                self._visit(nested, control, computed)
            self._results(instruction)
        for value in block.yields:
            self._escape(value)

    def _carried(self, loop: Loop, control: frozenset[Value]) -> None:
        """Carried values may come to depend on all that the loop reads."""
        inside = control | frozenset().union(
            *(self._union(i.operands) for i in walk(loop.body)), frozenset(loop.indices)
        )
        for parameter in loop.body.parameters[len(loop.extents) :]:
            self._depends[parameter] = inside | self._reads(loop.body)

    def _reads(self, block: Block) -> frozenset[Value]:
        """Every value mentioned in a block that is a loop index of its surroundings, found through expressions."""
        found: set[Value] = set()
        for instruction in walk(block):
            for operand in instruction.operands:
                found.update(symbols(self.form(operand)))
                found.update(self.depends(operand))
        return frozenset(found)

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
            case Load():
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
        self.divisions[block] += len(fresh)
        computed.update(fresh)

    def _escape(self, value: Value) -> None:
        self.escaping.update(symbols(self.form(value)))

    def _results(self, instruction: Instruction) -> None:
        depends = self._union(instruction.operands)
        for nested in instruction.blocks:
            depends |= self._reads(nested) | self._union(nested.yields)
        for result in instruction.results:
            self._depends[result] = depends

    def _union(self, values: Sequence[Value]) -> frozenset[Value]:
        return frozenset().union(*(self.depends(value) for value in values))


def divisions(instruction: Instruction) -> Iterator[Quotient | Remainder]:
    return (division for index in expressions(instruction) for division in index.divisions())


def expressions(instruction: Instruction) -> Indices:
    """The index expressions of an instruction."""
    match instruction:
        case Load(_, indices) | Store(_, _, indices):
            return indices
        case Position(index):
            return (index,)
        case Update(targets):
            return tuple(index for target in targets for index in target.indices)
    return ()


def accesses(block: Block) -> Iterator[Load | Store | Target]:
    """All loads, stores and targets of updates in `block`, nested ones included."""
    for instruction in walk(block):
        if isinstance(instruction, Load | Store):
            yield instruction
        elif isinstance(instruction, Update):
            yield from instruction.targets


def apart(loop: Loop) -> frozenset[int]:
    """The dimensions of a loop along which no two iterations update the same element: all of them where the loop holds
    no updates. Of each target, one index follows evenly from that dimension, and from nothing else in the loop."""
    updates = [update for update in walk(loop.body) if isinstance(update, Update)]
    targets = [target for update in updates for target in update.targets]
    own = {*loop.body.parameters, *(v for i in walk(loop.body) for v in i.results)} if targets else set()
    own.update(parameter for i in walk(loop.body) for block in i.blocks for parameter in block.parameters)

    def follows(index: Index, variable: Value) -> bool:
        inside = {symbol for symbol in symbols(index) if symbol in own}
        return inside == {variable} and index.terms.get(variable, 0) != 0

    return frozenset(
        dimension
        for dimension, variable in enumerate(loop.indices)
        if all(any(follows(index, variable) for index in target.indices) for target in targets)
    )


def holds(block: Block, *kinds: type[Instruction]) -> bool:
    """Whether an instruction of one of `kinds` occurs in `block`."""
    return any(isinstance(instruction, kinds) for instruction in walk(block))
