"""Rewrites of ops that move elements without computing: they vanish, merge, or become cheaper ops."""

from __future__ import annotations

from trivium.compiler.costs import interleaves
from trivium.compiler.passes.dimensions import with_extent
from trivium.compiler.passes.patterns.matching import is_splat_of, splat
from trivium.compiler.passes.rewriting import PatternSet
from trivium.ir.attributes import DenseElements
from trivium.ir.ops import (
    BroadcastInDim,
    Concatenate,
    Constant,
    DynamicSlice,
    DynamicUpdateSlice,
    Pad,
    Reshape,
    Reverse,
    Slice,
    Transpose,
)

SHAPE = PatternSet()
pattern = SHAPE.pattern

SMALL_PART = 4
"""A part is small if the whole is as many times as large."""


@pattern(Reshape, BroadcastInDim, Transpose, Slice, Pad, Reverse, Concatenate, DynamicSlice)
def splat_stays_splat(op):
    """An op that only moves the elements of a splat results in a splat."""
    if not op.result.type.is_static or (isinstance(op, Pad) and not _pads_with_its_own(op)):
        return None
    sources = op.inputs if isinstance(op, Concatenate) else (op.operand,)
    made = (value.defining_op for value in sources)
    constants = [source for source in made if isinstance(source, Constant) and source.value.is_splat]
    if not constants or len(constants) < len(sources):
        return None
    elements = {source.value.array.reshape(-1)[:1].tobytes() for source in constants}
    if len(elements) > 1:
        return None
    return Constant(DenseElements.splat(constants[0].value.array.reshape(-1)[0], op.result.type))


@pattern(Reshape)
def reshape_to_itself(op):
    """reshape(x : T) to T == x"""
    return op.operand if op.operand.type is op.result.type else None


@pattern(Reshape)
def reshape_reshape(op):
    """reshape(reshape(x)) == reshape(x)"""
    inner = op.operand.defining_op
    return Reshape(inner.operand, result=op.result.type) if isinstance(inner, Reshape) else None


@pattern(Transpose)
def transpose_identity(op):
    """transpose(x, (0, 1, ...)) == x"""
    identity = op.permutation == tuple(range(op.operand.type.rank))
    return op.operand if identity and op.operand.type is op.result.type else None


@pattern(Transpose)
def transpose_transpose(op):
    """transpose(transpose(x, p), q) == transpose(x, p[q])"""
    inner = op.operand.defining_op
    if not isinstance(inner, Transpose):
        return None
    permutation = tuple(inner.permutation[dimension] for dimension in op.permutation)
    return Transpose(inner.operand, permutation=permutation, result=op.result.type)


@pattern(Transpose)
def transpose_of_units(op):
    """A transpose that moves only dimensions of extent 1 is a reshape."""
    if not op.result.type.is_static:
        return None
    moved = [dimension for dimension in op.permutation if op.operand.type.shape[dimension] != 1]
    return Reshape(op.operand, result=op.result.type) if moved == sorted(moved) else None


@pattern(Transpose)
def transpose_of_stack(op):
    """transpose(concatenate(reshape(x), ...)) == concatenate(reshape(x), ...) along another dimension   (if the inputs
    have extent 1 there, and all other dimensions stay in order)"""
    inner = op.operand.defining_op
    if not isinstance(inner, Concatenate) or not op.result.type.is_static or len(inner.result.uses) != 1:
        return None
    stacked, order = inner.dimension, [dimension for dimension in op.permutation if dimension != inner.dimension]
    if order != sorted(order) or any(value.type.shape[stacked] != 1 for value in inner.inputs):
        return None
    if not all(isinstance(value.defining_op, Reshape) for value in inner.inputs):
        return None
    dimension = op.permutation.index(stacked)
    each = op.result.type.with_shape(with_extent(op.result.type.static_shape, dimension, 1))
    parts = [Reshape(value, result=each).result for value in inner.inputs]
    return Concatenate(parts, dimension=dimension, result=op.result.type)


@pattern(Transpose)
def transpose_of_interleaved(op):
    """transpose(concatenate(reshape(x), ...), (p, last)) == concatenate(reshape(transpose(x, p)), ...)   (if the
    reshapes only add the last dimension, whose elements are written together)"""
    inner = op.operand.defining_op
    if not isinstance(inner, Concatenate) or not op.result.type.is_static or len(inner.result.uses) != 1:
        return None
    *order, last = op.permutation
    if last != inner.dimension or not interleaves(inner.inputs, last):
        return None
    reshapes = (value.defining_op for value in inner.inputs)
    parts = [
        r.operand for r in reshapes if isinstance(r, Reshape) and (*r.operand.type.shape, 1) == r.result.type.shape
    ]
    if len(parts) < len(inner.inputs):
        return None
    each = op.result.type.with_shape(with_extent(op.result.type.static_shape, last, 1))
    turned = [Reshape(Transpose(part, permutation=tuple(order)).result, result=each).result for part in parts]
    return Concatenate(turned, dimension=last, result=op.result.type)


