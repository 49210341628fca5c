"""What PyTorch's kernels check of values while they run: indices, and divisors of integers. Only where the caller asks
for it a graph has results that tell of these; PyTorch's error is then raised of them, after the run."""

from __future__ import annotations

import torch

from trivium.importers.dynamic import Extent
from trivium.importers.pytorch.context import Context, Number
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I64, is_integer

IN_SELF = "index out of range in self"
"""What some kernels say of any wrong index."""


def check_indices(
    ctx: Context, indices: Value, extent: Extent, dim: int, error: type[Exception], wraps: bool = False
) -> None:
    """Checks that indices along a dimension are within its extent; those that `wraps` may count from the end."""
    if not ctx.checks_values or not isinstance(extent, int):
        return
    _check_between(ctx, indices, -extent if wraps else 0, extent, error, f"dimension {dim} with size {extent}")


def check_rows(ctx: Context, indices: Value, extent: Extent) -> None:
    """Checks that indices name rows of a table."""
    if ctx.checks_values and isinstance(extent, int):
        _check_between(ctx, indices, 0, extent, IndexError, "")


def _check_between(ctx: Context, indices: Value, low: int, high: int, error: type[Exception], place: str) -> None:
    wide = ctx.convert(indices, I64)
    ends = [ctx.reduce(op, wide, range(wide.type.rank)) for op in (ops.Minimum, ops.Maximum)]

    def verify(found: torch.Tensor) -> None:
        least, most = found.tolist()
        if least > most:  # of no indices
            return
        for index in (least, most):
            if not low <= index < high:
                raise error(f"index {index} is out of bounds for {place}" if place else IN_SELF)

    ctx.check(ctx.concatenate([ctx.unsqueeze(end, [0]) for end in ends], 0), verify)


def check_divisor(ctx: Context, divisor: Value | Number) -> None:
    """Checks that no divisor of integers is zero."""
    kind = ctx.result.element_type
    if not ctx.checks_values or not is_integer(kind) or kind is I1:
        return
    x = ctx.tensor(divisor, kind)
    zero = ctx.reduce(ops.Or, ctx.compare("EQ", x, ctx.full_like(x, 0)), range(x.type.rank))

    def verify(found: torch.Tensor) -> None:
        if found.item():
            raise RuntimeError("ZeroDivisionError")

    ctx.check(zero, verify)
