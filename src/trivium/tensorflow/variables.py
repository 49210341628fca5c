"""The variables of a compiled function, and how their values are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import execute
from tensorflow.python.eager.context import context
from tensorflow.python.ops.resource_variable_ops import BaseResourceVariable

from trivium.importers.tensorflow.module import variable_from
from trivium.importers.tensorflow.state import Variable
from trivium.tensorflow.signatures import Resource

Instead = Mapping[int, tf.Tensor]
"""Handles of variables that take the place of others, by the identity of those's handles."""

NOTHING: Instead = {}


class _Generator:
    """A placeholder among the variables for the random generator's state, which TensorFlow draws anew each time."""

    dtype, shape = tf.int64, tf.TensorShape((3,))

    def read_value(self) -> tf.Tensor:
        return tf.random.uniform((3,), tf.int64.min, tf.int64.max, tf.int64)


GENERATOR = _Generator()


@dataclass(frozen=True)
class Held:
    """A variable of which only the handle is known."""

    handle: Any
    dtype: tf.DType
    shape: tf.TensorShape

    def read_value(self) -> tf.Tensor:
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype)


def exchanged(variables: list[Any], instead: Instead) -> list[Any]:
    if not instead:
        return variables
    return [
        x if x is GENERATOR or id(x.handle) not in instead else Held(instead[id(x.handle)], x.dtype, x.shape)
        for x in variables
    ]


def resource_of(argument: tf.Variable | Resource) -> Variable | tf.Tensor:
    return argument.handle if isinstance(argument, Resource) else variable_from(argument)


def readable(variable: Variable, known: Mapping[int, tf.Variable | Resource]) -> Any:
    if variable.handle is None:
        return GENERATOR
    found = known.get(id(variable.handle))
    if found is not None:
        return found
    return Held(variable.handle, tf.as_dtype(variable.type.dtype), tf.TensorShape(variable.type.shape))


class Reader:
    """Reads variables at the lowest cost, without recording it: by the op with which TensorFlow's own compiled
    functions read all of theirs."""

    def __init__(self, variables: Sequence[Any]) -> None:
        self._variables = variables
        held = self._held()
        # Of a variable on several devices, the handle depends on which of them asks.
        self._handles = [x.handle for x in held] if all(map(_has_one_handle, held)) else None
        self._attributes = "N", len(held), "dtypes", tuple(x.dtype.as_datatype_enum for x in held)

    def __call__(self) -> list[tf.Tensor]:
        handles = self._handles if self._handles is not None else [x.handle for x in self._held()]
        if not handles:  # the op takes at least one
            return [x.read_value() for x in self._variables]
        read = execute.execute("_ReadVariablesOp", len(handles), handles, self._attributes, context())
        if len(read) == len(self._variables):
            return read
        values = iter(read)
        return [x.read_value() if x is GENERATOR else next(values) for x in self._variables]

    def _held(self) -> list[Any]:
        return [x for x in self._variables if x is not GENERATOR]


def _has_one_handle(variable: Any) -> bool:
    return isinstance(variable, Held | BaseResourceVariable)
