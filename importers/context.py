"""The context of a rule, in any framework: the emitter's vocabulary, the node under conversion with the types that its
results must have, operands that are known during import, and graphs inside the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Generic, NoReturn, Self, TypeVar

import numpy as np

from trivium.importers.emit import Emitter
from trivium.ir.core import Block, Value
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.known import evaluate_known
from trivium.ir.types import TensorType, compatible, type_of

Graph = TypeVar("Graph")
Operand = TypeVar("Operand")


class Context(Emitter, Generic[Graph, Operand]):
    """An emitter at the node under conversion. `Graph` is the framework's type of a graph inside a node, `Operand` the
    type that a tensor of it is converted to."""

    op: str = ""
    """The framework's name of the node's op."""

    results: Sequence[TensorType | None] = ()
    """The types that the node's results must have, if the framework specifies them. An extent that is `None` may be
    any."""

    enter: Callable[[Self, Graph, Sequence[Operand]], Sequence[Operand]]
    """Converts a graph inside the node for operands, at the cursor of a context. Set by the importer that is
    running."""

    @property
    def result(self) -> TensorType:
        """The type of the node's only (or first) result."""
        assert self.results[0] is not None, f"{self.op} has no tensor result"
        return self.results[0]

    @property
    def result_types(self) -> list[TensorType]:
        """The types of the results of a node all of whose results are tensors."""
        types = [kind for kind in self.results if kind is not None]
        assert len(types) == len(self.results), f"{self.op} has results that are not tensors"
        return types

    def require_types(self, given: Sequence[object]) -> None:
        """Raises if a rule returned another number of results than the node has, or results of other types than
        required."""
        if self.results and len(given) != len(self.results):
            raise Error(f"the rule of {self.op} returns {len(given)} results, expected {len(self.results)}")
        for index, (value, expected) in enumerate(zip(given, self.results, strict=False)):
            if expected is not None and isinstance(value, Value | np.ndarray):
                kind = value.type if isinstance(value, Value) else type_of(value)
                if not compatible(kind, expected):
                    which = f" for result {index}" if len(given) > 1 else ""
                    raise Error(f"the rule of {self.op} returns {kind}{which}, expected {expected}")

    def inline(self, graph: Graph, *operands: Operand) -> Sequence[Operand]:
        """Converts a graph inside the node, at the cursor."""
        return self.enter(self.copied(), graph, operands)

    def copied(self) -> Self:
        """Returns a separate context at the same cursor: a conversion with it leaves this one unchanged."""
        return copy(self)

    def within(self, block: Block) -> Self:
        inner = self.copied()
        inner.block, inner.before = block, None
        return inner

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Adds the ops that are added inside to the end of `block`."""
        saved, self.block, self.before = (self.block, self.before), block, None
        try:
            yield
        finally:
            self.block, self.before = saved

    def unsupported(self, argument: str, value: object, expected: str) -> NoReturn:
        """Rejects the node because of an argument."""
        reason = f"argument {argument} has {value}, expected {expected}"
        raise UnsupportedOpError("an argument is not supported:", [Unsupported(self.op, reason=reason)])

    def known(self, operand: Value, argument: str) -> np.ndarray:
        """Returns the array that an operand always has; rejects the node if it depends on the program's inputs."""
        array = evaluate_known(operand)
        if array is None:
            has = "a value computed at run time, or with very many elements"
            self.unsupported(argument, has, "one that is known while importing")
        return array

    def known_ints(self, operand: Value, argument: str) -> list[int]:
        """Returns the integers of an operand that is known during import."""
        return [int(number) for number in self.known(operand, argument).reshape(-1)]
