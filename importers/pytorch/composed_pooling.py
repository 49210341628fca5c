"""Pooling into as many windows as a result has elements: windows differ in size, and overlap."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch._prims_common import suggest_memory_format

from trivium.importers.pytorch.composition import composed


def _windows(extent: int, count: int) -> tuple[Tensor, Tensor]:
    """Returns where each of `count` windows starts, and where it ends."""
    places = torch.arange(count)
    return places * extent // count, ((places + 1) * extent + count - 1) // count


def _shares(extent: int, count: int, dtype: torch.dtype) -> Tensor:
    """Returns the matrix from elements (columns) to the means of windows (rows)."""
    start, end = (limit[:, None] for limit in _windows(extent, count))
    places = torch.arange(extent)
    return ((places >= start) & (places < end)).to(dtype) / (end - start).to(dtype)


@composed("aten._adaptive_avg_pool2d_backward.default", "aten._adaptive_avg_pool3d_backward.default")
def adaptive_avg_pool_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    count = 2 if self.dim() == 3 else self.dim() - 2
    if grad_output.dim() == 4 and self.dim() == 4 and grad_output.shape[-3] != self.shape[-3]:
        count = 3
    found = grad_output
    for d in range(self.dim() - count, self.dim()):
        shares = _shares(self.shape[d], grad_output.shape[d], self.dtype)
        found = (found.movedim(d, -1) @ shares).movedim(-1, d)
    return found


@composed("aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    count = len(output_size)
    spatial = self.shape[-count:]
    lead, found = self.dim() - count, self
    places = torch.zeros((), dtype=torch.int64)
    outside = torch.zeros((), dtype=torch.bool)
    for i, (extent, wanted) in enumerate(zip(spatial, output_size, strict=True)):
        start, end = _windows(extent, wanted)
        longest = max(-(-(k + 1) * extent // wanted) - k * extent // wanted for k in range(wanted)) if wanted else 0
        window = start[:, None] + torch.arange(longest)
        # The dimensions of windows, then those of the elements in them.
        d = lead + i
        found = found.index_select(d, window.clamp(max=extent - 1).reshape(-1)).unflatten(d, (wanted, longest))
        found = found.movedim(d + 1, -1)
        shape = [1] * (2 * count)
        shape[i], shape[count + i] = wanted, longest
        places = places * extent + window.clamp(max=extent - 1).reshape(shape)
        outside = outside | (window >= end[:, None]).reshape(shape)
    found = found.masked_fill(outside, -torch.inf).flatten(-count)
    places = places.expand(*output_size, *found.shape[:0], *places.shape[count:]).flatten(-count)
    largest, at = found.max(-1)
    indices = places.expand(found.shape).gather(-1, at.unsqueeze(-1)).squeeze(-1)
    if self.dim() != 4 or count != 2:
        return largest, indices
    order = suggest_memory_format(self)
    return largest.contiguous(memory_format=order), indices.contiguous(memory_format=order)


@composed("aten.max_unpool2d.default")
def max_unpool(self: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    # PyTorch's own decomposition forgets the order in memory, which its kernel for the CPU keeps.
    found = decomposition_table[torch.ops.aten.max_unpool2d.default](self, indices, output_size)
    return found if self.is_cuda else found.contiguous(memory_format=suggest_memory_format(self))
