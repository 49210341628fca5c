"""Order and counting: medians, the most frequent element, histograms, positions of nonzero elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed


def _picked(values: Tensor, places: Tensor, at: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Returns sorted elements and where they were, at one place along a dimension."""
    found = (x.gather(dim, at) for x in (values, places))
    one, two = (x if keepdim else x.squeeze(dim) for x in found)
    return one, two


@composed("aten.median.dim")
def median(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64)
    values, places = self.sort(dim=dim, stable=True)
    middle = torch.full_like(values.narrow(dim, 0, 1), (self.shape[dim] - 1) // 2, dtype=torch.int64)
    if self.is_floating_point():
        # Sorted last, the first NaN is the result.
        missing = self.isnan().sum(dim, keepdim=True)
        middle = torch.where(missing > 0, self.shape[dim] - missing, middle)
    return _picked(values, places, middle, dim, keepdim)


@composed("aten.nanmedian.dim")
def nanmedian(self: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.is_floating_point() or not self.dim():
        return median(self, dim, keepdim)
    values, places = self.sort(dim=dim, stable=True)
    present = self.shape[dim] - self.isnan().sum(dim, keepdim=True)
    return _picked(values, places, ((present - 1) // 2).clamp(min=0), dim, keepdim)


@composed("aten.nanmedian.default")
def nanmedian_of_all(self: Tensor) -> Tensor:
    if not self.is_floating_point() or not self.numel():
        return self.median()
    return nanmedian(self.reshape(-1), 0)[0]


@composed("aten.mode.default")
def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not self.dim():
        return self.clone(), torch.zeros((), dtype=torch.int64)
    values, places = self.sort(dim=dim, stable=True)
    shape = [1] * self.dim()
    shape[dim] = self.shape[dim]
    steps = torch.arange(self.shape[dim]).reshape(shape)
    differs = torch.cat([torch.ones_like(values.narrow(dim, 0, 1), dtype=torch.bool), values.diff(dim=dim) != 0], dim)
    first = torch.where(differs, steps, 0).cummax(dim).values
    # The smallest of the elements that are there most often, at its last place.
    at = (steps - first).argmax(dim, keepdim=True)
    return _picked(values, places, at, dim, keepdim)


MOST_IN_ORDER = 256
"""The number of complex numbers up to which `logcumsumexp` adds them one after the other."""


@composed("aten.logcumsumexp.default")
def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    if not self.dim():
        return self.clone()
    found, distance, extent = self, 1, self.shape[dim]
    if self.is_complex() and 1 < extent <= MOST_IN_ORDER:
        # In PyTorch's order: which multiple of 2 pi the imaginary parts have depends on it.
        parts = [self.narrow(dim, 0, 1)]
        for place in range(1, extent):
            parts.append(torch.logaddexp(self.narrow(dim, place, 1), parts[-1]))
        return torch.cat(parts, dim)
    while distance < extent:
        before = found.narrow(dim, 0, extent - distance)
        joined = torch.logaddexp(found.narrow(dim, distance, extent - distance), before)
        found = torch.cat([found.narrow(dim, 0, distance), joined], dim)
        distance *= 2
    return found.clone() if found is self else found


@composed("aten.histc.default")
def histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    flat = self.reshape(-1)
    low, high = torch.full((), min, dtype=self.dtype), torch.full((), max, dtype=self.dtype)
    if min == max and self.numel():
        low, high = flat.amin(), flat.amax()
    same = low == high
    low, high = torch.where(same, low - 1, low), torch.where(same, high + 1, high)
    place = ((flat - low) / (high - low) * bins).to(torch.int64).clamp(0, bins - 1)
    counted = ((flat >= low) & (flat <= high)).to(self.dtype)
    return torch.zeros(bins, dtype=self.dtype).index_add(0, place, counted)


@composed("aten.nonzero_static.default")
def nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    chosen = self.reshape(-1) != 0
    # Each chosen element goes to the row of its rank, all others beyond the end.
    rank = torch.where(chosen, chosen.to(torch.int64).cumsum(0) - 1, size).clamp(max=size)
    places, columns = torch.arange(chosen.shape[0]), []
    for extent in reversed(self.shape):
        start = torch.full((size + 1,), fill_value, dtype=torch.int64)
        columns.append(start.scatter(0, rank, places % extent if extent else places)[:size])
        places = places // max(extent, 1)
    return torch.stack(columns[::-1], 1) if columns else torch.empty((size, 0), dtype=torch.int64)


@composed("aten.masked_scatter_backward.default")
def masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    chosen, count = mask.expand(grad_output.shape).reshape(-1), math.prod(sizes)
    # The chosen elements in their order; those that are too many go beyond the end.
    rank = torch.where(chosen, chosen.to(torch.int64).cumsum(0) - 1, count).clamp(max=count)
    found = torch.zeros(count + 1, dtype=grad_output.dtype)
    return found.scatter(0, rank, grad_output.reshape(-1))[:count].reshape(sizes)


@composed("aten.searchsorted.Scalar")
def searchsorted(
    sorted_sequence: Tensor,
    self: float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    number = torch.scalar_tensor(self, dtype=sorted_sequence.dtype)
    return torch.searchsorted(sorted_sequence, number, out_int32=out_int32, right=right, side=side, sorter=sorter)


@composed("aten.bucketize.Tensor")
def bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return torch.searchsorted(boundaries, self, out_int32=out_int32, right=right)


@composed("aten.bucketize.Scalar")
def bucketize_number(self: float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


@composed("aten.isin.Scalar_Tensor")
def isin(element: float, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    # PyTorch's decomposition rounds the number to 32 bits first.
    found = (test_elements == element).any()
    return found.logical_not() if invert else found
