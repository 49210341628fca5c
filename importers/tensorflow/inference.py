"""The types that TensorFlow infers for the results of a node from the types that its operands have in our program.
Graphs in files may declare inputs without a shape, so that TensorFlow has neither checked the nodes that follow nor
inferred their results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from trivium.importers.tensorflow.types import ELEMENT_TYPES, element_type_of
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.types import TensorType


def declared(tensor: tf.Tensor) -> TensorType | None:
    """Returns the type that TensorFlow inferred for a tensor, as far as it did."""
    if tensor.shape.rank is None or not _is_array(tensor):
        return None
    return TensorType(tuple(tensor.shape.as_list()), element_type_of(tensor.dtype))


def has_unknown_rank(node: tf.Operation) -> bool:
    """Whether TensorFlow does not know the rank of an array that a node reads or returns."""
    return any(x.shape.rank is None and _is_array(x) for x in (*node.inputs, *node.outputs))


def inferred(node: tf.Operation, operands: Sequence[object]) -> list[TensorType | None]:
    """Returns the types of a node's results for operands. Raises if TensorFlow rejects their types. A node with
    operands or results that are not arrays keeps the types that it has."""
    arrays = [x for x in operands if isinstance(x, Value | np.ndarray)]
    if len(arrays) < len(operands) or not all(map(_is_array, node.outputs)):
        return [*map(declared, node.outputs)]
    names = {attribute.name for attribute in node.op_def.attr}
    attributes = {name: value for name, value in node.node_def.attr.items() if name in names}
    shapes = [x.type.shape if isinstance(x, Value) else x.shape for x in arrays]
    with tf.Graph().as_default() as graph:
        # Elements of known operands are not passed: some shape functions end the process if their rank is wrong.
        inputs = [tf.compat.v1.placeholder(x.dtype, shape) for x, shape in zip(node.inputs, shapes, strict=True)]
        kinds = [x.dtype for x in node.outputs]
        try:
            outputs = graph.create_op(node.type, inputs, kinds, name="node", attrs=attributes).outputs
        except (TypeError, ValueError) as error:
            raise Error(f"TensorFlow rejects the operands of {node.type}: {error}") from error
    known = [declared(x) for x in node.outputs]
    return [mine or declared(x) for mine, x in zip(known, outputs, strict=True)]


def _is_array(tensor: tf.Tensor) -> bool:
    return tensor.dtype.base_dtype in ELEMENT_TYPES
