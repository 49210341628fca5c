"""The largest or smallest of many floats. A NaN among them is the result, and -0 is less than 0, which takes several
instructions for each pair on most processors. Over a loop it takes fewer, if what a plain comparison finds, the signs
and the NaNs are accumulated side by side, and combined to one number after the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, I32, I64, Code, element
from trivium.backends.llvm.narrow import rounded, widened

PARTS = 3
"""What is accumulated for each result: the extreme so far, the sign bits joined, and a NaN if there was one."""


@dataclass(frozen=True)
class Extremes:
    """A loop that folds each of its values by `maximum` or `minimum`. What it accumulates is in the form in which
    operations compute with the values' types."""

    operations: tuple[str, ...]
    dtypes: tuple[str, ...]

    def begin(self, code: Code, neutrals: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns what is accumulated before the loop, from the identities of the operations."""
        parts: list[ll.Value] = []
        for operation, neutral in zip(self.operations, self._widened(code, neutrals), strict=True):
            bits = code.bits(neutral, I64 if element(neutral.type) == F64 else I32)
            parts += [neutral, code.like(bits, -1 if operation == "maximum" else 0), code.like(neutral, 0.0)]
        return parts

    def fold(self, code: Code, parts: Sequence[ll.Value], terms: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns what is accumulated after one more number for each result."""
        others: list[ll.Value] = []
        for number, term in enumerate(self._widened(code, terms)):
            others += [term, code.bits(term, element(parts[PARTS * number + 1].type)), term]
        return self.join(code, parts, others)

    def join(self, code: Code, parts: Sequence[ll.Value], others: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns what two loops have accumulated together."""
        found: list[ll.Value] = []
        for number, operation in enumerate(self.operations):
            this, other = (values[PARTS * number : PARTS * (number + 1)] for values in (parts, others))
            relation, join = (">", code.both) if operation == "maximum" else ("<", code.either)
            better = code.select(code.compare(relation, other[0], this[0]), other[0], this[0])
            found += [better, join(this[1], other[1]), code.select(code.is_nan(other[2]), other[2], this[2])]
        return found

    def end(self, code: Code, parts: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns the results. That of zeros is negative if all signs are (`maximum`), or one of them (`minimum`)."""
        found: list[ll.Value] = []
        for number, dtype in enumerate(self.dtypes):
            extreme, signs, nan = parts[PARTS * number : PARTS * (number + 1)]
            zero = code.copysign(code.like(extreme, 0.0), code.bits(signs, element(extreme.type)))
            result = code.select(code.compare("==", extreme, 0.0), zero, extreme)
            found.append(rounded(code, code.select(code.is_nan(nan), nan, result), dtype))
        return found

    def _widened(self, code: Code, values: Sequence[ll.Value]) -> list[ll.Value]:
        return [widened(code, value, dtype) for value, dtype in zip(values, self.dtypes, strict=True)]
