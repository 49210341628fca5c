"""The symbolic sizes of an exported program, as extents of its inputs: PyTorch states every shape as an expression in
symbols, and here such an expression becomes ops of the program, or a number where the symbols are numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TypeVar

import sympy
import torch
from torch.utils._sympy import functions

from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.extents import Extent, Size, chosen, divided, is_sized, larger, scalar_of, smaller
from trivium.importers.pytorch.types import element_type_of
from trivium.ir import ops
from trivium.ir.core import Block, Value
from trivium.ir.declare import Op
from trivium.ir.errors import UnsupportedOpError
from trivium.ir.known import evaluate_known
from trivium.ir.types import F64, I1, I64, TensorType

Folded = TypeVar("Folded")

COMPARED = {
    sympy.Eq: "EQ",
    sympy.Ne: "NE",
    sympy.StrictLessThan: "LT",
    sympy.LessThan: "LE",
    sympy.StrictGreaterThan: "GT",
    sympy.GreaterThan: "GE",
}


def symbolic(given: object) -> sympy.Basic | None:
    """Returns the expression of a size, or of a condition on sizes, that is no number; otherwise `None`."""
    if not isinstance(given, torch.SymInt | torch.SymBool | torch.SymFloat):
        return None
    expression = given.node.expr
    return expression if expression.free_symbols else None


def expression_of(size: int | torch.SymInt) -> sympy.Basic:
    """Returns a size or a stride as an expression, which may be a number."""
    expression = symbolic(size)
    return sympy.Integer(int(size)) if expression is None else expression


def without_limits(stride: sympy.Basic) -> sympy.Basic:
    """Returns a stride as it is where there are elements: PyTorch computes strides with at least one element in each
    dimension."""

    def is_limited(part: sympy.Basic) -> bool:
        return isinstance(part, sympy.Max | functions.Max) and 1 in part.args

    return stride.replace(is_limited, lambda part: functions.Max(*(set(part.args) - {sympy.Integer(1)})))


def has_symbols(meta: object) -> bool:
    """Whether a description of a node has sizes that are no numbers."""
    if isinstance(meta, list | tuple):
        return any(map(has_symbols, meta))
    listed = meta.shape if isinstance(meta, torch.Tensor) else (meta,)
    return any(symbolic(entry) is not None for entry in listed)


class Symbols:
    """What is known of the symbols: `values` has a number, or a size of the program, for each."""

    def __init__(self, values: Mapping[sympy.Basic, Extent] | None = None):
        self.values: dict[sympy.Basic, Extent] = dict(values or {})
        self._made: dict[tuple[Block, sympy.Basic], Extent] = {}

    def type_of(self, tensor: torch.Tensor) -> TensorType:
        """Returns the type of a tensor, in which sizes of the program are open."""
        return TensorType(tuple(map(self.known, tensor.shape)), element_type_of(tensor.dtype))

    def known(self, given: int | torch.SymInt) -> int | None:
        """Returns a size if it is a number."""
        expression = symbolic(given)
        if expression is None:
            return int(given)
        pinned = {symbol: value for symbol, value in self.values.items() if isinstance(value, int)}
        found = expression.subs(pinned)
        return int(found) if found.is_number else None

    def extent(self, emit: DynamicEmitter, given: int | torch.SymInt) -> Extent:
        """Returns a size as an extent."""
        number = self.known(given)
        return self.evaluate(emit, symbolic(given)) if number is None else number

    def is_unknown(self, given: int | torch.SymInt) -> bool:
        """Whether a size depends on elements of tensors in a way that PyTorch does not state."""
        expression = symbolic(given)
        return isinstance(expression, sympy.Symbol) and expression not in self.values

    def state(self, given: int | torch.SymInt, extent: Extent) -> None:
        """Lets a size that is unknown stand for an extent."""
        expression = symbolic(given)
        if expression is not None and self.is_unknown(given):
            self.values[expression] = extent

    def bind(self, emit: DynamicEmitter, result: object, meta: object) -> None:
        """Lets symbols that first appear in the description of a result stand for its extents, or for itself: elements
        of tensors decide them."""
        if isinstance(meta, torch.SymInt) and isinstance(result, Size):
            self.values.setdefault(meta.node.expr, result)
        elif isinstance(meta, torch.Tensor) and isinstance(result, Value):
            for dimension, extent in enumerate(meta.shape):
                expression = symbolic(extent)
                if isinstance(expression, sympy.Symbol) and expression not in self.values:
                    self.values[expression] = emit.extent(result, dimension)

    def evaluate(self, emit: DynamicEmitter, expression: sympy.Basic | None) -> Extent:
        """Returns the value of an expression of integers."""
        assert expression is not None
        key = emit.block, expression
        if key not in self._made:
            self._made[key] = self._evaluated(emit, expression)
        return self._made[key]

    def _evaluated(self, emit: DynamicEmitter, expression: sympy.Basic) -> Extent:
        if expression.is_Integer:
            return int(expression)  # type: ignore[arg-type]
        if expression in self.values:
            return self.values[expression]
        if type(expression) in ROUNDED:
            rounded = ROUNDED[type(expression)](self.float_of(emit, expression.args[0]))
            return Size(emit, emit.convert(emit.add(rounded), I64))
        if isinstance(expression, sympy.Piecewise):
            return self._chosen(emit, expression)
        rule = EVALUATED.get(type(expression))
        if rule is None or not expression.args:
            raise UnsupportedOpError(f"the size {expression} cannot be computed from the sizes of inputs with integers")
        return rule(emit, *(self.evaluate(emit, part) for part in expression.args))

    def _chosen(self, emit: DynamicEmitter, expression: sympy.Piecewise) -> Extent:
        """Returns the first of several values whose condition holds; the last one's is true."""
        *pairs, (found, _) = expression.args
        extent = self.evaluate(emit, found)
        for value, condition in reversed(pairs):
            holds, value = self.condition(emit, condition), self.evaluate(emit, value)
            if isinstance(holds, bool):
                extent = value if holds else extent
            else:
                chosen = emit.add(ops.Select(holds, scalar_of(emit, value), scalar_of(emit, extent)))
                extent = Size(emit, chosen, is_sized(value) and is_sized(extent))
        return extent

    def float_of(self, emit: DynamicEmitter, expression: sympy.Basic) -> Value:
        """Returns the value of an expression of floats, as a 0-d f64."""
        if expression.is_number:
            return emit.scalar(float(expression), F64)  # type: ignore[arg-type]
        if isinstance(expression, functions.ToFloat) or expression.is_integer:
            (inner,) = expression.args if isinstance(expression, functions.ToFloat) else (expression,)
            return emit.convert(scalar_of(emit, self.evaluate(emit, inner)), F64)
        rule = OF_FLOATS.get(type(expression))
        if rule is None:
            raise UnsupportedOpError(f"the number {expression} cannot be computed from the sizes of inputs")
        return reduce(lambda a, b: emit.binary(rule, a, b), [self.float_of(emit, part) for part in expression.args])

    def condition(self, emit: DynamicEmitter, expression: sympy.Basic) -> Value | bool:
        """Returns whether a condition on sizes holds."""
        if expression in (sympy.true, sympy.false):
            return bool(expression)
        if isinstance(expression, sympy.Not):
            held = self.condition(emit, expression.args[0])
            return not held if isinstance(held, bool) else emit.add(ops.Not(held))
        if isinstance(expression, sympy.And | sympy.Or):
            joined = ops.And if isinstance(expression, sympy.And) else ops.Or
            parts = [self.condition(emit, part) for part in expression.args]
            if all(isinstance(part, bool) for part in parts):
                return all(parts) if joined is ops.And else any(parts)
            values = [part if isinstance(part, Value) else emit.scalar(part, I1) for part in parts]
            return reduce(lambda a, b: emit.add(joined(a, b)), values)
        if type(expression) not in COMPARED:
            raise UnsupportedOpError(f"the condition {expression} on sizes is not supported")
        if any(side.has(functions.ToFloat) and not side.is_integer for side in expression.args):
            sides = (self.float_of(emit, side) for side in expression.args)
            held = emit.compare(COMPARED[type(expression)], *sides)
            return held if (known := evaluate_known(held)) is None else bool(known)
        a, b = (self.evaluate(emit, side) for side in expression.args)
        if isinstance(a, int) and isinstance(b, int):
            return bool(type(expression)(a, b))
        return emit.compare(COMPARED[type(expression)], scalar_of(emit, a), scalar_of(emit, b))


