"""Fractional max pooling: windows of one size whose distances are drawn, for each channel of each image."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed


@composed("aten.fractional_max_pool2d.default", "aten.fractional_max_pool3d.default")
def fractional_max_pool(
    self: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Tensor
) -> tuple[Tensor, Tensor]:
    count = len(output_size)
    x = self if self.dim() == count + 2 else self.unsqueeze(0)
    batch, channels, *spatial = x.shape
    # Of images, the first sample is that of the columns; of volumes, that of the outermost dimension.
    order = range(count)[:: -1 if count == 2 else 1]
    places = torch.zeros((), dtype=torch.int64)
    for d, (extent, wanted, size) in enumerate(zip(spatial, output_size, kernel_size, strict=True)):
        start = _starts(random_samples[:batch, :, order[d]], extent, wanted, size)
        shape = [batch, channels, *[1] * (2 * count)]
        shape[2 + d], shape[2 + count + d] = wanted, size
        places = places * extent + (start.unsqueeze(-1) + torch.arange(size)).reshape(shape)
    places = places.flatten(2 + count)
    elements = x.flatten(2).gather(2, places.flatten(2)).reshape(places.shape)
    largest, at = elements.max(-1)
    if elements.is_floating_point():  # of several NaN, PyTorch's kernel takes the last one
        missing = torch.where(elements.isnan(), torch.arange(prod(kernel_size)), -1).amax(-1)
        at = torch.where(missing < 0, at, missing)
    found = largest, places.gather(-1, at.unsqueeze(-1)).squeeze(-1)
    one, other = found if x is self else (part.squeeze(0) for part in found)
    return one, other


def _starts(samples: Tensor, extent: int, wanted: int, size: int) -> Tensor:
    """Returns where the windows along one dimension start. The last one is at the end."""
    last, places = extent - size, torch.arange(wanted)
    step = torch.full((), last, dtype=samples.dtype) / max(wanted - 1, 1)
    moved = (places.to(samples.dtype) + samples.unsqueeze(-1)) * step
    start = moved.to(torch.int64) - (samples * step).to(torch.int64).unsqueeze(-1)
    return torch.where(places == wanted - 1, last, start)


@composed("aten.fractional_max_pool2d_backward.default", "aten.fractional_max_pool3d_backward.default")
def fractional_max_pool_backward(
    grad_output: Tensor, self: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], indices: Tensor
) -> Tensor:
    first = self.dim() - len(output_size)
    found = torch.zeros_like(self).flatten(first)
    return found.scatter_add(first, indices.flatten(first), grad_output.flatten(first)).reshape(self.shape)
