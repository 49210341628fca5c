"""The context of an ONNX rule: that of all importers, and ONNX's element types and axes. Shapes, axes and pads are
tensors in ONNX, and must be known during import."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from trivium.importers import context
from trivium.importers.common import Rules
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import ElementType, element_type_of

rule = Rules("ONNX")
"""The table of all ONNX rules; names are those of operators, `Conv`; `since` is a version of the operator set."""


class Context(context.Context[onnx.GraphProto, Value]):
    """An emitter at the node under conversion."""

    outputs: int = 1
    """The number of outputs of the node; those with an empty name are not needed."""

    opset: int = 0
    """The version of the operator set."""


def element_type(code: int) -> ElementType:
    """Returns the element type of an ONNX `TensorProto.DataType`."""
    try:
        return element_type_of(onnx.helper.tensor_dtype_to_np_dtype(code))
    except (KeyError, Error):
        name = onnx.TensorProto.DataType.Name(code) if code in onnx.TensorProto.DataType.values() else code
        raise Error(f"the ONNX element type {name} has no tensor type") from None


def axes_of(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Returns axes counted from the front."""
    return tuple(axis_of(axis, rank) for axis in axes)


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis counted from the front; a tensor without dimensions counts as having one."""
    count = max(rank, 1)
    if not -count <= int(axis) < count:
        raise Error(f"axis has {int(axis)}, expected a number from {-count} to {count - 1}")
    return int(axis) % count
