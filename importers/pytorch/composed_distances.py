"""Distances between the rows of matrices, and products of three tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed


@composed("aten._cdist_forward.default")
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: int | None) -> Tensor:
    return _length(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


@composed("aten._pdist_forward.default")
def pdist(self: Tensor, p: float = 2) -> Tensor:
    rows, columns = _pairs(self.shape[0])
    return _length(self[rows] - self[columns], p)


def _pairs(count: int) -> tuple[Tensor, Tensor]:
    """Returns the indices of all pairs of two different rows, the smaller one first."""
    if isinstance(count, int):  # PyTorch's own function takes no open sizes
        rows, columns = torch.triu_indices(count, count, 1)
        return rows, columns
    # Row r starts at r (2 count - 1 - r) / 2: the root is rounded, so that the row may be one off.
    twice, places = 2 * count - 1, torch.arange(count * (count - 1) // 2)
    row = ((twice - (twice * twice - 8 * places).double().sqrt()) / 2).to(torch.int64)
    row = row - (row * (twice - row) // 2 > places).to(torch.int64)
    row = row + ((row + 1) * (twice - 1 - row) // 2 <= places).to(torch.int64)
    return row, places - row * (twice - row) // 2 + row + 1


def _length(difference: Tensor, p: float) -> Tensor:
    size = difference.abs()
    if p == 0:
        return (size != 0).to(size.dtype).sum(-1)
    if math.isinf(p):
        return size.amax(-1) if size.shape[-1] else size.sum(-1)
    if p == 1:
        return size.sum(-1)
    return size.square().sum(-1).sqrt() if p == 2 else size.pow(p).sum(-1).pow(1 / p)


def _slope(difference: Tensor, distance: Tensor, p: float) -> Tensor:
    """Returns the derivative of a distance with respect to each part of a difference."""
    size, sign, distance = difference.abs(), difference.sign(), distance.unsqueeze(-1)
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        return sign
    if math.isinf(p):
        return sign * (size == distance)
    found = sign * size.pow(p - 1) / distance.pow(p - 1)
    return torch.where((distance == 0) | (size == 0), 0.0, found)


@composed("aten._cdist_backward.default")
def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    slope = _slope(x1.unsqueeze(-2) - x2.unsqueeze(-3), cdist, p)
    return (grad.unsqueeze(-1) * slope).sum(-2)


@composed("aten._pdist_backward.default")
def pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    rows, columns = _pairs(self.shape[0])
    parts = grad.unsqueeze(-1) * _slope(self[rows] - self[columns], pdist, p)
    return torch.zeros_like(self).index_add(0, rows, parts).index_add(0, columns, -parts)


@composed("aten._trilinear.default")
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: list[int],
    expand2: list[int],
    expand3: list[int],
    sumdim: list[int],
    unroll_dim: int = 1,
) -> Tensor:
    for expand, which in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for d in expand:
            i1, i2, i3 = (x.unsqueeze(d) if i == which else x for i, x in enumerate((i1, i2, i3)))
    product = i1 * i2 * i3
    return product.sum(sumdim, dtype=product.dtype) if sumdim else product
