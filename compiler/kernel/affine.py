"""Index arithmetic seen through: every i64 value as a sum of coefficients times atoms (loop indices and what cannot
be seen through), which values depend on which loop indices, and every access as one linear address. Schedules and
emitters ask this instead of matching instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trivium.compiler.kernel.dtypes import INDEX
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
    Instruction,
    Kernel,
    Load,
    Loop,
    Store,
    Value,
    walk,
)


@dataclass(frozen=True, eq=False)
class Affine:
    """sum(coefficient * atom) + constant, modulo 2^64 like the arithmetic it stands for"""

    terms: dict[Value, int] = field(default_factory=dict)
    constant: int = 0

    def __add__(self, other: Affine) -> Affine:
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            terms[atom] = _wrap(terms.get(atom, 0) + coefficient)
        return Affine({atom: c for atom, c in terms.items() if c}, _wrap(self.constant + other.constant))

    def __mul__(self, factor: int) -> Affine:
        terms = {atom: _wrap(c * factor) for atom, c in self.terms.items()}
        return Affine({atom: c for atom, c in terms.items() if c}, _wrap(self.constant * factor))


def _wrap(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class Analysis:
    """What is known of the index arithmetic of a kernel, or of a free-standing block."""

    def __init__(self, kernel: Kernel | Block):
        self._forms: dict[Value, Affine] = {}
        self._depends: dict[Value, frozenset[Value]] = {}
        self.escaping: set[Value] = set()
        """Atoms that are used elsewhere than in addresses: as numbers, extents, or inside opaque index arithmetic."""
        self._visit(kernel.body if isinstance(kernel, Kernel) else kernel, frozenset())

    def form(self, value: Value) -> Affine:
        """`value` as a linear form; an atom where it cannot be seen through."""
        return self._forms.get(value) or Affine({value: 1})

    def is_affine(self, instruction: Instruction) -> bool:
        """Whether the instruction is index arithmetic that forms see through, so that nobody needs to compute it."""
        return isinstance(instruction, Apply | Constant) and instruction.result in self._forms

    def depends(self, value: Value) -> frozenset[Value]:
        """The loop indices and block parameters that `value` follows from."""
        return self._depends.get(value, frozenset())

    def address(self, buffer: Buffer, indices: Sequence[Value]) -> Affine:
        """The element's place in `buffer`."""
        total = Affine(constant=buffer.offset)
        for index, step in zip(indices, buffer.layout, strict=True):
            total = total + self.form(index) * step
        return total

    def step(self, address: Affine, index: Value) -> int | None:
        """How many elements the address moves when `index` grows by one; None where that is not constant."""
        opaque = any(atom is not index and index in self.depends(atom) for atom in address.terms)
        return None if opaque else address.terms.get(index, 0)

    def _visit(self, block: Block, outer: frozenset[Value]) -> None:
        for parameter in block.parameters:
            self._depends.setdefault(parameter, frozenset([parameter]))
        for instruction in block.instructions:
            self._see_through(instruction)
            self._note_uses(instruction)
            control = outer | self._union(instruction.operands)
            if isinstance(instruction, Loop):
                self._carried(instruction, control)
            for nested in instruction.blocks:
                self._visit(nested, control)
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
        """Every value mentioned in a block that is a loop index of its surroundings, found through forms."""
        found: set[Value] = set()
        for instruction in walk(block):
            for operand in instruction.operands:
                found.update(self.form(operand).terms)
                found.update(self.depends(operand))
        return frozenset(found)

    def _see_through(self, instruction: Instruction) -> None:
        match instruction:
            case Constant(literal, result) if result.dtype == INDEX:
                self._forms[result] = Affine(constant=int(literal))
            case Apply("add", (lhs, rhs), _, result) if result.dtype == INDEX:
                self._forms[result] = self.form(lhs) + self.form(rhs)
            case Apply("subtract", (lhs, rhs), _, result) if result.dtype == INDEX:
                self._forms[result] = self.form(lhs) + self.form(rhs) * -1
            case Apply("multiply", (lhs, rhs), _, result) if result.dtype == INDEX:
                for factor, other in ((lhs, rhs), (rhs, lhs)):
                    if not self.form(factor).terms:
                        self._forms[result] = self.form(other) * self.form(factor).constant
                        return

    def _note_uses(self, instruction: Instruction) -> None:
        match instruction:
            case Load():
                pass
            case Store(_, value, _):
                self._escape(value)
            case _ if not self.is_affine(instruction):
                for operand in instruction.operands:
                    self._escape(operand)

    def _escape(self, value: Value) -> None:
        self.escaping.update(self.form(value).terms)

    def _results(self, instruction: Instruction) -> None:
        depends = self._union(instruction.operands)
        for nested in instruction.blocks:
            depends |= self._reads(nested) | self._union(nested.yields)
        for result in instruction.results:
            self._depends[result] = depends

    def _union(self, values: Sequence[Value]) -> frozenset[Value]:
        return frozenset().union(*(self.depends(value) for value in values))


def accesses(block: Block) -> Iterator[Load | Store]:
    """All loads and stores in `block`, nested ones included."""
    return (instruction for instruction in walk(block) if isinstance(instruction, Load | Store))


def holds(block: Block, *kinds: type[Instruction]) -> bool:
    """Whether an instruction of one of `kinds` occurs in `block`."""
    return any(isinstance(instruction, kinds) for instruction in walk(block))
