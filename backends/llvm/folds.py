"""How loops fold their terms: by the name of an associative operation, or by a block. Sums of products add each product
with one rounding where the processor can, and of floats of which only the largest or smallest is kept, parts are
accumulated side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import llvmlite.ir as ll
import ml_dtypes
import numpy as np

from trivium.backends.llvm.apply import combine
from trivium.backends.llvm.extremes import Extremes
from trivium.backends.llvm.narrow import constant, is_narrow
from trivium.compiler.kernel.dtypes import FLOATS, SIGNED, DType, bit_width, numpy_dtype
from trivium.compiler.kernel.ops import OPERATIONS
from trivium.compiler.kernel.structure import Apply, Block, Loop, Register, walk

if TYPE_CHECKING:
    from trivium.backends.llvm.emitter import Emitter

Values = list[ll.Value]

FEW = 4
"""The number of terms below which accumulating the parts of extremes costs more than it saves."""


class Folding:
    """Folds the terms of a reduction one after the other: in each lane on its own, if its body is in lanes."""

    def __init__(self, emitter: Emitter, loop: Loop, terms: int) -> None:
        self._emitter, self._loop = emitter, loop
        self._extremes = extremes_of(loop, together=False) if terms >= FEW else None

    def begin(self) -> Values:
        """Returns what is accumulated before the first term."""
        inits = self._spread([self._emitter.value(init) for init in self._loop.inits])
        if self._extremes is None:
            return inits
        neutrals = self._extremes.begin(self._emitter.code, self._spread(starts(self._emitter, self._loop)))
        return self._extremes.fold(self._emitter.code, neutrals, inits)

    def add(self, accumulated: Values, terms: Values) -> Values:
        """Returns what is accumulated after one more term for each result."""
        if self._extremes is None:
            return fold(self._emitter, self._loop, accumulated, self._spread(terms))
        return self._extremes.fold(self._emitter.code, accumulated, self._spread(terms))

    def end(self, accumulated: Values) -> Values:
        """Returns the results."""
        return accumulated if self._extremes is None else self._extremes.end(self._emitter.code, accumulated)

    def _spread(self, values: Values) -> Values:
        return [self._emitter.code.splat(value, self._emitter.lanes) for value in values]


def fold(emitter: Emitter, loop: Loop, accumulated: Values, terms: Values) -> Values:
    """The reduction's combiner."""
    assert loop.combiner is not None, "a reduction has a combiner"
    if loop in emitter.sums_of_products and emitter.code.target.fma:
        pairs = zip(loop.inits, accumulated, terms, strict=True)
        return [_with_product(emitter, init.dtype, total, term) for init, total, term in pairs]
    return combined(emitter, loop.combiner, accumulated, terms, [init.dtype for init in loop.inits])


def _with_product(emitter: Emitter, dtype: DType, total: ll.Value, term: ll.Value) -> ll.Value:
    """Returns `total` + `term`, with one rounding if the term is a product."""
    if isinstance(term, ll.Instruction) and term.opname == "fmul" and term.type == total.type:
        left, right = term.operands
        return emitter.code.fused(left, right, total)
    total, term = emitter.same_shape([total, term])
    return combine(emitter.code, "add", dtype, total, term)


def combined(
    emitter: Emitter, combiner: str | Block, accumulated: Values, terms: Values, dtypes: Sequence[DType]
) -> Values:
    """Returns the combiner's results for accumulated values and terms."""
    if isinstance(combiner, str):
        pairs = zip(dtypes, accumulated, terms, strict=True)
        return [combine(emitter.code, combiner, dtype, *emitter.same_shape(pair)) for dtype, *pair in pairs]
    with emitter.scope():
        emitter.values.update(zip(combiner.parameters, [*accumulated, *terms], strict=True))
        return emitter.same_shape(emitter.block(combiner)) if len(accumulated) else []


def starts(emitter: Emitter, loop: Loop) -> Values:
    """Returns the initial values of each lane: the identity of what folds each value, if it is known and the type has
    it; otherwise the init, which is then folded in more than once."""
    pairs = zip(_operations(loop), loop.inits, strict=True)
    identities = [name and identity(name, init.dtype) for name, init in pairs]
    pairs = zip(identities, loop.inits, strict=True)
    return [emitter.value(init) if identity is None else identity for identity, init in pairs]


def extremes_of(loop: Loop, together: bool) -> Extremes | None:
    """Returns how to fold floats of which the loop only keeps the largest or smallest; `together`: of all lanes."""
    names = _operations(loop) if loop.kind == "reduction" else []
    extremes = tuple(name for name in names if name in ("maximum", "minimum"))
    dtypes = tuple(init.dtype for init in loop.inits)
    if not extremes or len(extremes) < len(names) or not FLOATS.issuperset(dtypes):
        return None
    return Extremes(extremes, dtypes, together)


def _operations(loop: Loop) -> list[str | None]:
    """Returns for each value the associative operation that folds it, separately from the others; None if it is folded
    in another way."""
    if isinstance(loop.combiner, str):
        return [loop.combiner] * len(loop.inits)
    assert loop.combiner is not None, "a reduction has a combiner"
    block = loop.combiner
    made = {i.result: i for i in block.instructions if isinstance(i, Apply)}
    uses = Counter(operand for instruction in walk(block) for operand in instruction.operands)
    uses.update(block.yields)
    pairs = zip(block.parameters, block.parameters[len(loop.inits) :], block.yields, strict=False)
    return [_separate(made.get(result), accumulated, term, uses) for accumulated, term, result in pairs]


def _separate(fold: Apply | None, accumulated: Register, term: Register, uses: Mapping[Register, int]) -> str | None:
    """Returns the name of an associative operation that is all that uses an accumulated value and a term."""
    if fold is None or set(fold.arguments) != {accumulated, term} or uses[accumulated] + uses[term] > 2:
        return None
    operation = OPERATIONS.get(fold.op)  # comparisons are not included
    return fold.op if operation is not None and operation.associative else None


def identity(operation: str, dtype: str) -> ll.Value | None:
    """Returns the identity of an operation. None if the type cannot represent it: one float has no zero."""
    smallest, largest = _range(dtype)
    ones = 1 if dtype == "i1" else -1
    numbers = {"add": -0.0, "multiply": 1, "maximum": smallest, "minimum": largest, "and": ones, "or": 0, "xor": 0}
    number = numbers[operation]
    if is_narrow(dtype) and np.array(number).astype(numpy_dtype(dtype)) != number:
        return None
    return constant(dtype, number)


def _range(dtype: str) -> tuple[float, float]:
    """Returns the smallest and the largest number of a type: the infinities, if it has them."""
    if dtype not in FLOATS:
        bits = bit_width(dtype)
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype in SIGNED else (0, (1 << bits) - 1)
    type_ = numpy_dtype(dtype)
    if np.isinf(np.array(np.inf).astype(type_)):
        return -math.inf, math.inf
    return float(ml_dtypes.finfo(type_).min), float(ml_dtypes.finfo(type_).max)
