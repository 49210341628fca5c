"""What PyTorch's kernels check of values while they run: indices, and divisors of integers. Only where the caller asks
for it a graph has results that tell of these; PyTorch's error is then raised of them, after the run."""

from __future__ import annotations

import torch

from trivium.importers.extents import Extent, scalar_of
from trivium.importers.pytorch.context import Context, Number
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I64, is_integer

IN_SELF = "index out of range in self"
"""What some kernels say of any wrong index."""

LOSSES = ("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
"""Ops whose targets, where they are decomposed, are the indices of another op."""


def check_indices(
    ctx: Context, indices: Value, extent: Extent, dim: int, error: type[Exception], wraps: bool = False, by: str = ""
) -> None:
    """Checks that indices along a dimension are within its extent; those that `wraps` may count from the end. `by` is
    the function that PyTorch's message names."""
    message = f"{by}index {{index}} is out of bounds for dimension {dim} with size {{extent}}"
    if ctx.origin in LOSSES:
        error, message = IndexError, "Target {index} is out of bounds."
    _check_between(ctx, indices, extent, error, message, wraps)


def check_rows(ctx: Context, indices: Value, extent: Extent) -> None:
    """Checks that indices name rows of a table."""
    _check_between(ctx, indices, extent, IndexError, IN_SELF)


def check_elements(ctx: Context, indices: Value, extent: Extent) -> None:
    """Checks that indices, which may count from the end, name elements of a flattened tensor."""
    message = "out of range: tried to access index {index} on a tensor of {extent} elements."
    _check_between(ctx, indices, extent, IndexError, message, wraps=True)


def _check_between(
    ctx: Context, indices: Value, extent: Extent, error: type[Exception], message: str, wraps: bool = False
) -> None:
    if not ctx.checks_values:
        return
    wide = ctx.convert(indices, I64)
    bounds = [ctx.reduce(op, wide, range(wide.type.rank)) for op in (ops.Minimum, ops.Maximum)]

    def verify(found: torch.Tensor) -> None:
        least, most, size = found.tolist()
        if least > most:  # of no indices
            return
        for index in (least, most):
            if not (-size if wraps else 0) <= index < size:
                raise error(message.format(index=index, extent=size))

    entries = (*bounds, scalar_of(ctx, extent))
    ctx.check(ctx.concatenate([ctx.unsqueeze(entry, [0]) for entry in entries], 0), verify)


def check_that(ctx: Context, holds: Value, message: str) -> None:
    """Checks that a boolean is true."""

    def verify(found: torch.Tensor) -> None:
        if not found.item():
            raise RuntimeError(message)

    ctx.check(ctx.reshape(holds, ()), verify)


def check_not_negative(ctx: Context, numbers: Value, message: str) -> None:
    """Checks that no number is negative."""
    if ctx.checks_values:
        is_fine = ctx.compare("GE", numbers, ctx.full_like(numbers, 0))
        check_that(ctx, ctx.reduce(ops.And, is_fine, range(numbers.type.rank)), message)


def check_divisor(ctx: Context, divisor: Value | Number) -> None:
    """Checks that no divisor of integers is zero."""
    kind = ctx.result.element_type
    if not ctx.checks_values or not is_integer(kind) or kind is I1:
        return
    x = ctx.tensor(divisor, kind)
    is_fine = ctx.reduce(ops.And, ctx.compare("NE", x, ctx.full_like(x, 0)), range(x.type.rank))
    check_that(ctx, is_fine, "ZeroDivisionError")
