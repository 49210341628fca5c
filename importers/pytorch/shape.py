"""Copies, views and parts. Sizes come from PyTorch's own shape propagation, so that a rule only has to determine which
elements go where."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from trivium.importers.extents import Extent, Size, clamped, from_front, larger, scalar_of, smaller
from trivium.importers.padding import modulo
from trivium.importers.pytorch.checking import check_indices, check_that
from trivium.importers.pytorch.context import Context, Number, dim, rule
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I32, I64, UI8, IntegerType, is_float

# The same elements


@rule(
    *("aten.alias.default", "aten.detach.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default"),
    *("aten.clone.default", "aten.contiguous.default", "aten.alias_copy.default", "aten.detach_copy.default"),
    *("aten.resolve_conj.default", "aten.resolve_neg.default", "aten.positive.default"),
)
def same(ctx: Context, x: Value) -> Value:
    """clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor"""
    return x


@rule("aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten.type_as.default")
def to(ctx: Context, x: Value | Number, *options: object) -> Value:
    """_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None,
    bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor"""
    return _converted(ctx, x) if isinstance(x, Value) else ctx.tensor(x, ctx.result.element_type)


@rule("prims.convert_element_type.default")
def convert_element_type(ctx: Context, a: Value, dtype: object) -> Value:
    """convert_element_type(Tensor a, ScalarType dtype) -> Tensor"""
    return _converted(ctx, a)


def _converted(ctx: Context, x: Value) -> Value:
    """Converts to the element type of the result. Integers of 8 and 16 bits are the lowest bits of a wider one, as
    PyTorch's kernels compute them; numbers beyond that one are 0."""
    source, kind = x.type.element_type, ctx.result.element_type
    if not (is_float(source) and isinstance(kind, IntegerType) and 8 <= kind.width <= 16):
        return ctx.convert(x, kind)
    x = x if source is F64 else ctx.convert(x, F32)
    wide = I64 if source is F64 and kind is UI8 else I32
    fits = ctx.compare("LT", ctx.add(ops.Abs(x)), ctx.scalar(2.0 ** (wide.width - 1), x.type.element_type))
    return ctx.convert(ctx.select(fits, ctx.convert(x, wide), ctx.scalar(0, wide)), kind)


@rule("aten.copy.default")
def copy(ctx: Context, x: Value, src: Value) -> Value:
    """copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor"""
    return ctx.shaped(src)


