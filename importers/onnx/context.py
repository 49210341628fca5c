"""The context of an ONNX rule: that of all importers, and ONNX's element types and axes. Shapes, axes and pads are
tensors in ONNX: numbers where they are known during import, otherwise sizes that the program computes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

import onnx

from trivium.importers.common import Rules
from trivium.importers.dynamic_context import DynamicContext
from trivium.ir.core import Block, Value
from trivium.ir.errors import Error
from trivium.ir.types import ElementType, element_type_of

rule = Rules("ONNX")
"""The table of all ONNX rules; names are those of operators, `Conv`; `since` is a version of the operator set."""


class Listed(tuple["Value", ...]):
    """A sequence of tensors, whose length is known."""


Operand = Value | Listed | None
"""The value of a name in a graph: a tensor, a sequence of tensors, or nothing (an input that is omitted, or an optional
without a value)."""


class Context(DynamicContext[onnx.GraphProto, Operand]):
    """An emitter at the node under conversion."""

    outputs: int = 1
    """The number of outputs of the node; those with an empty name are not needed."""

    folder: str = ""
    """Where the files are that have tensors of the model."""

    opset: int = 0
    """The version of the operator set."""

    def __init__(self, block: Block):
        super().__init__(block)
        self.turns: tuple[Value, ...] = ()  # those of the loops around the node, the outermost one first
        self.draws: list[str] = []  # the nodes that draw random numbers

    def turn(self, body: onnx.GraphProto, turn: Value, *operands: Value) -> list[Value]:
        """Converts the body of a loop, whose results are tensors, at the cursor; `turn` counts its iterations."""
        return self.turned(turn).values(body, *operands)

    def turned(self, turn: Value) -> Context:
        """Returns a context for the body of a loop; `turn` counts its iterations."""
        inner = self.copied()
        inner.turns = (*self.turns, turn)
        return inner

    def values(self, graph: onnx.GraphProto, *operands: Value) -> list[Value]:
        """Converts a graph inside the node, whose results are tensors, at the cursor."""
        return self.tensors(self.inline(graph, *operands), "body")

    def tensors(self, operands: Sequence[Operand], argument: str) -> list[Value]:
        """Returns operands that are tensors; rejects the node if any of them is something else."""
        values = [x for x in operands if isinstance(x, Value)]
        if len(values) < len(operands):
            self.unsupported(argument, "sequences or optionals", "tensors")
        return values


def element_type(code: int) -> ElementType:
    """Returns the element type of an ONNX `TensorProto.DataType`."""
    try:
        return element_type_of(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, Error):
        name = onnx.TensorProto.DataType.Name(code) if code in onnx.TensorProto.DataType.values() else code
        raise Error(f"the ONNX element type {name} has no tensor type") from None


def axes_of(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Returns axes counted from the front, of which none occurs twice."""
    axes = tuple(axes)
    places = tuple(axis_of(axis, rank) for axis in axes)
    if len(set(places)) < len(places):
        raise Error(f"axes has {list(axes)}, expected no axis twice")
    return places


def require_same_length(**lists: Sized) -> None:
    """Rejects lists, by the names of the arguments that they are, of which one is longer than another."""
    (first, one), *others = lists.items()
    for name, other in others:
        if len(one) != len(other):
            raise Error(f"{name} has {len(other)} entries, expected {len(one)}, as many as {first}")


def require_shape(x: Value, argument: str, shape: Sequence[int | None]) -> None:
    """Rejects an operand that cannot have a shape, of which some sizes may be unknown."""
    sizes = zip(x.type.shape, shape, strict=False)
    if x.type.rank != len(shape) or any(None not in pair and pair[0] != pair[1] for pair in sizes):
        wanted = ", ".join("?" if extent is None else str(extent) for extent in shape)
        raise Error(f"{argument} has type {x.type}, expected the shape [{wanted}]")


def require_rank(x: Value, argument: str, rank: int, or_more: bool = False) -> None:
    """Rejects an operand with another number of dimensions."""
    if x.type.rank < rank or (x.type.rank > rank and not or_more):
        raise Error(f"{argument} has type {x.type}, expected {rank} dimensions{' or more' if or_more else ''}")


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis counted from the front; a tensor without dimensions counts as having one."""
    count = max(rank, 1)
    if not -count <= int(axis) < count:
        raise Error(f"axis has {int(axis)}, expected a number from {-count} to {count - 1}")
    return int(axis) % count
