"""Signatures of calls: tensors are identified by dtype and shape, variables by identity, composites of tensors by type,
and everything else by value or identity."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.composite_tensor import CompositeTensor


@dataclass(frozen=True)
class Resource:
    """What an argument refers to that is no variable, such as the state of an iterator."""

    handle: tf.Tensor


@dataclass
class Leaves:
    """The tensors (or arrays) among arguments, and what they refer to, in order."""

    tensors: list[Any] = field(default_factory=list)
    resources: list[tf.Variable | Resource] = field(default_factory=list)


def signature_key(x: Any, leaves: Leaves) -> Hashable:
    """Returns what identifies the trace for arguments, and collects their leaves."""
    if isinstance(x, tf.Tensor | np.ndarray | np.generic):
        leaves.tensors.append(x)
        return str(x.dtype) if isinstance(x, np.ndarray | np.generic) else x.dtype.name, extents(x)
    if isinstance(x, list | tuple):
        return type(x), tuple(signature_key(entry, leaves) for entry in x)
    if isinstance(x, Mapping):
        return type(x), tuple((name, signature_key(x[name], leaves)) for name in sorted(x))
    if isinstance(x, tf.Variable):
        leaves.resources.append(x)
        return _Same(x)
    if isinstance(x, CompositeTensor):
        for part in tf.nest.flatten(x, expand_composites=True):
            if part.dtype == tf.resource:
                leaves.resources.append(Resource(part))
            else:
                leaves.tensors.append(part)
        return tf.type_spec_from_value(x)
    return (type(x), x) if isinstance(x, bool | int | float | complex | str | bytes | None) else _Same(x)


def extents(x: Any) -> tuple[int | None, ...] | None:
    """Returns the shape of a tensor or an array; `None` for what is unknown."""
    if isinstance(x, np.ndarray | np.generic):
        return x.shape
    return None if x.shape.rank is None else tuple(x.shape)


def leaves_of(leaves: Leaves) -> str:
    """Formats dtypes and shapes for the log."""
    return ", ".join(f"{x.dtype}{x.shape}" for x in leaves.tensors) or "no tensors"


class _Same:
    """Equal only to the same object, which it keeps alive, so that its address is not reused."""

    def __init__(self, x: Any):
        self.x = x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.x is other.x

    def __hash__(self) -> int:
        return id(self.x)
