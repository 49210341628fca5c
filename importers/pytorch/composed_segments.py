"""Reductions over segments whose limits are tensors: bags of embeddings, segments, histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed
from trivium.importers.pytorch.segments import segment_sums

SUM, MEAN, MAX = range(3)
REDUCED = {"sum": "sum", "mean": "sum", "max": "amax", "min": "amin", "prod": "prod"}
"""How the elements of a segment are combined."""


def is_static(*tensors: Tensor) -> bool:
    """Whether all extents are known."""
    return all(isinstance(extent, int) for tensor in tensors for extent in tensor.shape)


# Embeddings


@composed("aten.embedding_renorm.default")
def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    places = indices.reshape(-1)
    rows = self.index_select(0, places)
    norms = torch.linalg.vector_norm(rows, norm_type, 1, keepdim=True).to(torch.float64)
    shorter = rows * (max_norm / (norms + 1e-7)).to(self.dtype)
    return self.index_put([places], torch.where(norms > max_norm, shorter, rows))


@composed("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    indices = indices.to(torch.int64)
    starts = offsets[:-1] if include_last_offset else offsets
    count, width = starts.shape[0], weight.shape[1]
    places = torch.arange(indices.shape[0])
    begun = torch.zeros(indices.shape[0] + 1, dtype=torch.int64)
    bag = begun.index_add(0, starts.to(torch.int64), torch.ones_like(starts, dtype=torch.int64)).cumsum(0)[:-1] - 1
    # What is after the last offset is in no bag.
    outside = places >= offsets[-1] if include_last_offset else torch.zeros_like(places, dtype=torch.bool)
    counted = ((indices != padding_idx) & ~outside).unsqueeze(1)
    rows = weight.index_select(0, indices)
    sizes = torch.zeros(count, dtype=torch.int64).index_add(0, bag, counted.squeeze(1).to(torch.int64))
    spread = bag.unsqueeze(1).expand(rows.shape)
    stated = torch.where(outside, count, bag)
    if mode == MAX:
        lowest = torch.where(counted, rows, -math.inf)
        best = torch.full((count, width), -math.inf, dtype=rows.dtype).scatter_reduce(0, spread, lowest, "amax")
        # The first place at which the largest element is.
        wins = torch.where((lowest == best.gather(0, spread)) & counted, places.unsqueeze(1), indices.shape[0])
        first = torch.full((count, width), indices.shape[0]).scatter_reduce(0, spread, wins, "amin")
        present = first < indices.shape[0]
        at = indices[first.clamp(max=max(indices.shape[0] - 1, 0))] if indices.shape[0] else first
        return torch.where(present, best, 0), stated, sizes, torch.where(present, at, 0)
    if padding_idx >= 0 or include_last_offset:
        rows = torch.where(counted, rows, 0)
    if is_static(rows, starts):
        numbers = torch.ones_like(indices, dtype=rows.dtype) if per_sample_weights is None else per_sample_weights
        ends = offsets[1:] if include_last_offset else torch.cat([offsets[1:], torch.full_like(offsets[:1], len(rows))])
        total = segment_sums(rows, numbers, ends - starts)
    else:
        rows = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(1)
        total = torch.zeros((count, width), dtype=rows.dtype).index_add(0, bag, rows)
    if mode == MEAN:
        total = total / sizes.clamp(min=1).unsqueeze(1).to(total.dtype)
    return total, stated, sizes, torch.zeros(count, dtype=torch.int64)


def _of_bags(grad: Tensor, offset2bag: Tensor) -> Tensor:
    """Returns the gradient of the bag that each entry is in, and zeros for those in none."""
    count = grad.shape[0]
    rows = grad.index_select(0, offset2bag.clamp(max=max(count - 1, 0)))
    return torch.where((offset2bag < count).unsqueeze(1), rows, 0)


@composed("aten._embedding_bag_dense_backward.default")
def embedding_bag_dense_backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    if scale_grad_by_freq:  # PyTorch's kernel divides by the counts of other indices
        return NotImplemented
    found = torch.zeros((num_weights, grad.shape[1]), dtype=grad.dtype)
    if mode == MAX:
        present = (bag_size > 0).unsqueeze(1)
        return found.scatter_add(0, maximum_indices, torch.where(present, grad, 0))
    if mode == MEAN:
        grad = grad / bag_size.clamp(min=1).unsqueeze(1).to(grad.dtype)
    rows = _of_bags(grad, offset2bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    return found.index_add(0, indices, torch.where((indices != padding_idx).unsqueeze(1), rows, 0))


@composed("aten._embedding_bag_backward.default")
def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    if sparse:
        return NotImplemented
    weights = (num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx)
    return embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, *weights)


@composed("aten._embedding_bag_per_sample_weights_backward.default")
def embedding_bag_weights_backward(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    found = (_of_bags(grad, offset2bag) * weight.index_select(0, indices)).sum(1)
    return torch.where(indices != padding_idx, found, 0)


# Segments along a dimension


def _limits(lengths: Tensor | None, offsets: Tensor | None) -> tuple[Tensor, Tensor]:
    """Returns the ends of segments, and how long they are."""
    if lengths is not None:
        return lengths.cumsum(-1), lengths
    assert offsets is not None
    return offsets[..., 1:], offsets.diff(dim=-1)


def _places(ends: Tensor, data: Tensor, axis: int) -> Tensor:
    """Returns the segment of each element; one beyond the last for elements after it."""
    positions = torch.arange(data.shape[axis]).expand(*data.shape[: axis + 1]).contiguous()
    found = torch.searchsorted(ends.to(torch.int64).contiguous(), positions, right=True)
    return found.reshape(*found.shape, *[1] * (data.dim() - axis - 1)).expand(data.shape)


def _shaped(lengths: Tensor, data: Tensor, axis: int) -> Tensor:
    return lengths.reshape(*lengths.shape, *[1] * (data.dim() - axis - 1)).to(data.dtype)


@composed("aten.segment_reduce.default")
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    if indices is not None or (lengths is None and offsets is None):
        return NotImplemented
    ends, lengths = _limits(lengths, offsets)
    if reduce in ("sum", "mean") and axis == 0 and initial is None and is_static(data, lengths):
        total = segment_sums(data, torch.ones(data.shape[0], dtype=data.dtype), lengths)
        return total if reduce == "sum" else total / _shaped(lengths, data, axis)
    neutral = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}[reduce]
    shape = list(data.shape)
    shape[axis] = ends.shape[-1] + 1
    start = torch.full(shape, neutral if initial is None else initial, dtype=data.dtype)
    found = start.scatter_reduce(axis, _places(ends, data, axis), data, REDUCED[reduce])
    found = found.narrow(axis, 0, ends.shape[-1])
    if reduce != "mean":
        return found
    sizes = _shaped(lengths, data, axis)
    return torch.where(sizes > 0, found / sizes, math.nan if initial is None else found)


@composed("aten._segment_reduce_backward.default")
def segment_reduce_backward(
    grad: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> Tensor:
    ends, lengths = _limits(lengths, offsets)
    places, sizes = _places(ends, data, axis), _shaped(lengths, data, axis)
    inside = places < ends.shape[-1]
    places = places.clamp(max=ends.shape[-1] - 1)

    def total(x: Tensor) -> Tensor:
        return torch.zeros_like(output).scatter_add(axis, places, torch.where(inside, x, 0))

    if reduce == "mean":
        grad = grad / sizes
    if reduce in ("max", "min"):
        same = (data == output.gather(axis, places)) | data.isnan()
        # PyTorch's kernels divide gradients among equal elements only where they are positive.
        grad = torch.where(grad > 0, grad / total(same.to(data.dtype)).clamp(min=1), grad)
        return torch.where(inside & same, grad.gather(axis, places), 0)
    found = torch.where(inside, grad.gather(axis, places), 0)
    if reduce != "prod":
        return found
    # Where one element is zero, its own derivative is the product of the others.
    zero = data == 0
    others = torch.full_like(output, 1.0 if initial is None else initial)
    others = others.scatter_reduce(axis, places, torch.where(zero | ~inside, 1, data), "prod")
    zeros = total(zero.to(data.dtype)).gather(axis, places)
    alone = torch.where(zeros == 1, others.gather(axis, places), 0)
    return found * torch.where(zero, alone, output.gather(axis, places) / torch.where(zero, 1, data))


# Histograms


def _edges(column: Tensor, bins: int, given: Sequence[float] | None) -> Tensor:
    """Returns the limits of bins of one width."""
    if given is not None:
        low, high = (torch.full((), limit, dtype=column.dtype) for limit in given)
    elif column.numel():
        low, high = column.amin(), column.amax()
    else:
        low, high = (torch.full((), limit, dtype=column.dtype) for limit in (0, 1))
    same = low == high
    low, high = torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high)
    steps, width = torch.arange(bins + 1), (high - low) / bins
    return torch.where(steps < (bins + 1) // 2, low + steps * width, high - (bins - steps) * width)


def _counted(data: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """Returns how many rows of `data` are in each box; the last edges count."""
    rows = data.reshape(-1, data.shape[-1])
    place = torch.zeros(rows.shape[0], dtype=torch.int64)
    inside = torch.ones(rows.shape[0], dtype=torch.bool)
    shape = [limits.shape[0] - 1 for limits in edges]
    for column, limits, bins in zip(rows.unbind(1), edges, shape, strict=True):
        at = torch.searchsorted(limits, column.contiguous(), right=True) - 1
        inside = inside & (column >= limits[0]) & (column <= limits[-1])
        place = place * bins + at.clamp(0, bins - 1)
    shares = torch.ones(rows.shape[0], dtype=data.dtype) if weight is None else weight.reshape(-1)
    found = torch.zeros(math.prod(shape), dtype=data.dtype).index_add(0, place, torch.where(inside, shares, 0))
    found = found.reshape(shape)
    if not density:
        return found
    found = found / found.sum()
    for d, limits in enumerate(edges):
        found = found / limits.diff().reshape([-1 if i == d else 1 for i in range(len(shape))])
    return found


@composed("aten.histogram.bin_ct")
def histogram(
    self: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    edges = _edges(self.reshape(-1), bins, range)
    return _counted(self.reshape(-1, 1), [edges], weight, density), edges


@composed("aten.histogram.bins_tensor")
def histogram_of_edges(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    return _counted(self.reshape(-1, 1), [bins], weight, density), bins.clone()


@composed("aten._histogramdd_bin_edges.default")
def histogramdd_edges(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> list[Tensor]:
    columns = self.reshape(-1, self.shape[-1]).unbind(1)
    ranges = [None] * len(bins) if range is None else list(zip(range[::2], range[1::2], strict=True))
    return [_edges(column, count, given) for column, count, given in zip(columns, bins, ranges, strict=True)]


@composed("aten._histogramdd_from_bin_cts.default")
def histogramdd(
    self: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor:
    return _counted(self, histogramdd_edges(self, bins, range=range), weight, density)


@composed("aten._histogramdd_from_bin_tensors.default")
def histogramdd_of_edges(
    self: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False
) -> Tensor:
    return _counted(self, bins, weight, density)


# Rows of several lengths, one after another


@composed("aten._jagged_to_padded_dense_forward.default")
def jagged_to_padded_dense(
    values: Tensor, offsets: Sequence[Tensor], max_lengths: Sequence[int], padding_value: float = 0.0
) -> Tensor:  # fmt: skip
    if len(offsets) != 1:
        return NotImplemented  # PyTorch's kernel for the CPU refuses them
    (limits,), (longest,) = offsets, max_lengths
    shape = (limits.shape[0] - 1, longest, *values.shape[1:])
    padding = torch.full((), padding_value, dtype=values.dtype, device=values.device)
    if not values.shape[0]:
        return padding.expand(shape).clone()
    places = limits[:-1, None] + torch.arange(longest, device=values.device)
    present = places < limits[1:, None]
    found = values.index_select(0, torch.where(present, places, 0).flatten()).reshape(shape)
    return torch.where(present.reshape(*present.shape, *(1 for _ in shape[2:])), found, padding)


@composed("aten._padded_dense_to_jagged_forward.default")
def padded_dense_to_jagged(dense: Tensor, offsets: Sequence[Tensor], total_L: int | None = None) -> Tensor:
    if len(offsets) != 1 or total_L is None:
        return NotImplemented  # the extent of the result depends on elements
    limits = offsets[0].to(torch.int64)
    places = torch.arange(total_L, device=dense.device)
    row = torch.searchsorted(limits, places, right=True) - 1
    return dense[row, places - limits[row]]
