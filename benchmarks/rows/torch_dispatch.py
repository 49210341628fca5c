"""The cost of a call of `torch.compile`: programs that compute almost nothing. Most of it is Dynamo's, which checks
whether the program is for these arguments."""

from __future__ import annotations

import torch

from benchmarks.row import OURS, Call, Row
from benchmarks.rows.with_torch import Example, begin, called


class Added(torch.nn.Module):
    """x + 1 for each argument."""

    def forward(self, *xs: torch.Tensor) -> list[torch.Tensor]:
        return [x + 1 for x in xs]


def row(name: str, count: int, *shape: int, quick: bool = False) -> Row:
    def example() -> Example:
        return Added(), tuple(torch.ones(shape) for _ in range(count))

    def make(threads: int) -> dict[str, Call]:
        model, inputs = begin(example, threads)
        return called({OURS: torch.compile(model, backend="trivium"), "inductor": torch.compile(model)}, inputs)

    return Row(name, make, quick=quick)


ROWS = (
    row("x + 1, 8 elements", 1, 8, quick=True),
    row("x + 1, 1 MB", 1, 1024, 256),
    row("x + 1, 16 arrays of 8 elements", 16, 8),
)
"""The rows of the table, one module for each family."""