@pattern(Slice)
def slice_of_concatenate(op):
    """slice(concatenate(x, y, ...)) == concatenate(slice(x), ...), without operands of which the slice has nothing
    (if it is all of one operand, or if nothing but such slices reads the concatenation)"""
    joined = op.operand.defining_op
    if not _is_static_join(joined) or not op.result.type.size:
        return None
    found = _touched(op, joined)
    if found is None:
        return None
    if len(found) > 1 and len(joined.result.uses) > 1 and not all(_leaves_out(u, joined) for u in joined.result.users):
        return None
    d, parts = joined.dimension, []
    for value, start, limit in found:
        starts, limits = with_extent(op.start_indices, d, start), with_extent(op.limit_indices, d, limit)
        parts.append(Slice(value, starts, limits, op.strides).result)
    return parts[0] if len(parts) == 1 else Concatenate(parts, d).result


def _is_static_join(op):
    return isinstance(op, Concatenate) and all(value.type.is_static for value in op.inputs)


def _touched(op, joined):
    """Returns the operands of a concatenation that a slice has elements of, and from where to where; None if a slice
    with strides has elements of several."""
    d, position, found = joined.dimension, 0, []
    start, step = op.start_indices[d], op.strides[d]
    last = start + (op.result.type.shape[d] - 1) * step
    for value in joined.inputs:
        extent = value.type.static_shape[d]
        low, high = max(start - position, 0), min(last - position, extent - 1)
        if low <= high:
            found.append((value, low, high + 1))
        position += extent
    return None if len(found) > 1 and step > 1 else found


def _leaves_out(user, joined):
    """Whether a user of a concatenation is a slice that has nothing of some operand."""
    touched = _touched(user, joined) if isinstance(user, Slice) and user.result.type.size else None
    return touched is not None and len(touched) < len(joined.inputs)


@pattern(Concatenate)
def concatenate_of_concatenate(op):
    """concatenate(concatenate(x, y), z) == concatenate(x, y, z), along the same dimension   (unless single elements are
    written together only if they are by themselves)"""
    inner = {value: made for value in op.inputs if (made := _joined_once(value, op.dimension)) is not None}
    inputs = [x for value in op.inputs for x in (inner[value].inputs if value in inner else (value,))]
    apart = any(interleaves(each.inputs, op.dimension) for each in inner.values())
    if not inner or (apart and not interleaves(inputs, op.dimension)):
        return None
    return Concatenate(inputs, op.dimension, result=op.result.type)


def _joined_once(value, dimension):
    """Returns the concatenation along a dimension that a value is, if it is read once."""
    made = value.defining_op
    is_joined = isinstance(made, Concatenate) and made.dimension == dimension and len(value.uses) == 1
    return made if is_joined else None


@pattern(Slice, Reverse)
def part_of_joined_parts(op):
    """slice(concatenate(x, ...)) == concatenate(slice(x), ...) and reverse likewise, along other dimensions   (if
    nothing else reads the concatenation; or for a small part, if all are parts of one value: so are reflected and
    repeated edges written, of which the corners are in two dimensions)"""
    joined = op.operand.defining_op
    if not _is_static_join(joined) or not _keeps(op, joined.dimension):
        return None
    is_small = SMALL_PART * op.result.type.size <= joined.result.type.size
    if len(joined.result.uses) > 1 and not (is_small and len(set(map(_whole, joined.inputs))) == 1):
        return None
    return Concatenate([_same_part(op, value, joined.dimension) for value in joined.inputs], joined.dimension)


def _whole(value):
    """Returns what a value is a part of, or repeats a part of."""
    while isinstance(made := value.defining_op, Slice | Reverse | BroadcastInDim | Reshape):
        value = made.operand
    return value


def _keeps(op, dimension):
    """Whether a slice or a reversal leaves a dimension as it is."""
    if isinstance(op, Reverse):
        return dimension not in op.dimensions
    return op.operand.type.shape[dimension] == op.result.type.shape[dimension]


def _same_part(op, value, dimension):
    """Returns the part that an op takes, of a value with another extent of one dimension."""
    if isinstance(op, Reverse):
        return Reverse(value, dimensions=op.dimensions).result
    limits = with_extent(op.limit_indices, dimension, value.type.static_shape[dimension])
    return Slice(value, op.start_indices, limits, op.strides).result


@pattern(Transpose)
def transpose_of_broadcast(op):
    """transpose(broadcast(x, d), p) == broadcast(x, place of d in p)"""
    inner = op.operand.defining_op
    if not isinstance(inner, BroadcastInDim):
        return None
    dimensions = tuple(op.permutation.index(dimension) for dimension in inner.broadcast_dimensions)
    return BroadcastInDim(inner.operand, broadcast_dimensions=dimensions, result=op.result.type)


@pattern(BroadcastInDim)
def broadcast_to_itself(op):
    """broadcast_in_dim(x : T) to T == x"""
    identity = op.broadcast_dimensions == tuple(range(op.operand.type.rank))
    return op.operand if identity and op.operand.type is op.result.type else None


