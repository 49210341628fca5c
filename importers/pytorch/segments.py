"""Sums of segments of rows. PyTorch has no op for them to which others lead, so this is an op of ours, for which
`composed_segments` asks."""

from __future__ import annotations

import torch

from trivium.importers.pytorch.context import Context, rule
from trivium.ir import ops
from trivium.ir.core import Value

ROWS_OF_GROUPS = ops.RaggedDotDimensionNumbers(
    lhs_contracting_dimensions=(0,), rhs_contracting_dimensions=(0,), lhs_ragged_dimensions=(0,)
)
"""Products of groups of rows, which are contracted."""


@torch.library.custom_op("trivium::segment_sums", mutates_args=())
def segment_sums(rows: torch.Tensor, numbers: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Returns the sums of segments of rows, each row times its number; the segments follow one another from the first
    row on, and have these lengths. A program in parts may run it in PyTorch."""
    segments = torch.arange(lengths.shape[0], device=rows.device).repeat_interleave(lengths)[: rows.shape[0]]
    terms = rows[: segments.shape[0]] * numbers[: segments.shape[0]].reshape(-1, *[1] * (rows.dim() - 1))
    return rows.new_zeros(lengths.shape[0], *rows.shape[1:]).index_add(0, segments, terms)


@segment_sums.register_fake
def _described(rows: torch.Tensor, numbers: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return rows.new_empty(lengths.shape[0], *rows.shape[1:])


@rule("trivium.segment_sums.default")
def sums_of_segments(ctx: Context, rows: Value, numbers: Value, lengths: Value) -> Value:
    """segment_sums(Tensor rows, Tensor numbers, Tensor lengths) -> Tensor"""
    return ctx.add(ops.RaggedDot(numbers, rows, lengths, ragged_dot_dimension_numbers=ROWS_OF_GROUPS))
