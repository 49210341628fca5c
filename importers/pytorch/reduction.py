"""Sums, extremes, scans, sorts: ops that combine the elements of some dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers.emit import accumulation_type
from trivium.importers.extents import Extent, scalar_of
from trivium.importers.pytorch.context import Context, dim, dims, rule
from trivium.importers.pytorch.indexing import gather
from trivium.importers.searching import places_in
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import F32, F64, I1, I32, I64, UI64, is_complex, is_float

Dims = Sequence[int] | int | None


def reduced(ctx: Context, op: type, x: Value, over: Dims, keep: bool) -> Value:
    """Reduces in the type in which PyTorch accumulates; the result has the node's type."""
    kind = ctx.result.element_type
    wide = ctx.convert(ctx.convert(x, kind), accumulation_type(kind))
    return ctx.convert(ctx.reduce(op, wide, _present(over, x), keep), kind)


def _present(over: Dims, x: Value) -> tuple[int, ...]:
    """Returns dimensions of `x`; a 0-d tensor has none, though PyTorch allows naming one."""
    return dims(over, x.type.rank) if x.type.rank else ()


@rule("aten.sum.default", "aten.sum.dim_IntList")
def sum(ctx: Context, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    return reduced(ctx, ops.Add, x, dim, keepdim)


@rule("aten.prod.default", "aten.prod.dim_int")
def prod(ctx: Context, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    return reduced(ctx, ops.Multiply, x, dim, keepdim)


@rule("aten.mean.default", "aten.mean.dim")
def mean(ctx: Context, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"""
    kind = ctx.result.element_type
    wide = ctx.convert(x, accumulation_type(kind))
    return ctx.convert(ctx.mean(wide, _present(dim, x), keepdim), kind)


@rule("aten.any.default", "aten.any.dim", "aten.any.dims", "aten.all.default", "aten.all.dim", "aten.all.dims")
def any(ctx: Context, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"""
    op = ops.Or if "any" in ctx.op else ops.And
    found = ctx.reduce(op, ctx.not_zero(x), _present(dim, x), keepdim)
    return ctx.convert(found, ctx.result.element_type)


@rule("aten.amax.default", "aten.amin.default", "aten.max.default", "aten.min.default")
def amax(ctx: Context, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    """amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor"""
    return ctx.reduce(ops.Maximum if "max" in ctx.op else ops.Minimum, x, _present(dim, x), keepdim)


@rule("aten.max.dim", "aten.min.dim")
def max_dim(ctx: Context, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)"""
    values, indices = _extreme(ctx, x, dim)
    shape = ctx.shape
    return ctx.reshape(values, shape), ctx.reshape(indices, shape)


@rule("aten.argmax.default", "aten.argmin.default")
def argmax(ctx: Context, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"""
    flat = ctx.flattened(x) if dim is None else x
    return ctx.reshape(_extreme(ctx, flat, dim or 0)[1], ctx.shape)


def _extreme(ctx: Context, x: Value, d: int) -> tuple[Value, Value]:
    """Returns the largest or smallest element along a dimension, depending on the op's name, and its index."""
    if not x.type.rank:
        return x, ctx.scalar(0, I64)
    return ctx.arg_reduce("GT" if "max" in ctx.op else "LT", x, dim(d, x.type.rank))


@rule("aten.var.correction")
def var(ctx: Context, x: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Value:
    """var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"""
    return _moments(ctx, x, dim, correction, keepdim)[0]


@rule("aten.var_mean.correction")
def var_mean(
    ctx: Context, x: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)
    -> (Tensor, Tensor)"""
    return _moments(ctx, x, dim, correction, keepdim)


@rule("aten.std.correction")
def std(ctx: Context, x: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> Value:
    """std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"""
    kind = x.type.element_type
    wide = ctx.convert(x, accumulation_type(kind))
    return ctx.convert(ctx.add(ops.Sqrt(_moments(ctx, wide, dim, correction, keepdim)[0])), ctx.result.element_type)


def _moments(ctx: Context, x: Value, over: Dims, correction: float | None, keep: bool) -> tuple[Value, Value]:
    """Returns variance and mean, in two passes."""
    present = _present(over, x)
    kind = x.type.element_type
    if is_complex(kind):
        parts = [_moments(ctx, ctx.add(part(x)), over, correction, keep) for part in (ops.Real, ops.Imag)]
        (real, left), (imaginary, right) = parts
        return ctx.plus(real, imaginary), ctx.add(ops.Complex(left, right))
    wide = ctx.convert(x, accumulation_type(kind))
    average = ctx.mean(wide, present, keep=True)
    deviation = ctx.minus(wide, average)
    total = ctx.reduce(ops.Add, ctx.times(deviation, deviation), present, keep)
    variance = ctx.over(total, _freedom(ctx, ctx.count(x, present), 1 if correction is None else correction, wide))
    return ctx.convert(variance, kind), ctx.convert(ctx.reshape(average, ctx.extents(variance)), kind)


def _freedom(ctx: Context, count: Extent, correction: float, like: Value) -> Value:
    """Returns the number by which a sum of `count` squares is divided, which is at least 0, in the type of `like`."""
    kind = like.type.element_type
    if isinstance(count, int):
        return ctx.scalar(max(count - correction, 0), kind)
    less = ctx.minus(ctx.convert(scalar_of(ctx, count), kind), ctx.scalar(correction, kind))
    return ctx.binary(ops.Maximum, less, ctx.scalar(0, kind))


# Scans


@rule("aten.cumsum.default", "aten.cumprod.default")
def cumsum(ctx: Context, x: Value, dim: int) -> Value:
    """cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"""
    kind = ctx.result.element_type
    # PyTorch adds f32 in f64: the errors of all elements before one would add up in it.
    wide = ctx.convert(ctx.convert(x, kind), F64 if kind is F32 else accumulation_type(kind))
    op = ops.Add if "sum" in ctx.op else ops.Multiply
    return ctx.convert(ctx.cumulative(op, wide, dim % x.type.rank) if x.type.rank else wide, kind)


@rule("aten.cummax.default", "aten.cummin.default")
def cummax(ctx: Context, x: Value, dim: int) -> tuple[Value, Value]:
    """cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)"""
    if not x.type.rank:
        return x, ctx.scalar(0, I64)
    d, extreme = dim % x.type.rank, ops.Maximum if "max" in ctx.op else ops.Minimum
    # An element counts if it equals the extreme so far: of equal ones the later one, and every NaN.
    kept = ctx.compare("EQ", x, ctx.cumulative(extreme, x, d))
    kept = ctx.binary(ops.Or, kept, ctx.compare("NE", x, x))
    indices = ctx.cumulative(ops.Maximum, ctx.select(kept, ctx.iota_like(x, d), ctx.scalar(0, I64)), d)
    return gather(ctx, x, d, indices), indices


@rule("aten.hash_tensor.default")
def hash_tensor(ctx: Context, x: Value, dim: Sequence[int] = (), *, keepdim: bool = False, mode: int = 0) -> Value:
    """hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor: exclusive or of the bits of
    numbers of 64 bits"""
    if mode:
        ctx.unsupported("mode", mode, "0")
    wide = ctx.convert(x, F64 if is_float(x.type.element_type) else I64)
    bits = ctx.add(ops.BitcastConvert(wide, result=wide.type.with_element(UI64)))
    return ctx.reduce(ops.Xor, bits, _present(dim, x), keepdim)


# Sorts


@rule("aten.sort.default", "aten.sort.stable")
def sort(
    ctx: Context, x: Value, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Value, Value]:
    """sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False)
    -> (Tensor values, Tensor indices)"""
    return _sorted(ctx, x, dim, descending)


@rule("aten.argsort.default")
def argsort(ctx: Context, x: Value, dim: int = -1, descending: bool = False) -> Value:
    """argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor"""
    return _sorted(ctx, x, dim, descending)[1]


def _sorted(ctx: Context, x: Value, d: int, descending: bool) -> tuple[Value, Value]:
    if not x.type.rank:
        return x, ctx.scalar(0, I64)
    d = dim(d, x.type.rank)
    values, indices = ctx.sort([x, ctx.iota_like(x, d)], d, descending)
    return values, indices


@rule("aten.topk.default")
def topk(
    ctx: Context, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    """topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor
    indices)"""
    if not x.type.rank:
        return x, ctx.scalar(0, I64)
    d = dim % x.type.rank
    values, indices = _sorted(ctx, x, d, descending=largest)
    return ctx.slice(values, d, 0, k), ctx.slice(indices, d, 0, k)


@rule("aten.kthvalue.default")
def kthvalue(ctx: Context, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)"""
    if not x.type.rank:
        return x, ctx.scalar(0, I64)
    d = dim % x.type.rank
    found = (ctx.slice(part, d, k - 1, k) for part in _sorted(ctx, x, d, False))
    values, indices = (ctx.reshape(part, ctx.shape) for part in found)
    return values, indices


NAN_AS_INTEGER = {I32: -(2**31), I64: -(2**63), I1: True}
"""What PyTorch's kernels make of NaN, the median of no elements; numbers of fewer bits become 0."""


@rule("aten.median.default")
def median(ctx: Context, x: Value) -> Value:
    """median(Tensor self) -> Tensor"""
    kind = x.type.element_type
    flat = ctx.not_empty(ctx.flattened(x), math.nan if is_float(kind) else NAN_AS_INTEGER.get(kind, 0))
    values, _ = _sorted(ctx, flat, 0, False)
    count = ctx.extent(flat, 0)
    found, largest = (ctx.reshape(ctx.window(values, 0, at, 1), ()) for at in ((count - 1) // 2, count - 1))
    # A NaN, which is sorted to the end, is the median.
    return ctx.select(ctx.compare("EQ", largest, largest), found, largest)


@rule("aten.searchsorted.Tensor")
def searchsorted(
    ctx: Context,
    sorted_sequence: Value,
    x: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str?
    side=None, Tensor? sorter=None) -> Tensor"""
    if sorter is not None:
        sorted_sequence = gather(ctx, sorted_sequence, sorted_sequence.type.rank - 1, sorter)
    sequence, x = ctx.promoted(sorted_sequence, x)
    after = "GT" if right or side == "right" else "GE"

    def before(elements: Value, numbers: Value) -> Value:
        return ctx.add(ops.Not(ctx.compare(after, elements, numbers)))  # holds for NaN, whose place is the end

    return places_in(ctx, sequence, x, before, ctx.result.element_type)


# Softmax


@rule("aten._softmax.default", "aten.softmax.int", "aten._safe_softmax.default")
def softmax(ctx: Context, x: Value, dim: int, half_to_float: object = False) -> Value:
    """_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"""
    if not is_float(ctx.result.element_type):
        return _of_nothing(ctx, x)
    wide = ctx.convert(x, accumulation_type(ctx.result.element_type))
    if not x.type.rank:
        return ctx.full_like(ctx.convert(x, ctx.result.element_type), 1)
    # Of a safe softmax, rows that are masked out entirely are zero.
    result = softmax_of(ctx, wide, dim % x.type.rank, "safe" in ctx.op)
    return ctx.convert(result, ctx.result.element_type)


def _of_nothing(ctx: Context, x: Value) -> Value:
    """Returns the softmax of numbers that are not floats: PyTorch takes them if there are none."""
    if 0 not in x.type.shape:
        ctx.unsupported("self", x.type, "floats")
    return x


def softmax_of(ctx: Context, x: Value, d: int, masked: bool = False) -> Value:
    """Returns the softmax along one dimension. `masked`: rows of nothing but minus infinity are zero."""
    highest = ctx.reduce(ops.Maximum, x, (d,), keep=True)
    if masked:
        nothing = ctx.compare("EQ", highest, ctx.scalar_like(-math.inf, highest))
        highest = ctx.select(nothing, ctx.full_like(highest, 0), highest)
    power = ctx.add(ops.Exponential(ctx.minus(x, highest)))
    total = ctx.reduce(ops.Add, power, (d,), keep=True)
    if masked:
        nothing = ctx.compare("EQ", total, ctx.scalar_like(0, total))
        total = ctx.select(nothing, ctx.full_like(total, 1), total)
    return ctx.over(power, total)


@rule("aten._log_softmax.default", "aten.log_softmax.int")
def log_softmax(ctx: Context, x: Value, dim: int, half_to_float: object = False) -> Value:
    """_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"""
    if not is_float(ctx.result.element_type):
        return _of_nothing(ctx, x)
    wide = ctx.convert(x, accumulation_type(ctx.result.element_type))
    if not x.type.rank:
        return ctx.full_like(ctx.convert(x, ctx.result.element_type), 0)
    d = dim % x.type.rank
    shifted = ctx.minus(wide, ctx.reduce(ops.Maximum, wide, (d,), keep=True))
    total = ctx.reduce(ops.Add, ctx.add(ops.Exponential(shifted)), (d,), keep=True)
    return ctx.convert(ctx.minus(shifted, ctx.add(ops.Log(total))), ctx.result.element_type)


@rule("aten.logsumexp.default")
def logsumexp(ctx: Context, x: Value, dim: Dims, keepdim: bool = False) -> Value:
    """logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"""
    x = ctx.convert(x, ctx.result.element_type)
    present = _present(dim, x)
    real = ctx.add(ops.Real(x)) if is_complex(x.type.element_type) else x
    highest = ctx.reduce(ops.Maximum, real, present, keep=True)
    # An infinite maximum would result in NaN; subtract zero there.
    finite = ctx.select(ctx.add(ops.IsFinite(highest)), highest, ctx.full_like(highest, 0))
    shift = ctx.convert(finite, x.type.element_type)
    total = ctx.reduce(ops.Add, ctx.add(ops.Exponential(ctx.minus(x, shift))), present, keep=True)
    return ctx.reshape(ctx.plus(ctx.add(ops.Log(total)), shift), ctx.shape)