@pattern(BroadcastInDim)
def broadcast_broadcast(op):
    """broadcast(broadcast(x, d), e) == broadcast(x, e[d])"""
    inner = op.operand.defining_op
    if not isinstance(inner, BroadcastInDim):
        return None
    dimensions = tuple(op.broadcast_dimensions[dimension] for dimension in inner.broadcast_dimensions)
    return BroadcastInDim(inner.operand, broadcast_dimensions=dimensions, result=op.result.type)


@pattern(BroadcastInDim)
def broadcast_of_units(op):
    """A broadcast that adds only dimensions of extent 1, in order, is a reshape."""
    kind, result = op.operand.type, op.result.type
    if not (kind.is_static and result.is_static) or kind.size != result.size:
        return None
    ordered = list(op.broadcast_dimensions) == sorted(op.broadcast_dimensions)
    return Reshape(op.operand, result=result) if ordered else None


@pattern(BroadcastInDim)
def broadcast_reshape(op):
    """broadcast(reshape(x)) == broadcast(x)   (a reshape that only adds or drops dimensions of extent 1)"""
    inner = op.operand.defining_op
    if not isinstance(inner, Reshape) or not inner.operand.type.is_static or not inner.result.type.is_static:
        return None
    outer, source = inner.result.type.shape, inner.operand.type.shape
    kept = [dimension for dimension, extent in enumerate(outer) if extent != 1]
    if [outer[dimension] for dimension in kept] != list(source):
        return None
    dimensions = tuple(op.broadcast_dimensions[dimension] for dimension in kept)
    return BroadcastInDim(inner.operand, broadcast_dimensions=dimensions, result=op.result.type)


@pattern(Slice)
def slice_all(op):
    """slice(x, everything) == x"""
    return op.operand if op.operand.type is op.result.type and set(op.strides) <= {1} else None


@pattern(Slice)
def slice_slice(op):
    """slice(slice(x)) == slice(x)"""
    inner = op.operand.defining_op
    if not isinstance(inner, Slice):
        return None
    bounds = zip(inner.start_indices, inner.strides, op.start_indices, op.limit_indices, op.strides, strict=True)
    starts, limits, strides = [], [], []
    for (start, step, low, _, stride), extent in zip(bounds, op.result.type.shape, strict=True):
        if extent is None:
            return None
        # An empty result starts at the inner slice's start: its own start could be beyond the operand, hence invalid.
        starts.append(start + low * step if extent else start)
        strides.append(step * stride)
        # The tightest limit: one past the last element that is taken.
        limits.append(starts[-1] + max(extent - 1, 0) * strides[-1] + (1 if extent else 0))
    return Slice(inner.operand, start_indices=starts, limit_indices=limits, strides=strides, result=op.result.type)


@pattern(Pad)
def pad_nothing(op):
    """pad(x, by nothing) == x"""
    amounts = (*op.edge_padding_low, *op.edge_padding_high, *op.interior_padding)
    return op.operand if not any(amounts) and op.operand.type is op.result.type else None


@pattern(Concatenate)
def concatenate_one(op):
    """concatenate(x) == x; operands of extent 0 add nothing"""
    inputs = [value for value in op.inputs if value.type.shape[op.dimension] != 0]
    if len(inputs) == 1 and inputs[0].type is op.result.type:
        return inputs[0]
    if inputs and len(inputs) < len(op.inputs):
        return Concatenate(inputs, dimension=op.dimension, result=op.result.type)
    return None


@pattern(Reverse)
def reverse_units(op):
    """reverse(x, dimensions of extent 1) == x"""
    return op.operand if all(op.operand.type.shape[dimension] == 1 for dimension in op.dimensions) else None


@pattern(Reverse)
def reverse_reverse(op):
    """reverse(reverse(x, d), d) == x"""
    inner = op.operand.defining_op
    same = isinstance(inner, Reverse) and set(inner.dimensions) == set(op.dimensions)
    return inner.operand if same else None


@pattern(DynamicSlice)
def dynamic_slice_all(op):
    """dynamic_slice(x, ..., everything) == x   (start indices are clamped)"""
    return op.operand if op.operand.type is op.result.type and op.operand.type.is_static else None


@pattern(DynamicSlice)
def dynamic_slice_at_constants(op):
    """dynamic_slice(x, constants) == slice(x)   (from the last possible start on, if one is beyond it)"""
    starts = [splat(start) for start in op.start_indices]
    if any(start is None for start in starts) or not op.operand.type.is_static:
        return None
    bounds = zip(starts, op.operand.type.static_shape, op.slice_sizes, strict=True)
    first = [min(max(int(start), 0), extent - size) for start, extent, size in bounds]
    limits = [start + size for start, size in zip(first, op.slice_sizes, strict=True)]
    return Slice(op.operand, first, limits, [1] * len(first))


@pattern(DynamicUpdateSlice)
def dynamic_update_of_all(op):
    """dynamic_update_slice(x, y, ...) == y if y is as large as x   (start indices are clamped)"""
    return op.update if op.update.type is op.result.type and op.result.type.is_static else None


def _pads_with_its_own(op: Pad) -> bool:
    own, padding = splat(op.operand), splat(op.padding_value)
    return own is not None and padding is not None and is_splat_of(op.padding_value, own)
