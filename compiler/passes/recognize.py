"""Recognizes ops that are written out: portable artifacts have no CHLO, so JAX passes `chlo.erfc` and `chlo.erf_inv` as
the 60 and 40 ops into which StableHLO's own pass expands them. They become these ops again, which backends compute
faster and with a smaller error. Only these exact expansions are recognized, with all of their coefficients. JAX also
composes the normal distribution of `erf` and `erfc`, of which `erfc` alone is as accurate."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.passes.decompositions.table import Unplaced
from trivium.compiler.passes.manager import Pass
from trivium.compiler.passes.patterns.matching import is_splat_of, splat
from trivium.compiler.passes.rewriting import PatternSet, rewrite_to_fixpoint
from trivium.ir.core import Block, Operation, Value
from trivium.ir.decompositions.tensors import Scope, Tensor, exp, log1p, polynomial, sqrt, where
from trivium.ir.func import Module
from trivium.ir.ops import Abs, Add, Compare, ComparisonDirection, Erf, Erfc, ErfInv, Negate, Select, Subtract
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
INVERSE_CENTRE = (
    2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 2.1858087e-4, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)  # fmt: skip
INVERSE_TAIL = (
    -2.00214257e-4, 1.00950558e-4, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
    1.00167406, 2.83297682,
)  # fmt: skip
"""Those of M. Giles, Approximating the erfinv function, 2010"""

ROUNDED = 2.0**-8
"""The relative error of a number of bf16."""
Expansion = tuple[Value, Value]
"""The argument and the result of ops that are written out."""

EXPANSIONS = PatternSet()


@dataclass(frozen=True)
class Recognize(Pass):
    """Afterwards, no expansion of `chlo.erfc` or `chlo.erf_inv` in f32 is left."""

    NAME: ClassVar[str] = "recognize"

    def run(self, module: Module) -> bool:
        return rewrite_to_fixpoint(module, EXPANSIONS)


@EXPANSIONS.pattern(Select)
def erfc(op: Select) -> Operation | None:
    """select(|x| < 1, 1 - erf(x), ...) == erfc(x), as StableHLO expands it"""
    return _recognized(op, ComparisonDirection.LT, _expanded_erfc, Erfc)


@EXPANSIONS.pattern(Select)
def erf_inv(op: Select) -> Operation | None:
    """select(|x| == 1, x * inf, ...) == erf_inv(x), as StableHLO expands it"""
    return _recognized(op, ComparisonDirection.EQ, _expanded_erf_inv, ErfInv)


@EXPANSIONS.pattern(Select)
def normal_distribution(op: Select) -> Operation | None:
    """select(|x| < sqrt(1/2), 1 + erf(x), select(x > 0, 2 - erfc(|x|), erfc(|x|))) == erfc(-x), as JAX writes it"""
    near, test, far = op.on_true.defining_op, op.pred.defining_op, op.on_false.defining_op
    if not isinstance(near, Add) or not isinstance(test, Compare) or not isinstance(far, Select):
        return None
    erf, magnitude, side = near.rhs.defining_op, test.lhs.defining_op, far.pred.defining_op
    above, below = far.on_true.defining_op, far.on_false.defining_op
    if not isinstance(erf, Erf) or not isinstance(magnitude, Abs) or not isinstance(side, Compare):
        return None
    if not isinstance(above, Subtract) or not isinstance(below, Erfc) or not isinstance(above.rhs.defining_op, Erfc):
        return None
    directions = test.comparison_direction, side.comparison_direction
    numbers = (near.lhs, 1.0), (side.rhs, 0.0), (above.lhs, 2.0)
    x, tails = erf.operand, (below, above.rhs.defining_op)
    bound = splat(test.rhs)
    fits = directions == (ComparisonDirection.LT, ComparisonDirection.GT)
    fits &= bound is not None and math.isclose(bound, math.sqrt(0.5), rel_tol=ROUNDED)
    fits &= all(is_splat_of(*pair) for pair in numbers) and magnitude.operand is x and side.lhs is x
    fits &= all(tail.operand is test.lhs for tail in tails)
    return Erfc(Negate(x).result) if fits else None


def _recognized(
    op: Select, direction: ComparisonDirection, expand: Callable[[TensorType], Expansion], kind: type[Erfc | ErfInv]
) -> Operation | None:
    """Returns the op of a kind whose expansion `op` is the last one of: it selects by a comparison of |x| and 1."""
    test, type_ = op.pred.defining_op, op.result.type
    if not isinstance(test, Compare) or test.comparison_direction is not direction or not is_splat_of(test.rhs, 1.0):
        return None
    magnitude = test.lhs.defining_op
    if not isinstance(magnitude, Abs) or not type_.is_static or type_.element_type is not F32:
        return None
    argument, result = expand(type_)
    same = {(argument, magnitude.operand)}
    return kind(magnitude.operand) if _is_same(result, op.result, same) else None


@functools.cache
def _expanded_erfc(kind: TensorType) -> Expansion:
    (argument,) = Block([kind]).arguments
    x = Tensor(argument, Scope(Unplaced()))
    exponent, magnitude = -(x * x), abs(x)
    inverse = 1.0 / (x * x)
    factor = exp(exponent) * (1.0 / magnitude)
    tail = factor * where(magnitude < 2.0, polynomial(inverse, NEAR), polynomial(inverse, FAR))
    tail = where(exponent < LEAST, x.like(0.0), tail)
    tail = where(x < 0.0, 2.0 - tail, tail)
    return argument, where(magnitude < 1.0, 1.0 - x * polynomial(x * x, ERF), tail).value


@functools.cache
def _expanded_erf_inv(kind: TensorType) -> Expansion:
    (argument,) = Block([kind]).arguments
    x = Tensor(argument, Scope(Unplaced()))
    w = -log1p(x * -x)
    is_central = w < 5.0
    distance = where(is_central, w - 2.5, sqrt(w) - 3.0)
    pairs = zip(INVERSE_CENTRE, INVERSE_TAIL, strict=True)
    total, *others = (where(is_central, x.like(centre), tail) for centre, tail in pairs)
    for coefficient in others:
        total = coefficient + total * distance
    return argument, where(abs(x).equals(1.0), x * math.inf, total * x).value


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
