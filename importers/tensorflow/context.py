"""The context of a TensorFlow rule: the emitter's vocabulary, the node under conversion, and operands that may be known
during import (shapes, mostly), lists of tensors, or variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from trivium.importers.common import Rules
from trivium.importers.dynamic_context import DynamicContext
from trivium.importers.extents import Extent, numbers_of
from trivium.importers.tensorflow.types import element_type_of
from trivium.ir.core import Value
from trivium.ir.known import evaluate_known
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


class Context(DynamicContext[str, Operand]):
    """An emitter at the node under conversion. Graphs inside nodes are functions of the library, by name."""

    node: tf.Operation
    state: State

    room: int | None = None
    """In a program whose results may have more rows than exist, how many they have at least, if no argument bounds
    them; all other sizes must be known during import. `None` in programs whose sizes may be dynamic."""

    of_ranges = False
    """Whether the program is for ranges of sizes. Others for known sizes take its place where it is refused, so that it
    has no ops that are much slower than theirs."""

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

    def known_if_possible(self, operand: Operand) -> Known | None:
        """Returns the array of an operand if it is known during import."""
        return operand if isinstance(operand, np.ndarray) else evaluate_known(self.value(operand))

    def known_unless_counted(self, operand: Operand, argument: str) -> Known | None:
        """Returns the array of an operand from which the extents of results follow. Where that is not known during
        import, returns `None` if results may have more rows than exist, and otherwise rejects the node."""
        if self.room is None or isinstance(operand, np.ndarray):
            return self.known(operand, argument)
        return self.known_if_possible(operand)

    def convert(self, x: Value, element_type: ElementType) -> Value:
        """Converts like TensorFlow's cast: a boolean is whether the number is not zero; floats are truncated to
        integers."""
        if is_boolean(element_type) and not is_boolean(x.type.element_type):
            return self.compare("NE", x, self.scalar(0, x.type.element_type))
        return super().convert(x, element_type)

    def axis(self, given: Known | int, rank: int, argument: str = "axis") -> int:
        """Returns a dimension of that many, counted from the front."""
        if np.size(given) != 1:
            self.unsupported(argument, np.ravel(given).tolist(), "one dimension")
        number = int(np.ravel(given)[0])
        if not -rank <= number < rank:
            self.unsupported(argument, number, f"a number from {-rank} to {rank - 1}" if rank else "no dimension")
        return number % rank

    def axes(self, given: Known, rank: int, argument: str = "axis") -> tuple[int, ...]:
        """Returns different dimensions, counted from the front and sorted."""
        found = {self.axis(number, rank, argument) for number in np.ravel(given)}
        if len(found) < given.size:
            self.unsupported(argument, given.tolist(), "different dimensions")
        return tuple(sorted(found))

    def known_shape(self, given: Known, argument: str = "shape") -> tuple[int, ...]:
        """Returns the shape that a known operand holds."""
        shape = tuple(map(int, np.ravel(given)))
        if given.ndim > 1 or min(shape, default=0) < 0:
            self.unsupported(argument, given.tolist(), "a vector of extents, none of them negative")
        return shape

    def entries(self, operand: Operand, argument: str) -> list[Extent]:
        """Returns the integers of a vector, or a number: known ones, or sizes that the program computes."""
        if isinstance(operand, np.ndarray) and operand.ndim <= 1:
            return [int(number) for number in np.ravel(operand)]
        return self.listed(self.value(operand, argument), argument)

    def given_sizes(self, operand: Operand, argument: str) -> list[Extent]:
        """Returns the entries of an operand from which extents of results follow. Where these must be known during
        import, rejects the node if they are not."""
        known = self.room is not None
        return list(map(int, np.ravel(self.known(operand, argument)))) if known else self.entries(operand, argument)

    def given_shape(self, operand: Operand, argument: str = "shape") -> tuple[Extent, ...]:
        """Returns the shape that an operand holds, some of whose extents may be computed by the program."""
        known = self.known_if_possible(operand)
        if known is not None:
            return self.known_shape(known, argument)
        return tuple(self.given_sizes(operand, argument))

    def held(self, extents: Sequence[Extent], element_type: ElementType) -> Tensor:
        """Returns extents as a vector."""
        numbers = numbers_of(extents)
        if numbers is not None:
            return np.array(numbers, element_type.dtype)
        return self.convert(self.vector(extents), element_type)

    def constant_like(self, x: Value, number: float) -> Value:
        """Returns a number as a 0-d constant of the element type of `x`."""
        return self.scalar(number, x.type.element_type)


def extents_of(ctx: Context, operand: Tensor) -> list[Extent]:
    """Returns the shape of a value, or of a known array."""
    return list(operand.shape) if isinstance(operand, np.ndarray) else ctx.extents(operand)


def shape_of(operand: Tensor) -> tuple[int, ...]:
    """Returns the shape of an operand whose extents are all known."""
    return operand.shape if isinstance(operand, np.ndarray) else operand.type.static_shape
