"""New tensors: filled ones, ramps, triangles."""

from __future__ import annotations

import numpy as np

from trivium.importers.emit import require_computable
from trivium.importers.pytorch.context import Context, Number, rule
from trivium.ir.core import Value
from trivium.ir.types import F64, I64, is_float


@rule("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def full(ctx: Context, *given: object) -> Value:
    """full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, ...) -> Tensor"""
    return ctx.shaped(ctx.tensor(given[-1], ctx.result.element_type))  # type: ignore[arg-type]


@rule("aten.fill.Scalar", "aten.fill.Tensor")
def fill(ctx: Context, x: Value, value: Value | Number) -> Value:
    """fill.Scalar(Tensor self, Scalar value) -> Tensor"""
    return ctx.shaped(ctx.tensor(value, ctx.result.element_type))


@rule(
    *("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default"),
    # The contents of an empty tensor are unspecified; zeros are as good as anything.
    *("aten.empty.memory_format", "aten.empty_like.default", "aten.new_empty.default", "aten.empty_strided.default"),
    *("aten.new_empty_strided.default", "aten.empty_permuted.default"),
    *("aten._efficientzerotensor.default", "aten._new_zeros_with_same_feature_meta.default"),
)
def zeros(ctx: Context, *given: object) -> Value:
    """zeros(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return ctx.full(ctx.shape, 0, ctx.result.element_type)


@rule("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(ctx: Context, *given: object) -> Value:
    """ones(SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor"""
    return ctx.full(ctx.shape, 1, ctx.result.element_type)


@rule("aten.scalar_tensor.default")
def scalar_tensor(ctx: Context, s: Number) -> Value:
    """scalar_tensor(Scalar s, *, ScalarType? dtype=None, ...) -> Tensor"""
    return ctx.tensor(s, ctx.result.element_type)


@rule("aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(ctx: Context, *given: Number) -> Value:
    """arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, ...) -> Tensor"""
    start = given[0] if len(given) > 1 else 0
    step = given[2] if len(given) > 2 else 1
    return _ramp(ctx, start, step)


@rule("prims.iota.default")
def iota(ctx: Context, length: int, *, start: int, step: int) -> Value:
    """iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad) ->
    Tensor"""
    return _ramp(ctx, start, step)


def _ramp(ctx: Context, start: Number, step: Number) -> Value:
    """Returns `start`, `start + step`, ...; floats are computed in double precision, as in PyTorch."""
    kind, wide = ctx.result.element_type, F64 if is_float(ctx.result.element_type) else I64
    if wide is F64 and ctx.result.is_static:
        return ctx.ramp(start, step, ctx.result.static_shape[0], kind)
    ramp = ctx.iota(ctx.shape, 0, wide)
    scaled = ramp if step == 1 else ctx.times(ramp, ctx.tensor(step, wide))
    return ctx.convert(scaled if start == 0 else ctx.plus(scaled, ctx.tensor(start, wide)), kind)


@rule("aten.linspace.default")
def linspace(ctx: Context, start: Number, end: Number, steps: int) -> Value:
    """linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, ...) -> Tensor"""
    require_computable(steps, "the result")
    return ctx.elements(np.linspace(start, end, steps), ctx.result.element_type)


@rule("aten.eye.default", "aten.eye.m")
def eye(ctx: Context, *given: int) -> Value:
    """eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, ...) -> Tensor"""
    rows, columns = (ctx.iota(ctx.shape, d) for d in range(2))
    return ctx.convert(ctx.compare("EQ", rows, columns), ctx.result.element_type)


@rule("aten.tril.default", "aten.triu.default")
def triangle(ctx: Context, x: Value, diagonal: int = 0) -> Value:
    """tril(Tensor self, SymInt diagonal=0) -> Tensor"""
    shape = ctx.extents(x)[-2:]
    rows, columns = (ctx.iota(shape, d) for d in range(2))
    kept = ctx.compare("LE" if "tril" in ctx.op else "GE", columns, ctx.plus(rows, ctx.scalar(diagonal, I64)))
    return ctx.select(ctx.broadcast(kept, ctx.extents(x)), x, ctx.full_like(x, 0))
