"""Tables that map numbers to numbers, as lookups of categories use. Those that are initialized once become constants of
the program, of which the keys are in order."""

from __future__ import annotations

from functools import partial

import numpy as np
import tensorflow as tf

from trivium.importers.searching import places_in
from trivium.importers.tensorflow.context import Context, Operand, Tensor, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64


@rule("LookupTableFindV2")
def lookup_table_find(
    ctx: Context, table_handle: Operand, keys: Tensor, default_value: Tensor, *, Tin: tf.DType, Tout: tf.DType
) -> Value:
    """LookupTableFindV2(table_handle, keys, default_value; Tin, Tout) -> values"""
    given, values = _elements(ctx, table_handle, Tin, Tout)
    wanted, other = ctx.value(keys), ctx.value(default_value)
    if not len(given):
        return ctx.broadcast(other, ctx.extents(wanted))
    order = np.argsort(given)
    rows = ctx.elements(given[order])
    place = places_in(ctx, rows, wanted, partial(ctx.compare, "LT"), I64)
    place = ctx.binary(ops.Minimum, place, ctx.scalar(len(given) - 1, I64))
    is_found = ctx.compare("EQ", ctx.take(rows, place), wanted)
    return ctx.select(is_found, ctx.take(ctx.elements(values[order]), place), other)


def _elements(ctx: Context, handle: Operand, key: tf.DType, value: tf.DType) -> tuple[np.ndarray, np.ndarray]:
    """Returns the keys and the values of a table."""
    if not hasattr(handle, "numpy"):
        ctx.unsupported("table_handle", "a table that is not initialized", "one of a function that TensorFlow traced")
    if tf.string in (key, value):
        ctx.unsupported("table_handle", f"keys of type {key.name}, values of type {value.name}", "numbers")
    keys, values = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=key, Tvalues=value)
    try:
        tf.raw_ops.LookupTableInsertV2(table_handle=handle, keys=keys[:0], values=values[:0])
    except tf.errors.UnimplementedError:  # nothing can be added to it later
        return keys.numpy(), values.numpy()
    ctx.unsupported("table_handle", "a table that may change", "one that is initialized once")
