"""Collectives of compiled programs: the numbers that encode a call for the native runtime
(`backends/native/collectives.cc`)."""

from __future__ import annotations

import math

from trivium.compiler.collectives import (
    NAMES,
    AllGather,
    AllReduce,
    AllToAll,
    CollectivePermute,
    ReduceScatter,
)
from trivium.compiler.kernel import storage_bytes
from trivium.compiler.program import Collective
from trivium.ir.errors import CompileError

KINDS = (AllReduce, AllGather, ReduceScatter, AllToAll, CollectivePermute)
COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
TYPES = ("", "i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "f16", "bf16", "f32", "f64")
"""The types whose elements can be combined, by their numbers; 0 represents all others."""


def description(step: Collective) -> list[int]:
    """Returns the kind, the type, the bytes of an element, the combiner, two dimensions, the source's shape, and the
    groups."""
    kind, source = step.kind, step.source
    combiner, dimensions = "", (0, 0)
    match kind:
        case AllReduce(combiner):
            pass
        case AllGather(dimension):
            dimensions = (dimension, 0)
        case ReduceScatter(combiner, dimension):
            dimensions = (dimension, 0)
        case AllToAll(split, concat):
            dimensions = (split, concat)
    number = TYPES.index(source.dtype) if source.dtype in TYPES else 0
    if combiner and (number == 0 or combiner not in COMBINERS):
        raise CompileError(f"{NAMES[type(kind)]} of {source.dtype} by {combiner} is not supported on the CPU")
    which = COMBINERS.index(combiner) if combiner else 0
    groups = [number for group in step.groups for number in (len(group), *group)]
    shape = step.shape or (1,)
    head = [KINDS.index(type(kind)), number, storage_bytes(source.dtype), which, *dimensions, len(shape), *shape]
    assert math.prod(shape) * storage_bytes(source.dtype) == source.nbytes, "elements are stored in whole bytes"
    return [*head, len(step.groups), *groups]
