"""The vocabulary of decompositions: a `Tensor` is a value with arithmetic, whose ops are inserted by its `Scope`. A
Python number stands for a tensor of the other operand's type that is filled with the number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.builder import Builder
from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.ops import ComparisonDirection
from trivium.ir.types import I32, ComplexType, TensorType, Type, tensor

Number = float | int | bool


class Scope:
    """The place where ops are inserted. Each constant and each shape is inserted once."""

    def __init__(self, builder: Builder):
        self.builder = builder
        self._constants: dict[tuple[bytes, TensorType], Value] = {}
        self._shapes: dict[tuple[object, object], Value] = {}

    def add(self, op: Operation) -> Any:
        return self.builder.add(op)

    def constant(self, number: Number | complex, like: Value) -> Value:
        """Returns a tensor like `like`, filled with the number."""
        kind: TensorType = like.type
        key = np.asarray(number, kind.dtype).tobytes(), kind
        if key not in self._constants:
            self._constants[key] = self._splat(number, like)
        return self._constants[key]

    def _splat(self, number: Number | complex, like: Value) -> Value:
        kind: TensorType = like.type
        scalar = tensor(of=kind.element_type)
        with np.errstate(all="ignore"):
            elements = DenseElements.splat(np.asarray(number).astype(kind.dtype), kind if kind.is_static else scalar)
        constant = self.add(ops.Constant(elements))
        if kind.is_static:
            return constant
        return self.add(ops.DynamicBroadcastInDim(constant, self.shape(like), (), result=kind))

    def shape(self, value: Value) -> Value:
        """Returns the extents of a value as a tensor."""
        key = value.type.shape, value.type.encoding
        if key not in self._shapes:
            self._shapes[key] = self.add(ops.Concatenate(self.extents(value), 0))
        return self._shapes[key]

    def extents(self, value: Value) -> list[Value]:
        """Returns the extents of a value, each as a tensor of one element."""
        extents = [self.add(ops.GetDimensionSize(value, axis)) for axis in range(value.type.rank)]
        return [self.add(ops.Reshape(extent, result=tensor(1, of=I32))) for extent in extents]


class Tensor:
    """A value in a scope. Comparisons return tensors of booleans."""

    __slots__ = ("scope", "value")

    def __init__(self, value: Value, scope: Scope):
        self.value = value
        self.scope = scope

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def element_type(self) -> Any:
        return self.value.type.element_type

    def of(self, op: Operation) -> Any:
        """Inserts an op and returns its result as a tensor, or its results as a tuple of tensors."""
        found = self.scope.add(op)
        return tuple(self.of_value(value) for value in found) if isinstance(found, tuple) else self.of_value(found)

    def of_value(self, value: Value) -> Tensor:
        return Tensor(value, self.scope)

    def like(self, number: Number | complex) -> Tensor:
        """Returns the number as a tensor of this shape and type."""
        return self.of_value(self.scope.constant(number, self.value))

    def to(self, element_type: Type) -> Tensor:
        """Converts to another element type; returns itself if nothing changes."""
        if self.element_type is element_type:
            return self
        return self.of(ops.Convert(self.value, result=self.type.with_element(element_type)))

    def bits_as(self, element_type: Type) -> Tensor:
        """Reinterprets the bits as another type of the same width."""
        return self.of(ops.BitcastConvert(self.value, result=self.type.with_element(element_type)))

    def _with(self, op: type[Op], other: Operand) -> Tensor:
        return self.of(op(self.value, self._value(other)))

    def _value(self, other: Operand) -> Value:
        return (other if isinstance(other, Tensor) else self.like(other)).value

    def __add__(self, other: Operand) -> Tensor:
        return self._with(ops.Add, other)

    def __sub__(self, other: Operand) -> Tensor:
        return self._with(ops.Subtract, other)

    def __mul__(self, other: Operand) -> Tensor:
        return self._with(ops.Multiply, other)

    def __truediv__(self, other: Operand) -> Tensor:
        return self._with(ops.Divide, other)

    def __mod__(self, other: Operand) -> Tensor:
        return self._with(ops.Remainder, other)

    def __pow__(self, other: Operand) -> Tensor:
        return self._with(ops.Power, other)

    def __and__(self, other: Operand) -> Tensor:
        return self._with(ops.And, other)

    def __or__(self, other: Operand) -> Tensor:
        return self._with(ops.Or, other)

    def __radd__(self, other: Number) -> Tensor:
        return self.like(other) + self

    def __rsub__(self, other: Number) -> Tensor:
        return self.like(other) - self

    def __rmul__(self, other: Number) -> Tensor:
        return self.like(other) * self

    def __rtruediv__(self, other: Number) -> Tensor:
        return self.like(other) / self

    def __neg__(self) -> Tensor:
        return self.of(ops.Negate(self.value))

    def __invert__(self) -> Tensor:
        return self.of(ops.Not(self.value))

    def __abs__(self) -> Tensor:
        return self.of(ops.Abs(self.value))

    def __rshift__(self, other: Operand) -> Tensor:
        """The logical shift, for unsigned numbers."""
        return self._with(ops.ShiftRightLogical, other)

    def _compared(self, direction: ComparisonDirection, other: Operand) -> Tensor:
        return self.of(ops.Compare(self.value, self._value(other), direction))

    def __lt__(self, other: Operand) -> Tensor:
        return self._compared(ComparisonDirection.LT, other)

    def __le__(self, other: Operand) -> Tensor:
        return self._compared(ComparisonDirection.LE, other)

    def __gt__(self, other: Operand) -> Tensor:
        return self._compared(ComparisonDirection.GT, other)

    def __ge__(self, other: Operand) -> Tensor:
        return self._compared(ComparisonDirection.GE, other)

    def equals(self, other: Operand) -> Tensor:
        return self._compared(ComparisonDirection.EQ, other)

    def differs(self, other: Operand) -> Tensor:
        return self._compared(ComparisonDirection.NE, other)


Operand = Tensor | Number | complex
"""A tensor, or a number that stands for one."""


def where(chosen: Tensor, one: Tensor, other: Operand) -> Tensor:
    """Selects `one` where `chosen` is true, else `other`."""
    return one.of(ops.Select(chosen.value, one.value, one._value(other)))


def _function(op: type[Op]) -> Callable[[Tensor], Tensor]:
    return lambda x: x.of(op(x.value))


exp, expm1, log, log1p = map(_function, (ops.Exponential, ops.ExponentialMinusOne, ops.Log, ops.LogPlusOne))
sin, cos, tanh, sqrt = map(_function, (ops.Sine, ops.Cosine, ops.Tanh, ops.Sqrt))
floor, sign, real, imag = map(_function, (ops.Floor, ops.Sign, ops.Real, ops.Imag))


def atan2(y: Tensor, x: Operand) -> Tensor:
    return y.of(ops.Atan2(y.value, y._value(x)))


def maximum(x: Tensor, y: Operand) -> Tensor:
    return x.of(ops.Maximum(x.value, x._value(y)))


def minimum(x: Tensor, y: Operand) -> Tensor:
    return x.of(ops.Minimum(x.value, x._value(y)))


def complex_of(re: Tensor, im: Tensor) -> Tensor:
    return re.of(ops.Complex(re.value, im.value, result=re.type.with_element(ComplexType(re.element_type))))


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Evaluates the polynomial with these coefficients, highest power first."""
    total = x.like(coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def is_complex(x: Tensor) -> bool:
    return isinstance(x.element_type, ComplexType)
