"""Single elementwise operations of PyTorch on half a million elements, compiled ahead of time."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.rows.with_torch import ahead

NN = torch.nn


def row(name: str, module: NN.Module, shape: tuple[int, ...] = (512, 1024), **fields: Any) -> Any:
    return ahead(f"{name} {'x'.join(map(str, shape))}", lambda: (module, (torch.randn(shape),)), **fields)


ROWS = (
    row("layer norm", NN.LayerNorm(1024), quick=True),
    row("softmax", NN.Softmax(-1), quick=True),
    row("sigmoid", NN.Sigmoid()),
    row("tanh", NN.Tanh()),
    row("gelu", NN.GELU()),
    row("max pool 3x3/2", NN.MaxPool2d(3, 2, 1), (1, 64, 112, 112)),
    row("nearest resizing x2", NN.Upsample(scale_factor=2), (1, 64, 112, 112)),
)
