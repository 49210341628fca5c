"""Slices that need no memory of their own: a matrix out of a stack of matrices, whose number is computed at run time,
such as that of an expert, or of a layer in a scan over layers. Products read it where it is."""

from __future__ import annotations

import math
from typing import NamedTuple

from trivium.ir.core import Operation, Value
from trivium.ir.ops import Convolution, DotGeneral, DynamicSlice, Reshape
from trivium.ir.types import I32, I64


class Slice(NamedTuple):
    """Elements of `whole` from `place` on, along a dimension of which one step is `stride` elements; places go up to
    `last`."""

    whole: Value
    place: Value
    stride: int
    last: int


def section_of(op: Operation) -> Slice | None:
    """Returns how the result of an op lies in its operand, if it is a slice whose elements are neighbours there, and
    that is only multiplied."""
    if not isinstance(op, DynamicSlice) or not _is_only_multiplied(op.result):
        return None
    shape, sizes = op.operand.type.static_shape, op.slice_sizes
    cut = [d for d, (extent, size) in enumerate(zip(shape, sizes, strict=True)) if size != extent]
    if len(cut) != 1 or math.prod(shape[: cut[0]]) != 1:
        return None
    (dimension,) = cut
    place = op.start_indices[dimension]
    if place.type.element_type not in (I32, I64):
        return None
    return Slice(op.operand, place, math.prod(shape[dimension + 1 :]), shape[dimension] - sizes[dimension])


def _is_only_multiplied(value: Value) -> bool:
    """Whether all users of a value are products, also of other shapes of it. What else uses it could be a loop that
    carries it, or the program's caller, whose memory it must then be in."""
    users = value.users
    return bool(users) and all(
        _is_only_multiplied(user.result) if isinstance(user, Reshape) else isinstance(user, DotGeneral | Convolution)
        for user in users
    )
