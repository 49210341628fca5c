"""Sampling of images at any place: each result is a weighted sum of elements, whose places and weights are computed
here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


class Axis:
    """The places along one dimension: coordinates in elements, and how they change with those in the grid."""

    def __init__(self, given: Tensor, extent: int, align_corners: bool):
        self.extent = extent
        self.aligned = align_corners
        self.slope = torch.full_like(given, (extent - 1 if align_corners else extent) / 2)
        self.place = (given + 1) / 2 * (extent - 1) if align_corners else ((given + 1) * extent - 1) / 2

    def inside(self, place: Tensor, padding: int) -> tuple[Tensor, Tensor]:
        """Returns coordinates as the padding moves them, and by what factor they then change."""
        same = torch.ones_like(place)
        if padding == ZEROS:
            return place, same
        if padding == REFLECTION:
            place, same = self._reflected(place)
        kept = (place > 0) & (place < self.extent - 1)
        return place.clamp(0, self.extent - 1), same * kept

    def _reflected(self, place: Tensor) -> tuple[Tensor, Tensor]:
        low, span = (0.0, self.extent - 1.0) if self.aligned else (-0.5, float(self.extent))
        if not span:
            return torch.zeros_like(place), torch.zeros_like(place)
        away = (place - low).abs()
        turns = (away / span).floor()
        rest, is_even = away - turns * span, turns % 2 == 0
        sign = torch.where(place >= low, 1.0, -1.0).to(place.dtype)
        return torch.where(is_even, rest + low, span - rest + low), torch.where(is_even, sign, -sign)


def _cubic(t: Tensor, a: float = -0.75) -> tuple[list[Tensor], list[Tensor]]:
    """Returns the weights of the four elements around a place, and their derivatives."""
    near, far = (t, 1 - t), (t + 1, 2 - t)
    inner = [((a + 2) * x - (a + 3)) * x * x + 1 for x in near]
    outer = [((a * x - 5 * a) * x + 8 * a) * x - 4 * a for x in far]
    of_inner = [(3 * (a + 2) * x - 2 * (a + 3)) * x for x in near]
    of_outer = [(3 * a * x - 10 * a) * x + 8 * a for x in far]
    return [outer[0], *inner, outer[1]], [of_outer[0], of_inner[0], -of_inner[1], -of_outer[1]]


Tap = tuple[Tensor, Tensor, Tensor]
"""Places along a dimension as integers, their weights, and the derivatives of these by the grid; zero outside."""


def _taps(axis: Axis, interpolation: int, padding: int) -> list[Tap]:
    """Returns which elements along a dimension a sample is made of."""
    if interpolation == BICUBIC:
        first = axis.place.floor()
        weights, slopes = _cubic(axis.place - first)
        places = [axis.inside(first + offset, padding)[0] for offset in (-1, 0, 1, 2)]
    else:
        place, factor = axis.inside(axis.place, padding)
        if interpolation == NEAREST:
            places, weights, slopes = [place.round()], [torch.ones_like(place)], [torch.zeros_like(place)]
        else:
            first = place.floor()
            places, weights, slopes = [first, first + 1], [first + 1 - place, place - first], [-factor, factor]
    found = []
    for place, weight, slope in zip(places, weights, slopes, strict=True):
        present = (place >= 0) & (place <= axis.extent - 1)
        found.append(
            (
                torch.where(present, place, 0).to(torch.int64),
                torch.where(present, weight, 0),
                torch.where(present, slope * axis.slope, 0),
            )
        )
    return found


class Planes:
    """Images as [image, channel, place]."""

    def __init__(self, images: int, channels: int):
        self.channels = channels

    def of(self, image: Tensor) -> Tensor:
        return image.flatten(2)

    def spread(self, numbers: Tensor) -> Tensor:
        """Returns numbers for [image, place] so that they are the same for all channels."""
        return numbers.unsqueeze(1)

    def take(self, elements: Tensor, index: Tensor) -> Tensor:
        return elements.gather(2, self._of_all_channels(index))

    def add(self, elements: Tensor, index: Tensor, summands: Tensor) -> Tensor:
        return elements.scatter_add(2, self._of_all_channels(index), summands)

    def image(self, elements: Tensor, shape: Sequence[int]) -> Tensor:
        return elements.reshape(shape)

    def _of_all_channels(self, index: Tensor) -> Tensor:
        return index.unsqueeze(1).expand(-1, self.channels, -1)


class Rows:
    """Images as [image and place, channel]: the channels of a place are vectors in memory."""

    FEWEST = 8
    """The number of channels from which on two transpositions take less time than they save."""

    def __init__(self, images: int, channels: int):
        self.images, self.channels = images, channels

    def of(self, image: Tensor) -> Tensor:
        return image.flatten(2).transpose(1, 2).reshape(-1, self.channels)

    def spread(self, numbers: Tensor) -> Tensor:
        return numbers.reshape(-1, 1)

    def take(self, elements: Tensor, index: Tensor) -> Tensor:
        return elements.index_select(0, self._row(elements, index))

    def add(self, elements: Tensor, index: Tensor, summands: Tensor) -> Tensor:
        return elements.index_add(0, self._row(elements, index), summands)

    def image(self, elements: Tensor, shape: Sequence[int]) -> Tensor:
        return elements.reshape(self.images, -1, self.channels).transpose(1, 2).reshape(shape)

    def _row(self, elements: Tensor, index: Tensor) -> Tensor:
        first = torch.arange(self.images, device=index.device) * (elements.shape[0] // self.images)
        return (index + first.unsqueeze(1)).flatten()


class Samples:
    """The elements of `input` that the samples at `grid` are made of. The last coordinate of a grid comes first."""

    def __init__(self, input: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool):
        self.count = input.dim() - 2
        self.extents = input.shape[2:]
        images, channels = input.shape[:2]
        self.layout = (Rows if channels >= Rows.FEWEST else Planes)(images, channels)
        self.elements = self.layout.of(input)
        axes = [
            Axis(grid[..., self.count - 1 - d].flatten(1), self.extents[d], align_corners) for d in range(self.count)
        ]
        self.taps = [_taps(axis, interpolation, padding) for axis in axes]
        self.shape = (images, channels, *grid.shape[1:-1])

    def corners(self) -> list[tuple[Tensor, Sequence[Tap]]]:
        """Returns for each combination of taps the indices of the elements, for [image, place]."""
        found = []
        for chosen in product(*self.taps):
            index = torch.zeros_like(chosen[0][0])
            for (place, _, _), extent in zip(chosen, self.extents, strict=True):
                index = index * extent + place
            found.append((index, chosen))
        return found

    def sample(self) -> Tensor:
        parts = [self.layout.take(self.elements, index) * self._weight(taps) for index, taps in self.corners()]
        return self.layout.image(sum(parts[1:], parts[0]), self.shape)

    def gradient_of_input(self, gradient: Tensor) -> Tensor:
        found, gradient = torch.zeros_like(self.elements), self.layout.of(gradient)
        for index, taps in self.corners():
            found = self.layout.add(found, index, gradient * self._weight(taps))
        return self.layout.image(found, (*self.shape[:2], *self.extents))

    def gradient_of_grid(self, gradient: Tensor) -> Tensor:
        columns = [torch.zeros_like(self.taps[0][0][1])] * self.count
        for index, taps in self.corners():
            products = self.layout.of(gradient) * self.layout.take(self.elements, index)
            value = products.sum(1).reshape(self.shape[0], -1)
            for d in range(self.count):
                columns[d] = columns[d] + value * _weight(
                    [(p, s if i == d else w, s) for i, (p, w, s) in enumerate(taps)]
                )
        return torch.stack(columns[::-1], -1).reshape(self.shape[0], *self.shape[2:], self.count)

    def _weight(self, taps: Sequence[Tap]) -> Tensor:
        return self.layout.spread(_weight(taps))


def _weight(taps: Sequence[Tap]) -> Tensor:
    found = taps[0][1]
    for _, weight, _ in taps[1:]:
        found = found * weight
    return found


@composed("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:  # fmt: skip
    return Samples(input, grid, interpolation_mode, padding_mode, align_corners).sample()


@composed("aten.grid_sampler_2d_backward.default", "aten.grid_sampler_3d_backward.default")
def grid_sampler_backward(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor]:
    # Of a copy: elements taken from `input` itself would be the same values as those that the forward pass takes, and
    # be stored until then, which is slower than taking them again.
    samples = Samples(input.clone(), grid, interpolation_mode, padding_mode, align_corners)
    of_input = samples.gradient_of_input(grad_output) if output_mask[0] else None
    return of_input, samples.gradient_of_grid(grad_output)
