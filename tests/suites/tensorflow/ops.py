"""The ops that TensorFlow's XLA registers for the CPU, and the element types that it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.framework import kernels, op_def_registry
from tensorflow.python.framework.op_def_library import apply_op

from trivium.importers.tensorflow.types import ELEMENT_TYPES

DEVICE = "XLA_CPU_JIT"

BOOKKEEPING = frozenset(
    {
        # between devices, or of TensorFlow's own runtime
        *("CollectiveAssignGroupV2", "CollectiveReduceV2", "XlaAllReduce", "XlaReduceScatter", "XlaRecv", "XlaSend"),
        *("_Arg", "_Retval", "_ArrayToList", "_ListToArray", "_EagerConst", "_XlaAotOnlyVarHandleOp", "FakeParam"),
        *("SymbolicGradient", "DeviceIndex", "XlaReplicaId"),
    }
)
"""Ops that no program of a user contains on one device."""


DEFECTIVE = {"Round": frozenset({tf.int32, tf.int64})}
"""Dtypes for which TensorFlow's kernel of an op is wrong: it rounds all integers to zero."""

Registered = Mapping[str, Mapping[str, frozenset[tf.DType]]]
"""Ops, with the dtypes of their type attributes."""

_REMEMBERED: dict[str, Registered] = {}


def remember(ops: Registered) -> None:
    """Keeps what `registered` returned in another process: asking runs a function."""
    _REMEMBERED[DEVICE] = ops


def registered() -> Registered:
    """Returns the ops of XLA."""
    if DEVICE not in _REMEMBERED:
        remember(_asked())
    return _REMEMBERED[DEVICE]


def _asked() -> Registered:
    tf.function(lambda x: x + 1, jit_compile=True)(1.0)  # XLA registers its kernels when it is first used
    found: dict[str, dict[str, frozenset[tf.DType]]] = {}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == DEVICE:
            types = found.setdefault(kernel.op, {})
            for constraint in kernel.constraint:
                allowed = frozenset(map(tf.as_dtype, constraint.allowed_values.list.type))
                types[constraint.name] = types.get(constraint.name, frozenset()) | allowed
    return found


def called(op: str, **given: Any) -> Any:
    """Adds an op to the graph that is being traced, with its declared names and defaults, also one that has no function
    in Python."""
    declared = op_def_registry.get(op)
    counts = {x.number_attr for x in declared.input_arg}
    defaults = {x.name: _plain(x.default_value) for x in declared.attr if x.name not in counts}
    return apply_op(op, name=op.strip("_"), **{name: x for name, x in defaults.items() if x is not None} | given)


def _plain(value: AttrValue) -> Any:
    """Returns a default as `apply_op` takes it; nothing without one, or for types, which follow from the arguments."""
    kind = value.WhichOneof("value") or ""
    if kind == "list":
        return next((list(x) for x in (value.list.s, value.list.i, value.list.f) if x), [])
    return getattr(value, kind) if kind in ("i", "f", "b", "s") else None


def dtypes_of(op: str, attribute: str) -> list[tf.DType]:
    """Returns the dtypes that a type attribute may have, for XLA and in our language."""
    declared = next(x for x in op_def_registry.get(op).attr if x.name == attribute)
    own = set(map(tf.as_dtype, declared.allowed_values.list.type)) or set(ELEMENT_TYPES)
    of_xla = registered().get(op, {}).get(attribute) or own
    return sorted((own & of_xla & set(ELEMENT_TYPES)) - DEFECTIVE.get(op, frozenset()), key=lambda dtype: dtype.name)
