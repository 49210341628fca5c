"""The context of a TensorFlow rule: the emitter's vocabulary, the node under conversion, and operands that may be known
during import (shapes, mostly), lists of tensors, or variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from trivium.importers import context
from trivium.importers.common import Rules
from trivium.importers.context import evaluate_known
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir.core import Value
from trivium.ir.types import ElementType, is_boolean

if TYPE_CHECKING:
    from trivium.importers.tensorflow.state import State

rule = Rules("TensorFlow")
"""The table of all TensorFlow rules. A rule's positional parameters are the op's inputs in order, its keyword ones the
op's attributes by name. An input annotated `Known` must be known during import and is passed as an array; one annotated
`Tensor`, `Operand`, `TensorList` or `Optional` is passed unchanged; all others are passed as values."""


class NonTensor:
    """The base of operands that are not tensors: variables, lists of tensors, optional values, other resources."""

    def described(self) -> str:
        """Returns what errors call it."""
        return f"a {type(self).__name__.lower()}"


Known = np.ndarray
"""A tensor whose elements are known during import."""

Tensor = Value | Known
"""A tensor, computed by the program or known during import."""

Operand = Tensor | NonTensor
"""The value of a node's output while a graph is converted."""

Rule = Callable[..., Operand | Sequence[Operand] | None]


class Context(context.Context[str, Operand]):
    """An emitter at the node under conversion. Graphs inside nodes are functions of the library, by name."""

    node: tf.Operation
    state: State

    room: int | None = None
    """In a program whose results may have more rows than exist, how many they have at least, if no argument bounds
    them. `None` in all others, whose sizes must be known during import."""

    @property
    def element_type(self) -> ElementType:
        """The element type of the node's only (or first) result."""
        return element_type_of(self.node.outputs[0].dtype)

    def value(self, operand: Operand, argument: str = "input") -> Value:
        """Returns an operand as a value: known ones become constants."""
        if isinstance(operand, Value):
            return operand
        if isinstance(operand, np.ndarray | np.generic):
            return self.elements(operand)
        self.unsupported(argument, operand.described(), "a tensor")

    def known(self, operand: Operand, argument: str) -> np.ndarray:
        return operand if isinstance(operand, np.ndarray) else super().known(self.value(operand, argument), argument)

    def known_unless_counted(self, operand: Operand, argument: str) -> Known | None:
        """Returns the array of an operand from which the extents of results follow. Where that is not known during
        import, returns `None` if results may have more rows than exist, and otherwise rejects the node."""
        if self.room is None or isinstance(operand, np.ndarray):
            return self.known(operand, argument)
        return evaluate_known(self.value(operand, argument))

    def convert(self, x: Value, element_type: ElementType) -> Value:
        """Converts like TensorFlow's cast: a boolean is whether the number is not zero; floats are truncated to
        integers."""
        if is_boolean(element_type) and not is_boolean(x.type.element_type):
            return self.compare("NE", x, self.scalar(0, x.type.element_type))
        return super().convert(x, element_type)

    def constant_like(self, x: Value, number: float) -> Value:
        """Returns a number as a 0-d constant of the element type of `x`."""
        return self.scalar(number, x.type.element_type)


def shape_of(operand: Tensor) -> tuple[int, ...]:
    """Returns the shape of a value, or of a known array."""
    return operand.shape if isinstance(operand, np.ndarray) else operand.type.static_shape


def axes(given: np.ndarray, rank: int) -> tuple[int, ...]:
    """Returns dimensions counted from the front, each once, sorted."""
    return tuple(sorted({int(axis) % rank for axis in np.ravel(given)})) if rank else ()


def axis(given: np.ndarray | int, rank: int) -> int:
    """Returns one dimension counted from the front."""
    return int(given) % max(rank, 1)
