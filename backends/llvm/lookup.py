"""Tables of a few numbers that are in vector registers: each lane selects one by the low bits of an integer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import llvmlite.ir as ll

from trivium.backends.llvm.code import F32, Code, Literal, literal
from trivium.backends.llvm.whole_vectors import applied

SIZE = 16
"""The numbers in a table, and the lanes of the instruction."""
SHORT = 8
"""The same on processors with vectors half as wide."""
INSTRUCTIONS = {SIZE: "llvm.x86.avx512.permvar.sf.512", SHORT: "llvm.x86.avx2.permps"}


def is_possible(code: Code, size: int = SIZE) -> bool:
    """Whether the target has the instruction for tables of `size` numbers."""
    return code.target.looks_up >= size


def rows(code: Code, tables: Sequence[Sequence[float]], index: ll.Value) -> Iterator[ll.Value]:
    """Returns, for each table of f32, the numbers that `index` selects: one, or one for each lane."""
    return (_row(code, table, index) for table in tables)


def _row(code: Code, table: Sequence[float], index: ll.Value) -> ll.Value:
    vector = ll.VectorType(F32, len(table))
    numbers = Literal(vector, f"<{', '.join(f'float {literal(F32, number).constant}' for number in table)}>")

    def select(places: ll.Value) -> ll.Value:
        return code.call(INSTRUCTIONS[len(table)], vector, numbers, places)

    return applied(code, len(table), select, index)
