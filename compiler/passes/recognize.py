"""Recognizes ops that are written out: portable artifacts have no CHLO, so JAX passes `chlo.erfc` as the 60 ops into
which StableHLO's own pass expands it. They become that op again, which backends compute faster and with a smaller
error. Only this exact expansion is recognized, with all of its coefficients."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.decompositions.table import Unplaced
from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.patterns.matching import is_splat_of, splat
from trivium.compiler.passes.rewriting import PatternSet, rewrite_to_fixpoint
from trivium.ir.core import Block, Operation, Value
from trivium.ir.decompositions.tensors import Scope, Tensor, exp, polynomial, where
from trivium.ir.func import Module
from trivium.ir.ops import Abs, Compare, Erfc, Select
from trivium.ir.types import F32, TensorType

NEAR = (
    0.0232682, -0.138703942, 0.368742466, -0.582473278, 0.621000468, -0.494451523, 0.340488, -0.274112701,
    0.563825965,
)  # fmt: skip
FAR = -10.477664, 12.9772, -7.49551868, 2.92101908, -1.01526523, 0.42184633, -0.282076746, 0.564189494
ERF = (
    7.85386146e-5, -8.0101937e-4, 0.00518832775, -0.0268538129, 0.112835854, -0.37612626, 1.12837911,
)  # fmt: skip
"""The coefficients of the expansion, which are those of the Cephes library."""
LEAST = -88.7228394

EXPANSIONS = PatternSet()


@dataclass(frozen=True)
class Recognize(Pass):
    """Afterwards, no expansion of `chlo.erfc` in f32 is left."""

    NAME: ClassVar[str] = "recognize"

    def run(self, module: Module) -> bool:
        return rewrite_to_fixpoint(module, EXPANSIONS)


@EXPANSIONS.pattern(Select)
def erfc(op: Select) -> Operation | None:
    """select(|x| < 1, 1 - erf(x), ...) == erfc(x), as StableHLO expands it"""
    test = op.pred.defining_op
    if not isinstance(test, Compare) or not is_splat_of(test.rhs, 1.0):
        return None
    magnitude, kind = test.lhs.defining_op, op.result.type
    if not isinstance(magnitude, Abs) or not kind.is_static or kind.element_type is not F32:
        return None
    argument, result = _expanded_erfc(kind)
    same = {(argument, magnitude.operand)}
    return Erfc(magnitude.operand) if _is_same(result, op.result, same) else None


@functools.cache
def _expanded_erfc(kind: TensorType) -> tuple[Value, Value]:
    """Returns the argument and the result of the expansion."""
    (argument,) = Block([kind]).arguments
    x = Tensor(argument, Scope(Unplaced()))
    exponent, magnitude = -(x * x), abs(x)
    inverse = 1.0 / (x * x)
    factor = exp(exponent) * (1.0 / magnitude)
    tail = factor * where(magnitude < 2.0, polynomial(inverse, NEAR), polynomial(inverse, FAR))
    tail = where(exponent < LEAST, x.like(0.0), tail)
    tail = where(x < 0.0, 2.0 - tail, tail)
    return argument, where(magnitude < 1.0, 1.0 - x * polynomial(x * x, ERF), tail).value


def _is_same(wanted: Value, found: Value, same: set[tuple[Value, Value]]) -> bool:
    """Whether `found` is computed by the same ops as `wanted`, given values that are."""
    if (wanted, found) in same:
        return True
    number = splat(wanted)
    if number is not None:
        return is_splat_of(found, number)
    one, other = wanted.defining_op, found.defining_op
    if one is None or other is None or type(one) is not type(other) or one.attributes != other.attributes:
        return False
    if not all(_is_same(*pair, same) for pair in zip(one.operands, other.operands, strict=True)):
        return False
    same.add((wanted, found))
    return True
