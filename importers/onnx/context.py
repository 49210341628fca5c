"""What an ONNX rule works with: the emitter's words, and the values of tensors that are known while importing (shapes,
axes, pads come as tensors in ONNX, and must be numbers here)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import numpy as np
import onnx

from trivium.importers.common import Rules, unsupported
from trivium.importers.emit import Emitter
from trivium.ir.core import Operation, Value
from trivium.ir.declare import Op
from trivium.ir.errors import Error
from trivium.ir.ops import Constant
from trivium.ir.ops.quantization import evaluate_op
from trivium.ir.types import TensorType, element_type_of

rule = Rules("ONNX")
"""The table of all ONNX rules; names are those of operators, `Conv`; `since` is a version of the operator set."""


class ImportGraph(Protocol):
    """Converts a graph inside a node, which sees the values around it."""

    def __call__(self, emit: Context, graph: onnx.GraphProto, arguments: Sequence[Value] = ()) -> tuple[Value, ...]: ...


class Context(Emitter):
    """An emitter at the node under conversion."""

    op: str = ""
    """The name of the node's operator."""

    outputs: int = 1
    """How many outputs the node has; those with an empty name are not wanted."""

    opset: int = 0
    """The version of the operator set."""

    inner: ImportGraph
    """Converts graphs inside the node, at the cursor of another context. Set by the importer that has the node."""

    def unsupported(self, argument: str, value: object, expected: str) -> NoReturn:
        """Refuses the node for an attribute or an input."""
        unsupported(self.op, argument, value, expected)

    def known(self, value: Value, argument: str) -> np.ndarray:
        """The array that a value always has; refuses the node if it depends on the model's inputs."""
        array = evaluate_known(value)
        if array is None:
            has = "a value that depends on the model's inputs, or has very many elements"
            self.unsupported(argument, has, "one known when importing")
        return array

    def known_ints(self, value: Value, argument: str) -> list[int]:
        """The integers of a value that is known when importing."""
        return [int(number) for number in self.known(value, argument).reshape(-1)]


MOST_KNOWN = 1 << 27
"""The elements of a value up to which it is computed when importing."""


def _is_too_large(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_static and value.type.size > MOST_KNOWN


def evaluate_known(value: Value) -> np.ndarray | None:
    """The array of a value that follows from constants alone, by the meaning of the ops behind it; else `None`."""
    arrays: dict[Value, np.ndarray] = {}
    stack = [value]
    while stack:
        current = stack[-1]
        op = current.defining_op
        if current in arrays:
            stack.pop()
        elif op is None or _is_too_large(current):
            return None
        elif isinstance(op, Constant):
            arrays[current] = op.value.array
        elif not _is_foldable(op):
            return None
        elif missing := [operand for operand in op.operands if operand not in arrays]:
            stack.extend(missing)
        else:
            assert isinstance(op, Op)
            results = evaluate_op(op, [arrays[operand] for operand in op.operands])
            results = results if isinstance(results, tuple | list) else (results,)
            arrays.update(zip(op.results, map(np.asarray, results), strict=True))
    return arrays[value]


def _is_foldable(op: Operation) -> bool:
    return op.is_pure and not op.regions


def element_type(code: int) -> Any:
    """The element type of an ONNX `TensorProto.DataType`."""
    try:
        return element_type_of(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, Error):
        name = onnx.TensorProto.DataType.Name(code) if code in onnx.TensorProto.DataType.values() else code
        raise Error(f"the ONNX element type {name} has no tensor type") from None


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front."""
    return tuple(axis_of(axis, rank) for axis in axes)


def axis_of(axis: Any, rank: int) -> int:
    """An axis counted from the front; a tensor without dimensions counts as having one."""
    count = max(rank, 1)
    if not -count <= int(axis) < count:
        raise Error(f"axis has {int(axis)}, expected a number from {-count} to {count - 1}")
    return int(axis) % count
