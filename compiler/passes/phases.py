"""Convolutions of images with holes, as transposed ones of generators and decoders, whose features are so few that they
do not fill vectors. Each d-th position of the result uses every d-th tap of the kernel, and no hole: it is the result
of a convolution of the image as it is, whose windows slide along lines (`few_channels.py`). The results of the phases
are interleaved."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

from trivium.compiler.lowering.contraction import conv_windows
from trivium.compiler.passes.few_channels import fills_lines
from trivium.compiler.passes.layout import of_floats
from trivium.compiler.passes.manager import Pass, blocks
from trivium.compiler.target import MASKED_BYTES
from trivium.ir import ops
from trivium.ir.builder import Rewriter
from trivium.ir.core import Value
from trivium.ir.func import Module

INTERLEAVED = 12
"""The products of vectors, with features in their lanes, that take as long as interleaving one element of the
result."""
MOST_PHASES = 8
"""The number of convolutions up to which their results are interleaved in one kernel."""


@dataclass(frozen=True)
class SplitPhases(Pass):
    """Afterwards, convolutions with so few features that they fill half a vector at most have no holes in their
    images."""

    NAME: ClassVar[str] = "split-phases"

    vector_bytes: int

    def run(self, module: Module) -> bool:
        every = [op for block in blocks(module) for op in block if isinstance(op, ops.Convolution)]
        found = [op for op in every if self._gains(op)]
        for op in found:
            _split(op)
        return bool(found)

    def _gains(self, op: ops.Convolution) -> bool:
        steps, numbers, shape = _steps(op), op.dimension_numbers, op.result.type.static_shape
        taps = [op.rhs.type.static_shape[d] for d in numbers.kernel_spatial_dimensions]
        plain = of_floats(op) and op.feature_group_count == 1 == op.batch_group_count
        even = {*(op.window_strides or ()), *(op.rhs_dilation or ())} <= {1}
        every = all(tap >= step for tap, step in zip(taps, steps, strict=True))
        masked = self.vector_bytes >= MASKED_BYTES
        empty = 0 in (op.lhs.type.size, op.result.type.size)
        if empty or not (masked and plain and even and every and 1 < math.prod(steps) <= MOST_PHASES):
            return False
        features, lanes = shape[numbers.output_feature_dimension], self.vector_bytes // op.result.type.dtype.itemsize
        terms = op.rhs.type.size // features / math.prod(steps)
        line = -(-shape[numbers.output_spatial_dimensions[-1]] // steps[-1])
        return features <= lanes // 2 and terms >= INTERLEAVED * features and fills_lines(line, lanes)


@dataclass(frozen=True)
class Phase:
    """The positions `first`, `first` + `step`, ... of the result along a dimension, and the taps that they use."""

    first: int
    step: int
    taps: int
    """The kernel's number of taps."""
    low: int
    """The padding before the image with its holes."""

    @property
    def tap(self) -> int:
        """The first of its taps, which are `step` apart."""
        return (self.low - self.first) % self.step

    @property
    def count(self) -> int:
        """The number of its taps."""
        return -(-(self.taps - self.tap) // self.step)

    def padding(self, results: int, extent: int) -> tuple[int, int]:
        """Returns the padding of the image as it is, of `extent` positions, for this many results."""
        low = (self.low - self.first - self.tap) // self.step
        return low, results - 1 + self.count - extent - low


def _split(op: ops.Convolution) -> None:
    rewriter, numbers, steps = Rewriter(op), op.dimension_numbers, _steps(op)
    places, shape = numbers.output_spatial_dimensions, list(op.result.type.static_shape)
    for d, step in zip(places, steps, strict=True):
        shape[d] = -(-shape[d] // step)
    each = [
        [Phase(first, window.base_dilation, window.size, window.low) for first in range(window.base_dilation)]
        for window in conv_windows(op)
    ]
    results = [_phase(rewriter, op, phases, shape) for phases in itertools.product(*each)]
    rewriter.replace(_interleaved(rewriter, op, results, shape))


def _phase(rewriter: Rewriter, op: ops.Convolution, phases: tuple[Phase, ...], shape: list[int]) -> Value:
    """Returns the part of the result, of this shape, that has the phases of the spatial dimensions."""
    numbers, image, kernel = op.dimension_numbers, op.lhs.type.static_shape, op.rhs.type.static_shape
    starts, limits, strides = [0] * len(kernel), list(kernel), [1] * len(kernel)
    padding = []
    for number, phase in enumerate(phases):
        d = numbers.kernel_spatial_dimensions[number]
        # A kernel that is turned has its last element at the first tap.
        turned = op.window_reversal is not None and op.window_reversal[number]
        starts[d], strides[d] = (phase.taps - 1 - phase.tap) % phase.step if turned else phase.tap, phase.step
        results = shape[numbers.output_spatial_dimensions[number]]
        padding.append(phase.padding(results, image[numbers.input_spatial_dimensions[number]]))
    taken = rewriter.add(ops.Slice(op.rhs, starts, limits, strides))
    kept = {name: value for name, value in op.attributes.items() if name != "lhs_dilation"}
    attributes = kept | {"padding": tuple(padding)}
    kinds = [op.result.type.with_shape(tuple(shape))]
    new = type(op).create([op.lhs, taken], kinds, attributes, [], op.extra, op.location, op.segments)
    rewriter.add(new)
    return new.results[0]


def _interleaved(rewriter: Rewriter, op: ops.Convolution, results: list[Value], shape: list[int]) -> Value:
    """Returns the result of `op`, from its parts in the order of their phases."""
    places, steps = op.dimension_numbers.output_spatial_dimensions, _steps(op)
    apart = [rewriter.add(ops.Reshape(one, result=one.type.with_shape((1, *shape)))) for one in results]
    stacked = rewriter.add(ops.Concatenate(apart, dimension=0))
    spread = rewriter.add(ops.Reshape(stacked, result=stacked.type.with_shape((*steps, *shape))))
    order = []
    for d in range(len(shape)):
        order += [len(steps) + d, *([places.index(d)] if d in places else [])]
    turned = rewriter.add(ops.Transpose(spread, permutation=order))
    whole = [extent * (steps[places.index(d)] if d in places else 1) for d, extent in enumerate(shape)]
    merged = rewriter.add(ops.Reshape(turned, result=turned.type.with_shape(tuple(whole))))
    limits, rank = op.result.type.static_shape, len(shape)
    return merged if tuple(whole) == limits else rewriter.add(ops.Slice(merged, [0] * rank, limits, [1] * rank))


def _steps(op: ops.Convolution) -> list[int]:
    """Returns the distances of the image's elements, including their holes."""
    return [window.base_dilation for window in conv_windows(op)]
