"""Identities of elementwise ops. For floats, only those that hold for every value: neither `x + 0 == x` (-0 + 0 is +0),
nor `x * 0 == 0` (NaN), nor `x - x == 0` (infinity)."""

from __future__ import annotations

import numpy as np

from trivium.compiler.passes.patterns.matching import constant, is_commutative, is_integer, is_splat_of, splat
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.ops import (
    Add,
    And,
    Clamp,
    Compare,
    Convert,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Negate,
    Not,
    Or,
    Power,
    Select,
    Subtract,
    Xor,
)
from trivium.ir.types import is_complex

ARITHMETIC = PatternSet()
pattern = ARITHMETIC.pattern


@pattern(Add, Multiply, And, Or, Xor, Maximum, Minimum)
def constant_to_the_right(op):
    """c + x == x + c"""
    if is_commutative(op) and splat(op.lhs) is not None and splat(op.rhs) is None:
        return type(op)(op.rhs, op.lhs, extra=op.extra)
    return None


@pattern(Add)
def add_zero(op):
    """x + 0 == x   (floats: only for -0.0)"""
    return op.lhs if is_splat_of(op.rhs, 0 if is_integer(op.rhs) else -0.0) else None


@pattern(Subtract)
def subtract_zero(op):
    """x - 0 == x   (floats: only for +0.0)"""
    return op.lhs if is_splat_of(op.rhs, 0) else None


@pattern(Multiply, Divide)
def times_one(op):
    """x * 1 == x, x / 1 == x   (complex products make NaN of infinities)"""
    return op.lhs if is_splat_of(op.rhs, 1) and not is_complex(op.lhs.type.element_type) else None


@pattern(Multiply)
def integer_times_zero(op):
    """x * 0 == 0   (integers)"""
    return op.rhs if is_integer(op.rhs) and is_splat_of(op.rhs, 0) else None


@pattern(Maximum, Minimum)
def extreme_of_the_least(op):
    """max(x, -inf) == x, min(x, inf) == x   (not complex numbers, of which many are as small as -inf)"""
    if is_complex(op.lhs.type.element_type):
        return None
    return op.lhs if is_splat_of(op.rhs, -np.inf if isinstance(op, Maximum) else np.inf) else None


@pattern(Power)
def power_one(op):
    """x ** 1 == x"""
    return op.lhs if is_splat_of(op.rhs, 1) and not is_complex(op.lhs.type.element_type) else None


@pattern(Power)
def power_two(op):
    """x ** 2 == x * x   (floats: one rounding either way)"""
    real = not is_complex(op.lhs.type.element_type)
    return Multiply(op.lhs, op.lhs) if real and is_splat_of(op.rhs, 2) else None


@pattern(Negate, Not)
def involution(op):
    """-(-x) == x, not not x == x"""
    inner = op.operand.defining_op
    return inner.operand if type(inner) is type(op) else None


@pattern(And, Or)
def idempotent(op):
    """x and x == x, x or x == x"""
    return op.lhs if op.lhs is op.rhs else None


@pattern(And)
def and_constant(op):
    """x and true == x, x and false == false   (booleans)"""
    if op.lhs.type.dtype.kind != "b":
        return None
    return op.lhs if is_splat_of(op.rhs, 1) else op.rhs if is_splat_of(op.rhs, 0) else None


@pattern(Or)
def or_constant(op):
    """x or false == x, x or true == true   (booleans)"""
    if op.lhs.type.dtype.kind != "b":
        return None
    return op.lhs if is_splat_of(op.rhs, 0) else op.rhs if is_splat_of(op.rhs, 1) else None


@pattern(Convert)
def convert_to_itself(op):
    """convert(x : T) to T == x"""
    return op.operand if op.operand.type is op.result.type else None


@pattern(Select)
def select_constant(op):
    """select(true, x, y) == x, select(false, x, y) == y, select(p, x, x) == x"""
    if op.on_true is op.on_false:
        return op.on_true if op.on_true.type is op.result.type else None
    if is_splat_of(op.pred, 1):
        return op.on_true if op.on_true.type is op.result.type else None
    if is_splat_of(op.pred, 0):
        return op.on_false if op.on_false.type is op.result.type else None
    return None


@pattern(Select)
def select_not(op):
    """select(not p, x, y) == select(p, y, x)"""
    inner = op.pred.defining_op
    return Select(inner.operand, op.on_false, op.on_true, result=op.result.type) if isinstance(inner, Not) else None


@pattern(Clamp)
def clamp_constants(op):
    """clamp(a, clamp(a, x, b), b) == clamp(a, x, b)   (constants)"""
    inner = op.operand.defining_op
    if not isinstance(inner, Clamp):
        return None
    bounds = [constant(value) for value in (op.min, op.max)]
    theirs = [constant(value) for value in (inner.min, inner.max)]
    same = all(
        mine is not None and other is not None and mine.shape == other.shape and mine.tobytes() == other.tobytes()
        for mine, other in zip(bounds, theirs, strict=True)
    )
    return op.operand if same and op.operand.type is op.result.type else None


@pattern(Compare)
def compare_converted_boolean(op):
    """convert(b) != 0 == b   (booleans)"""
    inner = op.lhs.defining_op
    if op.comparison_direction.value != "NE" or not isinstance(inner, Convert) or not is_splat_of(op.rhs, 0):
        return None
    return inner.operand if inner.operand.type is op.result.type else None