def _power(emit: DynamicEmitter, base: Extent, exponent: Extent) -> Extent:
    if not isinstance(exponent, int) or not 0 <= exponent <= 64:
        raise UnsupportedOpError(f"a size has the exponent {exponent}, expected a number from 0 to 64")
    found: Extent = 1
    for _ in range(exponent):
        found = base * found
    return found


def _quotient(emit: DynamicEmitter, a: Extent, b: Extent) -> Extent:
    """Returns a quotient rounded down. Numbers that depend on elements of tensors may be negative."""
    if isinstance(b, int) and (isinstance(a, int) or b > 0):
        return a // b
    found = divided(emit, a, b)
    if is_sized(a) and is_sized(b):
        return found
    return chosen(emit, "LT", (a - b * found) * b, 0, found - 1, found)


def _remainder(emit: DynamicEmitter, a: Extent, b: Extent) -> Extent:
    return a - b * _quotient(emit, a, b)


def _folded(function: Callable[[DynamicEmitter, Extent, Extent], Extent]) -> Callable[..., Extent]:
    return lambda emit, *operands: reduce(lambda a, b: function(emit, a, b), operands)


EVALUATED: dict[type, Callable[..., Extent]] = {
    sympy.Add: lambda emit, *operands: reduce(operator.add, operands),
    sympy.Mul: lambda emit, *operands: reduce(operator.mul, operands),
    sympy.Pow: _power,
    functions.PowByNatural: _power,
    **dict.fromkeys((functions.FloorDiv, functions.CleanDiv), _quotient),
    functions.CeilDiv: lambda emit, a, b: -_quotient(emit, -a, b),
    **dict.fromkeys((functions.Mod, functions.PythonMod, sympy.Mod), _remainder),
    **dict.fromkeys((functions.Max, sympy.Max), _folded(larger)),
    **dict.fromkeys((functions.Min, sympy.Min), _folded(smaller)),
}
"""How functions of sizes are computed."""

OF_FLOATS = {
    sympy.Add: ops.Add,
    sympy.Mul: ops.Multiply,
    **dict.fromkeys((functions.FloatPow, sympy.Pow), ops.Power),
    **dict.fromkeys((functions.FloatTrueDiv, functions.IntTrueDiv), ops.Divide),
}
"""How functions of floats are computed."""

ROUNDED: dict[type, Callable[[Value], Op]] = {
    functions.TruncToInt: lambda x: ops.Convert(x, result=x.type.with_element(I64)),
    functions.FloorToInt: ops.Floor,
    functions.CeilToInt: ops.Ceil,
    functions.RoundToInt: ops.RoundNearestEven,
}
"""How a float becomes a size."""
