"""Convolutions as contraction problems: any layout, stride, padding, dilation and grouping, in any number of spatial dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from trivium.backends.cpu.contraction.problem import Access, Axis, Group, Problem, dimension


@dataclass(frozen=True)
class Spatial:
    """One spatial dimension: extents, element strides in input, kernel and output, and the window's attributes as in StableHLO."""

    input: int
    kernel: int
    input_stride: int
    kernel_stride: int
    output_stride: int
    stride: int = 1
    low: int = 0
    high: int = 0
    lhs_dilation: int = 1
    rhs_dilation: int = 1
    reversal: bool = False

    @property
    def output(self) -> int:
        span = (self.input - 1) * self.lhs_dilation + 1 + self.low + self.high if self.input else self.low + self.high
        return max(0, (span - (self.kernel - 1) * self.rhs_dilation - 1) // self.stride + 1)


@dataclass(frozen=True)
class Features:
    """The dimensions apart from space: extents, and element strides. `inputs` and `outputs` count the features of one group."""

    batch: int
    groups: int
    inputs: int
    outputs: int
    lhs_batch: int
    lhs_feature: int
    rhs_input: int
    rhs_output: int
    out_batch: int
    out_feature: int


def convolution(features: Features, spatial: tuple[Spatial, ...]) -> Problem:
    """Rows are output positions, columns output features, the reduction runs over the window and the input features, groups are a batch."""
    f = features
    group, batch, inputs, outputs = (Axis(extent) for extent in (f.groups, f.batch, f.inputs, f.outputs))
    positions = tuple(Axis(s.output) for s in spatial)
    taps = tuple(Axis(s.kernel) for s in spatial)
    lhs = Access({group: f.inputs * f.lhs_feature, batch: f.lhs_batch, inputs: f.lhs_feature})
    rhs = Access({group: f.outputs * f.rhs_output, inputs: f.rhs_input, outputs: f.rhs_output})
    out = Access({group: f.outputs * f.out_feature, batch: f.out_batch, outputs: f.out_feature})
    for s, position, tap in zip(spatial, positions, taps, strict=True):
        terms = ((position, s.stride), (tap, s.rhs_dilation))
        lhs = dimension(lhs, s.input, s.input_stride, terms, -s.low, s.lhs_dilation)
        kernel = ((tap, -1),) if s.reversal else ((tap, 1),)
        rhs = dimension(rhs, s.kernel, s.kernel_stride, kernel, s.kernel - 1 if s.reversal else 0)
        out = dimension(out, s.output, s.output_stride, ((position, 1),))
    return Problem(Group((group,)), Group((batch, *positions)), Group((outputs,)), Group((*taps, inputs)), lhs, rhs, out)