@rule("aten.view.dtype")
def view_dtype(ctx: Context, x: Value, dtype: object) -> Value:
    """view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"""
    old, new = x.type.dtype.itemsize, ctx.result.dtype.itemsize
    if old == new:
        return ctx.add(ops.BitcastConvert(x, result=ctx.result))
    # The language splits an element into a new last dimension, or joins such a dimension into one element.
    *rest, last = ctx.extents(x)
    if old > new:
        split = ctx.result.with_shape((*x.type.shape, old // new))
        return ctx.reshape(ctx.add(ops.BitcastConvert(x, result=split)), ctx.shape)
    joined = ctx.reshape(x, (*rest, last * old // new, new // old))
    return ctx.add(ops.BitcastConvert(joined, result=ctx.result))


# The same elements in another shape


@rule("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.view_copy.default")
def view(ctx: Context, x: Value, size: Sequence[int]) -> Value:
    """view(Tensor(a) self, SymInt[] size) -> Tensor(a)"""
    return ctx.reshape(x, ctx.shape)


@rule("aten.unsqueeze.default", "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims")
def unsqueeze(ctx: Context, x: Value, dim: object = None) -> Value:
    """unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"""
    return ctx.reshape(x, ctx.shape)


@rule("aten.flatten.using_ints")
def flatten(ctx: Context, x: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"""
    return ctx.reshape(x, ctx.shape)


@rule("aten.permute.default", "aten.permute_copy.default")
def permute(ctx: Context, x: Value, dims: Sequence[int]) -> Value:
    """permute(Tensor(a) self, int[] dims) -> Tensor(a)"""
    return ctx.transpose(x, [dim(d, x.type.rank) for d in dims])


@rule("aten.transpose.int")
def transpose(ctx: Context, x: Value, dim0: int, dim1: int) -> Value:
    """transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"""
    order = list(range(x.type.rank))
    if order:
        one, other = dim(dim0, x.type.rank), dim(dim1, x.type.rank)
        order[one], order[other] = order[other], order[one]
    return ctx.transpose(x, order)


@rule("aten.t.default", "aten.numpy_T.default", "aten.mT.default")
def t(ctx: Context, x: Value) -> Value:
    """t(Tensor(a) self) -> Tensor(a)"""
    if "numpy_T" in ctx.op:
        return ctx.transpose(x, range(x.type.rank)[::-1])
    return transpose(ctx, x, -2, -1) if x.type.rank > 1 else x


@rule("aten.expand.default", "aten.expand_copy.default")
def expand(ctx: Context, x: Value, size: Sequence[int], *, implicit: bool = False) -> Value:
    """expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"""
    return ctx.broadcast(x, ctx.shape)


@rule("aten.repeat.default")
def repeat(ctx: Context, x: Value, repeats: Sequence[int]) -> Value:
    """repeat(Tensor self, SymInt[] repeats) -> Tensor"""
    shape = (*(1,) * (len(repeats) - x.type.rank), *ctx.extents(x))
    # Each dimension is next to its count: [2, 3] repeated (4, 5) times is [4, 2, 5, 3] before the reshape.
    pairs = [extent for pair in zip(repeats, shape, strict=True) for extent in pair]
    spread = ctx.broadcast_in_dim(ctx.reshape(x, shape), pairs, range(1, 2 * len(shape), 2))
    return ctx.reshape(spread, ctx.shape)


@rule("aten.flip.default")
def flip(ctx: Context, x: Value, dims: Sequence[int]) -> Value:
    """flip(Tensor self, int[] dims) -> Tensor"""
    reversed_ = sorted({dim(d, x.type.rank) for d in dims} & set(range(x.type.rank)))
    return ctx.add(ops.Reverse(x, dimensions=reversed_)) if reversed_ else x


@rule("aten.roll.default")
def roll(ctx: Context, x: Value, shifts: Sequence[Extent], dims: Sequence[int] = ()) -> Value:
    """roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor"""
    rolled = x if dims else ctx.flattened(x)
    for shift, d in zip(shifts, dims or (0,), strict=True):
        d = dim(d, rolled.type.rank)
        extent = ctx.extent(rolled, d) if rolled.type.rank else 0
        if isinstance(extent, Size) or isinstance(shift, Size):
            places = ctx.minus(ctx.iota([extent], 0), scalar_of(ctx, shift))
            rolled = ctx.take(rolled, modulo(ctx, places, extent), d)
        elif extent and (cut := -shift % extent):
            parts = [ctx.slice(rolled, d, cut, extent), ctx.slice(rolled, d, 0, cut)]
            rolled = ctx.concatenate(parts, d)
    return ctx.reshape(rolled, ctx.extents(x))


# Parts


@rule("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_(
    ctx: Context, x: Value, dim: int = 0, start: Extent | None = None, end: Extent | None = None, step: int = 1
) -> Value:
    """slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)"""
    d = dim % x.type.rank
    extent = ctx.extent(x, d)
    if isinstance(extent, int) and isinstance(start, int | None) and isinstance(end, int | None):
        first, last, _ = slice(start, end).indices(extent)
        return ctx.slice(x, d, first, max(first, last), step)
    first = clamped(ctx, from_front(ctx, start or 0, extent), 0, extent)
    _bind_place(ctx, x, d, first)
    if ctx.symbols.is_unknown(ctx.meta.shape[d]):
        limit = extent if end is None else clamped(ctx, from_front(ctx, end, extent), 0, extent)
        return ctx.slice(x, d, first, larger(ctx, first, limit), step)
    return ctx.slice(x, d, first, smaller(ctx, first + ctx.shape[d] * step, extent), step)


def _bind_place(ctx: Context, x: Value, dimension: int, first: Extent) -> None:
    """States where in memory a part of `x` begins, if elements of tensors decide that."""
    if (meta := ctx.metas.get(x)) is not None:
        before, stride = (ctx.symbols.extent(ctx, given) for given in (meta.storage_offset(), meta.stride(dimension)))
        ctx.symbols.state(ctx.meta.storage_offset(), before + first * stride)


@rule("aten.select.int", "aten.select_copy.int")
def select(ctx: Context, x: Value, dim: int, index: Extent) -> Value:
    """select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"""
    d = dim % x.type.rank
    extent = ctx.extent(x, d)
    check_indices(ctx, scalar_of(ctx, index), extent, d, IndexError, wraps=True)
    first = from_front(ctx, index, extent)
    _bind_place(ctx, x, d, first)
    return ctx.squeeze(ctx.window(x, d, first, 1), [d])


@rule("aten.narrow.default")
def narrow(ctx: Context, x: Value, dim: int, start: Extent, length: Extent) -> Value:
    """narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"""
    d = dim % x.type.rank
    start = from_front(ctx, start, ctx.extent(x, d))
    return ctx.window(x, d, start, length)


@rule(
    *("aten.split.Tensor", "aten.split_with_sizes.default", "aten.unsafe_split.Tensor", "aten.chunk.default"),
    *("aten.split_with_sizes_copy.default", "aten.split_copy.Tensor", "aten.unsafe_chunk.default"),
)
def split(ctx: Context, x: Value, sections: object, dim: int = 0) -> tuple[Value, ...]:
    """split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"""
    d = dim % x.type.rank
    limits = list(accumulate((ctx.shape_of(part)[d] for part in ctx.described), initial=0))
    return tuple(ctx.slice(x, d, start, limit) for start, limit in pairwise(limits))


@rule("aten.unbind.int", "aten.unbind_copy.int")
def unbind(ctx: Context, x: Value, dim: int = 0) -> tuple[Value, ...]:
    """unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"""
    return tuple(select(ctx, x, dim, index) for index in range(x.type.shape[dim % x.type.rank]))


@rule("aten.diagonal.default", "aten.diagonal_copy.default")
def diagonal(ctx: Context, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"""
    if 0 in ctx.result.shape:
        return ctx.full(ctx.shape, 0, x.type.element_type)
    one, other = dim(dim1, x.type.rank), dim(dim2, x.type.rank)
    rest = [d for d in range(x.type.rank) if d not in (one, other)]
    extents = ctx.extents(x)
    rows, columns = extents[one], extents[other]
    flat = ctx.reshape(ctx.transpose(x, [*rest, one, other]), [*(extents[d] for d in rest), rows * columns])
    first, step, count = columns * max(-offset, 0) + max(offset, 0), columns + 1, ctx.shape[-1]
    if isinstance(first, int) and isinstance(step, int) and isinstance(count, int):
        places = ctx.ramp(first, step, count, I64)
    else:
        steps = ctx.times(ctx.iota([count], 0), scalar_of(ctx, step))
        places = ctx.plus(scalar_of(ctx, first), steps)
    return ctx.take(flat, places, len(rest))


@rule("aten.unfold.default", "aten.unfold_copy.default")
def unfold(ctx: Context, x: Value, dimension: int, size: int, step: int) -> Value:
    """unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"""
    if not x.type.rank:
        return ctx.slice(ctx.reshape(x, (1,)), 0, 0, size)
    d = dim(dimension, x.type.rank)
    rank = x.type.rank
    numbers = ops.GatherDimensionNumbers(
        offset_dims=tuple(i for i in range(rank + 1) if i != d),
        collapsed_slice_dims=(),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
        start_index_map=(d,),
        index_vector_dim=1,
    )
    starts = ctx.scaled(ctx.iota([ctx.shape[d]], 0), step)
    sizes = [size if i == d else ctx.extent(x, i) for i in range(rank)]
    windows = ctx.gather(x, starts, numbers, sizes)
    return ctx.transpose(windows, [*(i for i in range(rank + 1) if i != d + 1), d + 1])


# Facts about sizes


@rule("aten._assert_async.msg", "aten._assert_async.default")
def tensor_assertion(
    ctx: Context, x: Value, assert_msg: str = "Expected Tensor with single nonzero value, but got zero"
) -> None:
    """_assert_async.msg(Tensor self, str assert_msg) -> ()"""
    check_that(ctx, ctx.not_zero(x), assert_msg)


@rule(
    *("aten._assert_scalar.default", "aten._assert_tensor_metadata.default"),
    *("aten.sym_constrain_range_for_size.default", "aten.sym_constrain_range.default"),
)
def assertion(ctx: Context, *given: object, **options: object) -> None:
    """_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ...) -> ()"""


@rule("aten.sym_size.int", "aten.sym_stride.int", "aten.sym_numel.default", "aten.sym_storage_offset.default")
def sym_size(ctx: Context, x: Value, dim: int = 0) -> Extent:
    """sym_size.int(Tensor self, int dim) -> SymInt"""
    if "size" in ctx.op:
        return ctx.extent(x, dim)
    meta = ctx.metas[x]
    return {
        "aten.sym_stride.int": lambda: int(meta.stride(dim)),
        "aten.sym_numel.default": lambda: x.type.size,
        "aten.sym_storage_offset.default": lambda: int(meta.storage_offset()),
    }[ctx.op]()
