"""Results whose extents depend on data. A program has room for all rows that there can be, and counts those that
exist; whoever runs it cuts them out. What computes with such a result belongs to a later program, which is compiled for
the number of rows, unless it treats each row alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import tensorflow as tf

from trivium.importers.extents import Size
from trivium.importers.tensorflow.context import Context, NonTensor, Operand
from trivium.ir.core import Value
from trivium.ir.errors import Unsupported, UnsupportedOpError
from trivium.ir.types import I64


@dataclass(frozen=True)
class Counted(NonTensor):
    """`count` slices of `rows` along a dimension, from `start` on: both are 0-d integers. The count is negative if an
    argument of the op is not what is `expected`, and larger than the room if the program needs more. `from_numbers`
    says whether it follows from a few numbers, which whoever runs the program may rather read."""

    op: str
    rows: Value
    count: Value
    start: Value | None = None
    dimension: int = 0
    expected: str = ""
    from_numbers: bool = False

    def described(self) -> str:
        return "a size that depends on data"

    def with_rows(self, rows: Operand) -> Counted:
        assert isinstance(rows, Value)
        return replace(self, rows=rows)


def existing_rows(ctx: Context, rows: Value, count: Value) -> Operand:
    """Returns the first `count` of some rows, which are those that exist: counted, where a program has room for all."""
    if ctx.room is not None:
        return Counted(ctx.op, rows, count)
    return ctx.slice(rows, 0, 0, Size(ctx, ctx.convert(count, I64), is_extent=True))


class LaterError(UnsupportedOpError):
    """A node computes with results whose extents depend on data: it belongs to a later program. `tensors` are the
    names of these results in the outermost graph."""

    tensors: frozenset[str] = frozenset()
    from_numbers: bool = False


def require_sized(ctx: Context, operands: Iterable[Operand]) -> None:
    """Rejects the node if extents of its operands depend on data."""
    found = [x for x in operands if isinstance(x, Counted)]
    if found:
        reason = f"an argument has {found[0].described()}, expected a size that is known while importing"
        error = LaterError("an argument is not supported:", [Unsupported(ctx.op, reason=reason)])
        error.from_numbers = any(x.from_numbers for x in found)
        raise error


def counts_of(ctx: Context, results: Sequence[Counted], lengths: Sequence[Value]) -> Value:
    """Returns where the rows of each result start, and how many there are, in a row of a matrix; then zero and the
    length of each list."""
    zero = ctx.scalar(0, I64)
    pairs = [*((x.start, x.count) for x in results), *((None, x) for x in lengths)]
    numbers = [zero if x is None else ctx.convert(x, I64) for pair in pairs for x in pair]
    listed = ctx.concatenate([ctx.reshape(x, (1,)) for x in numbers], 0)
    return ctx.reshape(listed, (len(pairs), 2))


def followed(node: tf.Operation) -> int | None:
    """Returns the position of the operand whose rows (along the first dimension) a node treats one by one, `None` if it
    does nothing like that."""
    return _FOLLOWED[node.type] if node.type in _FOLLOWED and _FITS.get(node.type, _always)(node) else None


def _always(node: tf.Operation) -> bool:
    return True


def _squeezes_others(node: tf.Operation) -> bool:
    rank = node.inputs[0].shape.rank
    return rank is not None and bool(dims := node.get_attr("squeeze_dims")) and all(d % rank for d in dims)


def _takes_rows(node: tf.Operation) -> bool:
    return not node.get_attr("batch_dims") and (len(node.inputs) < 3 or tf.get_static_value(node.inputs[2]) == 0)


def _slices_others(node: tf.Operation) -> bool:
    whole = node.get_attr("begin_mask") & node.get_attr("end_mask") & 1
    others = (node.get_attr(f"{name}_mask") & 1 for name in ("ellipsis", "new_axis", "shrink_axis"))
    strides = tf.get_static_value(node.inputs[3])
    return bool(whole) and not any(others) and strides is not None and strides[0] == 1


ELEMENTWISE = frozenset({"Cast", "Identity", "StopGradient"})
"""Ops that treat each element alone."""

_FOLLOWED = {
    **dict.fromkeys((*ELEMENTWISE, "Squeeze", "StridedSlice"), 0),
    **dict.fromkeys(("GatherNd", "GatherV2", "ResourceGather", "ResourceGatherNd"), 1),
}

_FITS = {
    "GatherV2": _takes_rows,
    "ResourceGather": _takes_rows,
    "Squeeze": _squeezes_others,
    "StridedSlice": _slices_others,
}
