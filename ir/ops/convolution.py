"""`convolution`: windows of a tensor times kernels, computed as one batched matrix product per kernel position."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Struct
from trivium.ir.codecs import Bools, Ints, Pairs
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops.common import expect_at_least, expect_same_element, expect_shape, expect_size, expect_tensor
from trivium.ir.ops.parameters import check_products, expect_dimension
from trivium.ir.ops.products import Precision, add_products, check_precision, narrow, sum_dtype
from trivium.ir.ops.windows import Window, padded, window_counts, windows_of
from trivium.ir.types import TensorType, dimensions_compatible, is_quantized

__all__ = ["ConvDimensionNumbers", "Convolution"]


@dataclass(frozen=True)
class ConvDimensionNumbers(Struct, mnemonic="stablehlo.conv"):
    """Which dimensions of a convolution's tensors are batch, feature and spatial dimensions. In text: `[b, 0, 1, f]x[0,
    1, i, o]->[b, 0, 1, f]`."""

    input_batch_dimension: int
    input_feature_dimension: int
    input_spatial_dimensions: tuple[int, ...]
    kernel_input_feature_dimension: int
    kernel_output_feature_dimension: int
    kernel_spatial_dimensions: tuple[int, ...]
    output_batch_dimension: int
    output_feature_dimension: int
    output_spatial_dimensions: tuple[int, ...]

    @property
    def input_dimensions(self) -> tuple[int, ...]:
        """Batch, features, space."""
        return (self.input_batch_dimension, self.input_feature_dimension, *self.input_spatial_dimensions)

    @property
    def kernel_dimensions(self) -> tuple[int, ...]:
        """Output features, input features, space."""
        features = (self.kernel_output_feature_dimension, self.kernel_input_feature_dimension)
        return (*features, *self.kernel_spatial_dimensions)

    @property
    def output_dimensions(self) -> tuple[int, ...]:
        """Batch, features, space."""
        return (self.output_batch_dimension, self.output_feature_dimension, *self.output_spatial_dimensions)


class Convolution(Op, name="stablehlo.convolution", traits={PURE, EXPRESSED}):
    """Dot products of windows of `lhs` with the kernels in `rhs`."""

    lhs: Operand
    rhs: Operand
    window_strides: Ints | None = None
    padding: Pairs | None = None
    lhs_dilation: Ints | None = None
    rhs_dilation: Ints | None = None
    window_reversal: Bools | None = None
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision_config: tuple[Precision, ...] | None = None
    result: Result

    def infer(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, batch_group_count):
        numbers = dimension_numbers
        check_conv_dimensions(lhs, rhs, numbers, window_strides, padding, lhs_dilation, rhs_dilation)
        if batch_group_count <= 0:
            fail("C22", f"batch_group_count has {batch_group_count}, expected a positive number")
        kernel = [rhs.shape[axis] for axis in numbers.kernel_spatial_dimensions]
        windows = windows_of([size or 0 for size in kernel], window_strides, padding, lhs_dilation, rhs_dilation)
        extents = [
            None if size is None else lhs.shape[axis]
            for size, axis in zip(kernel, numbers.input_spatial_dimensions, strict=True)
        ]
        batch = lhs.shape[numbers.input_batch_dimension]
        features = rhs.shape[numbers.kernel_output_feature_dimension]
        extents = (None if batch is None else batch // batch_group_count, features, *window_counts(extents, windows))
        shape = dict(zip(numbers.output_dimensions, extents, strict=True))
        return TensorType(tuple(shape[axis] for axis in range(lhs.rank)), lhs.element_type)

    def check(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        window_reversal,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision_config,
        result,
    ):
        expected = Convolution.infer(
            lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, batch_group_count
        )
        if window_reversal is not None:
            expect_size("C9", "window_reversal", window_reversal, lhs.rank - 2, "the rank minus two")
        check_conv_groups(lhs, rhs, dimension_numbers, feature_group_count, batch_group_count)
        check_precision("C24", precision_config)
        expect_tensor("C26", "result", result, lhs.rank, per_axis=True)
        expect_shape("C25", "result", result, expected.shape)
        check_conv_elements(lhs, rhs, dimension_numbers, result)

    def evaluate(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        window_reversal,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        result,
    ):
        numbers = dimension_numbers
        lhs = lhs.astype(sum_dtype(result.dtype)).transpose(numbers.input_dimensions)
        rhs = rhs.astype(sum_dtype(result.dtype)).transpose(numbers.kernel_dimensions)
        if window_reversal is not None:
            rhs = np.flip(rhs, [axis for axis, reverse in enumerate(window_reversal, 2) if reverse])
        windows = windows_of(rhs.shape[2:], window_strides, padding, lhs_dilation, rhs_dilation)
        lhs = padded(lhs, np.zeros((), lhs.dtype), [Window(1), Window(1), *windows])
        batch, _, *extents = lhs.shape
        kernels, inputs, *sizes = rhs.shape
        groups = feature_group_count * batch_group_count
        # Both kinds of groups come first: (groups, batch, features, *space) by (groups, features, kernels, *space).
        lhs = lhs.reshape(batch_group_count, batch // batch_group_count, feature_group_count, inputs, *extents)
        lhs = lhs.transpose(0, 2, 1, *range(4, lhs.ndim), 3)
        lhs = lhs.reshape(groups, batch // batch_group_count, *extents, inputs)
        rhs = rhs.reshape(groups, kernels // groups, inputs, *sizes)
        counts = window_counts(extents, [Window(w.size, w.stride, dilation=w.dilation) for w in windows])
        products = _slide(lhs, rhs, windows, counts)
        products = products.reshape(groups, lhs.shape[1], *counts, kernels // groups)
        products = np.moveaxis(products, (0, -1), (1, 2)).reshape(lhs.shape[1], kernels, *counts)
        return narrow(products, result.dtype).transpose(np.argsort(numbers.output_dimensions))


def _slide(lhs: np.ndarray, rhs: np.ndarray, windows: Sequence[Window], counts: Sequence[int]) -> np.ndarray:
    """Returns the sum over all positions of a kernel of the elements of `lhs` at that position, times the kernel
    there."""
    groups, batch, features = lhs.shape[0], lhs.shape[1], lhs.shape[-1]
    total = np.zeros((groups, batch * math.prod(counts), rhs.shape[1]), lhs.dtype)
    for place in itertools.product(*(range(window.size) for window in windows)):
        seen = tuple(
            slice(start * w.dilation, start * w.dilation + (count - 1) * w.stride + 1 if count else 0, w.stride)
            for start, w, count in zip(place, windows, counts, strict=True)
        )
        rows = lhs[(slice(None), slice(None), *seen)].reshape(groups, batch * math.prod(counts), features)
        add_products(total, rows, rhs[(slice(None), slice(None), slice(None), *place)].swapaxes(1, 2))
    return total


# Checks


def check_conv_dimensions(lhs, rhs, numbers, window_strides, padding, lhs_dilation, rhs_dilation):
    expect_tensor("I1", "lhs", lhs)
    expect_tensor("I2", "rhs", rhs, per_axis=True)
    if lhs.rank != rhs.rank or lhs.rank < 2:
        fail("C1", f"rhs has rank {rhs.rank}, lhs has {lhs.rank}, expected the same, at least 2")
    spatial = lhs.rank - 2
    for size_label, sign_label, name, values in (
        ("C2", "C3", "window_strides", window_strides),
        ("C5", "C6", "lhs_dilation", lhs_dilation),
        ("C7", "C8", "rhs_dilation", rhs_dilation),
    ):
        if values is not None:
            expect_size(size_label, name, values, spatial, "the rank minus two")
            expect_at_least(sign_label, name, values, 1)
    if padding is not None and (len(padding) != spatial or any(len(pair) != 2 for pair in padding)):
        fail("C4", f"padding has {[list(pair) for pair in padding]}, expected {spatial} pairs")
    for size_label, range_label, part in (("C12", "C13", "input"), ("C17", "C18", "kernel"), ("C19", "C20", "output")):
        space = getattr(numbers, f"{part}_spatial_dimensions")
        expect_size(size_label, f"{part}_spatial_dimensions", space, spatial, "the rank minus two")
        dimensions = getattr(numbers, f"{part}_dimensions")
        if sorted(dimensions) != list(range(lhs.rank)):
            fail(
                range_label, f"the {part} dimensions are {sorted(dimensions)}, expected 0 to {lhs.rank - 1}, each once"
            )


def check_conv_groups(lhs, rhs, numbers, feature_group_count, batch_group_count):
    if feature_group_count <= 0:
        fail("C21", f"feature_group_count has {feature_group_count}, expected a positive number")
    if feature_group_count > 1 and batch_group_count > 1:
        fail("C23", f"has {feature_group_count} feature groups and {batch_group_count} batch groups, expected one kind")
    batch, features = lhs.shape[numbers.input_batch_dimension], lhs.shape[numbers.input_feature_dimension]
    kernels, inputs = (
        rhs.shape[numbers.kernel_output_feature_dimension],
        rhs.shape[numbers.kernel_input_feature_dimension],
    )
    for label, what, extent, groups in (
        ("C10", "the batch of lhs", batch, batch_group_count),
        ("C11", "the features of lhs", features, feature_group_count),
        ("C15", "the output features of rhs", kernels, batch_group_count),
        ("C16", "the output features of rhs", kernels, feature_group_count),
    ):
        if extent is not None and extent % groups:
            fail(label, f"{what} have extent {extent}, expected a multiple of the group count {groups}")
    if features is not None and not dimensions_compatible(inputs, features // feature_group_count):
        fail("C14", f"rhs has {inputs} input features, expected {features // feature_group_count} (one group of lhs)")


def check_conv_elements(lhs, rhs, numbers, result):
    if not any(is_quantized(kind.element_type) for kind in (lhs, rhs, result)):
        # The result may be wider, for example for integers: MLIR and XLA accept it.
        return expect_same_element("C27", lhs=lhs, rhs=rhs)
    features = "that of output features"
    expect_dimension("C29", "rhs", rhs, numbers.kernel_output_feature_dimension, features)
    expect_dimension("C30", "result", result, numbers.output_feature_dimension, features)
    return check_products(("C28", "C31", "C32", "C33", "C34"), lhs, rhs, result)
