"""Prints kernels as readable text, one instruction per line. With canonical names, equal kernels have equal texts."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trivium.compiler.kernel.contraction import Contraction
from trivium.compiler.kernel.index import Atom, Index, Indices, Quotient, Remainder
from trivium.compiler.kernel.structure import (
    Apply,
    Block,
    Buffer,
    Constant,
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
)

if TYPE_CHECKING:
    from trivium.compiler.kernel.kernel import Kernel


def print_kernel(kernel: Kernel) -> str:
    """Returns the kernel as text."""
    printer = _Printer({buffer: buffer.name for buffer in kernel.params})
    return "\n".join(printer.kernel(kernel))


def printed(kernel: Kernel) -> tuple[list[str], dict[Instruction, range]]:
    """Returns the lines of the kernel's text, and the numbers of those of each instruction."""
    printer = _Printer({buffer: buffer.name for buffer in kernel.params})
    return list(printer.kernel(kernel)), printer.lines


def digest(kernel: Kernel) -> str:
    """Returns a hash of everything except the names."""
    printer = _Printer({buffer: f"p{i}" for i, buffer in enumerate(kernel.params)})
    return hashlib.sha256("\n".join(printer.kernel(kernel, named=False)).encode()).hexdigest()


class _Printer:
    def __init__(self, buffers: dict[Buffer, str]):
        self._buffers = buffers
        self._values: dict[Register, str] = {}
        self._number = 0
        self.lines: dict[Instruction, range] = {}
        """The lines of each instruction that has been printed."""

    def kernel(self, kernel: Kernel, named: bool = True) -> Iterator[str]:
        for line in self._kernel(kernel, named):
            yield line
            self._number += 1

    def _kernel(self, kernel: Kernel, named: bool) -> Iterator[str]:
        yield f"kernel @{kernel.name} {{" if named else "kernel {"
        for buffer in kernel.params:
            yield f"  {buffer.mode} {self._declaration(buffer)}"
        yield from self._block(kernel.body, "  ")
        if kernel.contraction is not None:
            yield from self._contraction(kernel.contraction, "  ")
        if kernel.attention is not None:
            # Its loop nest says everything.
            yield "  attention"
        yield "}"

    def _contraction(self, contraction: Contraction, indent: str) -> Iterator[str]:
        yield f"{indent}contraction {contraction.describe(self._buffers)}"
        for role in ("lhs_prologue", "rhs_prologue", "epilogue"):
            block = getattr(contraction, role)
            if block is not None:
                yield f"{indent}{role} ({self._define(block.parameters)}) {{"
                yield from self._block(block, indent + "  ")
                yield f"{indent}}}"

    def _declaration(self, buffer: Buffer) -> str:
        shape = "x".join(map(str, (*buffer.shape, buffer.dtype)))
        view = (
            f" strides {list(buffer.layout)} offset {buffer.offset}"
            if buffer.strides is not None or buffer.offset
            else ""
        )
        return f"{self._buffers[buffer]}: {shape}{view}"

    def _block(self, block: Block, indent: str) -> Iterator[str]:
        for instruction in block.instructions:
            first = self._number
            yield from self._instruction(instruction, indent)
            self.lines[instruction] = range(first, self._number)
        if block.yields:
            yield f"{indent}yield {self._use(block.yields)}"

    def _instruction(self, instruction: Instruction, indent: str) -> Iterator[str]:
        match instruction:
            case Constant(literal, result):
                yield f"{indent}{self._define([result])} = {_literal(literal)} : {result.dtype}"
            case Apply(op, arguments, attributes, result):
                extra = "".join(f" {key}={value}" for key, value in attributes.items())
                operands = self._use(arguments)
                yield f"{indent}{self._define([result])} = {op} {operands}{extra} : {result.dtype}"
            case Position(index, result):
                yield f"{indent}{self._define([result])} = {self._index(index)} : {result.dtype}"
            case Load(buffer, indices, result):
                place = f"{self._buffers[buffer]}[{self._indices(indices)}]"
                yield f"{indent}{self._define([result])} = load {place} : {result.dtype}"
            case Store(buffer, value, indices):
                yield f"{indent}store {self._use([value])}, {self._buffers[buffer]}[{self._indices(indices)}]"
            case Update():
                yield from self._update(instruction, indent)
            case SortKeys(buffer, indices, count):
                yield f"{indent}sort {count} from {self._buffers[buffer]}[{self._indices(indices)}]"
            case Scratch(buffer):
                self._buffers[buffer] = (
                    f"{buffer.name}{len(self._buffers)}" if buffer.name == "scratch" else f"s{len(self._buffers)}"
                )
                yield f"{indent}scratch {self._declaration(buffer)}"
            case Loop():
                yield from self._loop(instruction, indent)
            case If(condition, then, otherwise, outcomes):
                use = self._use([condition])
                yield f"{indent}{self._results(outcomes)}if {use} {{"
                yield from self._block(then, indent + "  ")
                yield f"{indent}}} else {{"
                yield from self._block(otherwise, indent + "  ")
                yield f"{indent}}}"
            case While(inits, condition, body, outcomes):
                use = self._use(inits)
                yield f"{indent}{self._results(outcomes)}while ({self._define(condition.parameters)}) = ({use}) {{"
                yield from self._block(condition, indent + "  ")
                yield f"{indent}}} do {{"
                yield from self._block(body, indent + "  ")
                yield f"{indent}}}"

    def _loop(self, loop: Loop, indent: str) -> Iterator[str]:
        extents = ", ".join(self._use([e]) if isinstance(e, Register) else str(e) for e in loop.extents)
        inits = self._use(loop.inits)
        rank = len(loop.extents)
        results = self._results(loop.carried)
        head = f"{results}{loop.kind} ({self._define(loop.body.parameters[:rank], 'i')}) < ({extents})"
        if loop.kind == "sequential" and loop.inits:
            head += f" carry ({self._define(loop.body.parameters[rank:])}) = ({inits})"
            head += f" with {loop.combiner}" if loop.combiner else ""
        if loop.kind == "reduction":
            head += f" onto ({inits})" + (f" with {loop.combiner}" if isinstance(loop.combiner, str) else "")
        head += "".join(map(self._end, loop.ends))
        yield f"{indent}{head} {{"
        yield from self._block(loop.body, indent + "  ")
        if isinstance(loop.combiner, Block):
            yield f"{indent}}} combine ({self._define(loop.combiner.parameters)}) {{"
            yield from self._block(loop.combiner, indent + "  ")
        yield f"{indent}}}"

    def _end(self, end: End) -> str:
        place = f"#{end.dimension}//{end.step}%{end.count}"
        return f" while {place} < {self._buffers[end.extent]}"

    def _update(self, update: Update, indent: str) -> Iterator[str]:
        places = ", ".join(f"{self._buffers[t.buffer]}[{self._indices(t.indices)}]" for t in update.targets)
        named = f" by {update.combiner}" if isinstance(update.combiner, str) else ""
        head = f"{indent}update {places} with {self._use(update.values)}{named}"
        if isinstance(update.combiner, Block):
            yield f"{head} combine ({self._define(update.combiner.parameters)}) {{"
            yield from self._block(update.combiner, indent + "  ")
            yield f"{indent}}}"
        else:
            yield head

    def _indices(self, indices: Indices) -> str:
        return ", ".join(map(self._index, indices))

    def _index(self, index: Index) -> str:
        """Returns the text of an index expression, such as `i0*2 + i1 - 1`."""
        terms = [
            f"{self._atom(atom)}*{factor}" if factor != 1 else self._atom(atom) for atom, factor in index.terms.items()
        ]
        if index.offset or not terms:
            terms.append(str(index.offset))
        return " + ".join(terms).replace("+ -", "- ")

    def _atom(self, atom: Atom) -> str:
        if not isinstance(atom, Quotient | Remainder):
            return self._values.get(atom, "%undefined")  # type: ignore[arg-type]
        inner = self._index(atom.dividend)
        inner = f"({inner})" if atom.dividend.sole is None else inner
        return f"{inner}{'//' if isinstance(atom, Quotient) else '%'}{atom.divisor}"

    def _results(self, values: tuple[Register, ...]) -> str:
        return f"{self._define(values)} = " if values else ""

    def _define(self, values: list[Register] | tuple[Register, ...], prefix: str = "%") -> str:
        for value in values:
            self._values[value] = f"{prefix}{len(self._values)}"
        return self._use(values)

    def _use(self, values: list[Register] | tuple[Register, ...]) -> str:
        return ", ".join(self._values.get(value, "%undefined") for value in values)


def _literal(literal: bool | float) -> str:
    """Returns the exact text of a literal. NaNs are written as their bits, so that equal texts are equal kernels."""
    if isinstance(literal, float) and literal != literal:
        return f"nan(0x{struct.pack('>d', literal).hex()})"
    return repr(literal).lower() if isinstance(literal, bool) else repr(literal)
