"""Dot products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from jax import lax

from trivium.importers.convolution import Layout
from trivium.importers.convolution import dimension_numbers as convolution_numbers
from trivium.importers.jax.context import Context, Ints, Padding, rule
from trivium.ir import ops
from trivium.ir.core import Value

DotNumbers = tuple[tuple[Ints, Ints], tuple[Ints, Ints]]
"""The contracting dimensions of both operands, and the batching ones."""
Precision = lax.Precision | tuple[lax.Precision, lax.Precision] | None


@rule("dot_general")
def dot_general(ctx: Context, lhs: Value, rhs: Value, dimension_numbers: DotNumbers, precision: Precision) -> Value:
    """dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)"""
    contracting, batching = dimension_numbers
    numbers = ops.DotDimensionNumbers(
        lhs_batching_dimensions=tuple(batching[0]),
        rhs_batching_dimensions=tuple(batching[1]),
        lhs_contracting_dimensions=tuple(contracting[0]),
        rhs_contracting_dimensions=tuple(contracting[1]),
    )
    config = _precision(ctx, precision)
    return ctx.add(ops.DotGeneral(lhs, rhs, dot_dimension_numbers=numbers, precision_config=config, result=ctx.result))


@rule("conv_general_dilated")
def conv_general_dilated(
    ctx: Context,
    lhs: Value,
    rhs: Value,
    window_strides: Ints,
    padding: Padding,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: Sequence[Ints],
    feature_group_count: int,
    batch_group_count: int,
    precision: Precision,
) -> Value:
    """conv_general_dilated(lhs, rhs, window, dimension_numbers, group counts)"""
    lhs_layout, rhs_layout, out_layout = (Layout(spec[0], spec[1], tuple(spec[2:])) for spec in dimension_numbers)
    return ctx.add(
        ops.Convolution(
            lhs,
            rhs,
            window_strides=window_strides,
            padding=padding,
            lhs_dilation=lhs_dilation,
            rhs_dilation=rhs_dilation,
            dimension_numbers=convolution_numbers(lhs_layout, rhs_layout, out_layout),
            feature_group_count=feature_group_count,
            batch_group_count=batch_group_count,
            precision_config=_precision(ctx, precision),
            result=ctx.result,
        )
    )


def _precision(ctx: Context, precision: Precision) -> tuple[ops.Precision, ...] | None:
    if precision is None:
        return None
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    if not all(isinstance(one, lax.Precision) for one in pair):
        ctx.unsupported("precision", precision, "lax.Precision")
    return tuple(ops.Precision(one.name) for one in pair)
