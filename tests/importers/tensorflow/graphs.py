"""GraphDefs of nodes, written as a file may contain them: TensorFlow has not checked them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

Attribute = tf.compat.v1.AttrValue


def graph_of(*nodes: Any) -> tf.compat.v1.GraphDef:
    return tf.compat.v1.GraphDef(node=nodes, versions={"producer": tf.version.GRAPH_DEF_VERSION})


def node(name: str, op: str, *inputs: str, **attributes: Any) -> Any:
    """Returns a node; attributes are types, numbers, lists of numbers (a shape) or messages."""
    made = tf.compat.v1.NodeDef(name=name, op=op, input=inputs)
    for key, value in attributes.items():
        made.attr[key].CopyFrom(_attribute(value))
    return made


def constant(name: str, value: Any, dtype: tf.DType = tf.int64) -> Any:
    return node(name, "Const", dtype=dtype, value=Attribute(tensor=tf.make_tensor_proto(value, dtype)))


def placeholder(name: str, shape: list[int], dtype: tf.DType = tf.float32) -> Any:
    return node(name, "Placeholder", dtype=dtype, shape=shape)


def _attribute(value: Any) -> Any:
    if isinstance(value, tf.DType):
        return Attribute(type=value.as_datatype_enum)
    if isinstance(value, list):
        return Attribute(shape=tf.TensorShape(value).as_proto())
    return Attribute(i=value) if isinstance(value, int) else value
