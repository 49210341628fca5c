"""Copies blocks: every value that the block defines is replaced by a new one; values from outside are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trivium.compiler.kernel.index import Index, Indices, Symbol, variable
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
    Target,
    Update,
    While,
)


def clone_into(
    block: Block,
    arguments: Sequence[Register],
    target: Block,
    buffers: dict[Buffer, Buffer] | None = None,
    forms: Mapping[Symbol, Index] | None = None,
) -> list[Register]:
    """Appends a copy of `block` to `target`, with its parameters bound to `arguments`, and accesses to the keys of
    `buffers` redirected to their values. `forms` are the index expressions that arguments were computed from. Returns
    the values that the copy yields."""
    copier = Copier(dict(zip(block.parameters, arguments, strict=True)), dict(buffers or {}), forms or {})
    target.instructions.extend(copier.instruction(instruction) for instruction in block.instructions)
    return copier.values(block.yields)


class Copier:
    """Copies instructions one by one. `values` are those of copied values that are known, and are used in their place,
    `forms` the index expressions that some of them were computed from; `buffers` are used in place of others."""

    def __init__(
        self, values: dict[Register, Register], buffers: dict[Buffer, Buffer], forms: Mapping[Symbol, Index]
    ) -> None:
        self._values = values
        self._buffers = buffers
        self._forms = forms

    def values(self, values: Sequence[Register]) -> list[Register]:
        """Returns what copies use in place of values."""
        return [self._values.get(value, value) for value in values]

    def bind(self, values: Sequence[Register], copies: Sequence[Register]) -> None:
        """Lets later copies use `copies` in place of `values`."""
        self._values.update(zip(values, copies, strict=True))

    def instruction(self, instruction: Instruction) -> Instruction:
        """Returns a copy, with new results."""
        copy = self._copy(instruction)
        copy.origins = instruction.origins
        copy.copied = instruction
        return copy

    def _copy(self, instruction: Instruction) -> Instruction:
        match instruction:
            case Constant(literal, result):
                return Constant(literal, self._fresh(result))
            case Apply(op, arguments, attributes, result):
                return Apply(op, tuple(self.values(arguments)), attributes, self._fresh(result))
            case Position(index, result):
                return Position(self._index(index), self._fresh(result))
            case Load(buffer, indices, result):
                return Load(self._buffer(buffer), self._indices(indices), self._fresh(result))
            case Store(buffer, value, indices):
                return Store(self._buffer(buffer), self._values.get(value, value), self._indices(indices))
            case Update():
                return self._update(instruction)
            case SortKeys(buffer, indices, count):
                return SortKeys(self._buffer(buffer), self._indices(indices), count)
            case Scratch(buffer):
                self._buffers[buffer] = replace(buffer)
                return Scratch(self._buffers[buffer])
            case Loop():
                return self._loop(instruction)
            case If(condition, then, otherwise, outcomes):
                blocks = self._block(then), self._block(otherwise)
                return If(self._values.get(condition, condition), *blocks, self.fresh(outcomes))
            case While(inits, condition, body, outcomes):
                inits = tuple(self.values(inits))
                return While(inits, self._block(condition), self._block(body), self.fresh(outcomes))
        raise AssertionError(f"unknown instruction {type(instruction).__name__}")

    def _update(self, update: Update) -> Update:
        targets = tuple(Target(self._buffer(t.buffer), self._indices(t.indices)) for t in update.targets)
        combiner = self._block(update.combiner) if isinstance(update.combiner, Block) else update.combiner
        return Update(targets, tuple(self.values(update.values)), combiner)

    def _indices(self, indices: Indices) -> Indices:
        return tuple(map(self._index, indices))

    def _index(self, index: Index) -> Index:
        def place(symbol: Symbol) -> Index | None:
            value = self._values.get(symbol)  # type: ignore[call-overload]
            return None if value is None else self._forms.get(value) or variable(value)

        return index.replace(place)

    def _loop(self, loop: Loop) -> Loop:
        extents = tuple(self._values.get(e, e) if isinstance(e, Register) else e for e in loop.extents)
        inits = tuple(self.values(loop.inits))
        combiner = self._block(loop.combiner) if isinstance(loop.combiner, Block) else loop.combiner
        ends = tuple(replace(end, extent=self._buffer(end.extent)) for end in loop.ends)
        return Loop(loop.kind, extents, self._block(loop.body), inits, combiner, self.fresh(loop.carried), ends)

    def _block(self, block: Block) -> Block:
        parameters = list(self.fresh(block.parameters))
        instructions = [self.instruction(instruction) for instruction in block.instructions]
        return Block(parameters, instructions, self.values(block.yields))

    def _fresh(self, value: Register) -> Register:
        self._values[value] = Register(value.dtype)
        return self._values[value]

    def fresh(self, values: Sequence[Register]) -> tuple[Register, ...]:
        """Returns new values, which later copies use in place of `values`."""
        return tuple(self._fresh(value) for value in values)

    def _buffer(self, buffer: Buffer) -> Buffer:
        return self._buffers.get(buffer, buffer)
