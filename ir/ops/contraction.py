"""Sums of products: `dot_general` and `convolution`.

Both evaluate as batched matrix products. Floats of 32 and 64 bits are rounded after each product and each sum, in the
order of the contracted elements, which is the specification read literally and what StableHLO's own interpreter does;
narrower ones are rounded once at the end, as no device sums in them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Enumeration, Struct, enumeration
from trivium.ir.codecs import Bools, Ints, Pairs
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops.common import (
    expect_at_least,
    expect_same_element,
    expect_shape,
    expect_size,
    expect_tensor,
    expect_within,
)
from trivium.ir.ops.numerics import rounded
from trivium.ir.ops.parameters import check_products, expect_dimension
from trivium.ir.ops.windows import Window, padded, window_counts, windows_of
from trivium.ir.types import (
    FloatType,
    PerAxisType,
    TensorType,
    Type,
    dimensions_compatible,
    is_quantized,
)

__all__ = [
    "ConvDimensionNumbers",
    "Convolution",
    "DotAlgorithm",
    "DotDimensionNumbers",
    "DotGeneral",
    "Precision",
]


@enumeration("stablehlo.precision")
class Precision(Enumeration):
    """How exact the products of an operand shall be; each backend decides what it means."""

    DEFAULT = "DEFAULT"
    HIGH = "HIGH"
    HIGHEST = "HIGHEST"


@dataclass(frozen=True)
class DotDimensionNumbers(Struct, mnemonic="stablehlo.dot"):
    """Which dimensions of the operands of a dot product are batched, and which contracted."""

    lhs_batching_dimensions: tuple[int, ...] = ()
    rhs_batching_dimensions: tuple[int, ...] = ()
    lhs_contracting_dimensions: tuple[int, ...] = ()
    rhs_contracting_dimensions: tuple[int, ...] = ()


@dataclass(frozen=True)
class DotAlgorithm(Struct, mnemonic="stablehlo.dot_algorithm"):
    """The precisions inside a dot product: each operand is a sum of components of a precision type."""

    lhs_precision_type: Type
    rhs_precision_type: Type
    accumulation_type: Type
    lhs_component_count: int
    rhs_component_count: int
    num_primitive_operations: int
    allow_imprecise_accumulation: bool

    def parts(self, side: str) -> int:
        """How many parts of the precision type the values of an operand are split into: as many as are named, and as
        the products between parts of both take (programs name one component, whatever the algorithm)."""
        products = max(1, self.num_primitive_operations)
        return max(getattr(self, f"{side}_component_count"), 1 + math.isqrt(products - 1))


@dataclass(frozen=True)
class ConvDimensionNumbers(Struct, mnemonic="stablehlo.conv"):
    """Which dimensions of a convolution's tensors are batch, features and space. In text
    `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`."""

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


class DotGeneral(Op, name="stablehlo.dot_general", traits={PURE, EXPRESSED}):
    """Dot products along the contracting dimensions, for each index of the batching dimensions. The result has the
    batching dimensions, then those left of `lhs`, then those left of `rhs`."""

    lhs: Operand
    rhs: Operand
    dot_dimension_numbers: DotDimensionNumbers
    precision_config: tuple[Precision, ...] | None = None
    algorithm: DotAlgorithm | None = None
    result: Result

    def infer(lhs, rhs, dot_dimension_numbers):
        numbers = dot_dimension_numbers
        _check_dot_dimensions(lhs, rhs, numbers)
        batch = tuple(lhs.shape[axis] for axis in numbers.lhs_batching_dimensions)
        left = _free(lhs.rank, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions)
        right = _free(rhs.rank, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions)
        shape = (*batch, *(lhs.shape[axis] for axis in left), *(rhs.shape[axis] for axis in right))
        return TensorType(shape, lhs.element_type)

    def check(lhs, rhs, dot_dimension_numbers, precision_config, algorithm, result):
        numbers = dot_dimension_numbers
        expected = DotGeneral.infer(lhs, rhs, numbers)
        _check_pairs("C9", "batching", lhs, numbers.lhs_batching_dimensions, rhs, numbers.rhs_batching_dimensions)
        _check_pairs(
            "C10", "contracting", lhs, numbers.lhs_contracting_dimensions, rhs, numbers.rhs_contracting_dimensions
        )
        check_precision("C11", precision_config)
        expect_shape("C12", "result", result, expected.shape)
        if any(is_quantized(kind.element_type) for kind in (lhs, rhs, result)):
            check_products(("C14", "C17", "C18", "C19", "C20"), lhs, rhs, result)
            _check_quantized_rhs(rhs, numbers.rhs_contracting_dimensions)
        else:
            expect_same_element("C13", lhs=lhs, rhs=rhs)
        if algorithm is not None:
            _check_algorithm(algorithm, precision_config)

    def evaluate(lhs, rhs, dot_dimension_numbers, algorithm, result):
        numbers = dot_dimension_numbers
        if algorithm is not None:
            lhs = _rounded(lhs, algorithm.lhs_precision_type, algorithm.parts("lhs"))
            rhs = _rounded(rhs, algorithm.rhs_precision_type, algorithm.parts("rhs"))
        left = _free(lhs.ndim, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions)
        right = _free(rhs.ndim, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions)
        rows = _grouped(lhs, numbers.lhs_batching_dimensions, left, numbers.lhs_contracting_dimensions)
        columns = _grouped(rhs, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions, right)
        batch = [lhs.shape[axis] for axis in numbers.lhs_batching_dimensions]
        shape = (*batch, *(lhs.shape[axis] for axis in left), *(rhs.shape[axis] for axis in right))
        kind = sum_dtype(result.dtype) if algorithm is None else wide(rows).dtype
        sums = np.zeros((*rows.shape[:-1], columns.shape[-1]), kind)
        add_products(sums, rows.astype(kind), columns.astype(kind))
        return narrow(sums, result.dtype).reshape(shape)


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
            expect_size("C9", "window_reversal", window_reversal, lhs.rank - 2, "the rank less two")
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
        # Both kinds of groups go in front: (groups, batch, features, *space) by (groups, features, kernels, *space).
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
    """The sum over all places of a kernel: what that place sees of `lhs`, times the kernel there."""
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


def add_products(total: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
    """Adds a batched matrix product to `total`, one contracted element after the other, all in the dtype of `total`."""
    if total.dtype.kind == "i":  # exact in any order
        total += np.matmul(rows, columns)
        return
    multiply = _multiply_complex if total.dtype.kind == "c" else np.multiply
    product = np.empty_like(total)
    for index in range(rows.shape[-1]):
        multiply(rows[..., index, None], columns[..., None, index, :], product)
        total += product


def _multiply_complex(lhs: np.ndarray, rhs: np.ndarray, product: np.ndarray) -> None:
    """The product of complex numbers is made of rounded real ones, which NumPy's is not on every machine."""
    product.real = lhs.real * rhs.real - lhs.imag * rhs.imag
    product.imag = lhs.real * rhs.imag + lhs.imag * rhs.real


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """What products are summed in whose sum is to be of `dtype`."""
    return dtype if dtype.kind in "fc" and dtype.itemsize >= 4 else wide(np.empty(0, dtype)).dtype


def wide(array: np.ndarray) -> np.ndarray:
    """The array in the widest type of its kind; booleans and integers as int64, which wraps around as narrower ones
    do."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "biu" or array.dtype.name.startswith(("int", "uint")):
        return array.astype(np.int64)
    return array.astype(np.float64)


def narrow(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounds, or wraps around, to `dtype`; a sum of booleans is their disjunction."""
    return array != 0 if dtype == np.bool_ else rounded(array, dtype)


def _grouped(array: np.ndarray, *groups: Sequence[int]) -> np.ndarray:
    """Transposes so that the axes of a group stand together, and joins each group into one."""
    shape = [math.prod(array.shape[axis] for axis in group) for group in groups]
    return array.transpose([axis for group in groups for axis in group]).reshape(shape)


def _free(rank: int, batching: Sequence[int], contracting: Sequence[int]) -> list[int]:
    return [axis for axis in range(rank) if axis not in batching and axis not in contracting]


def _rounded(array: np.ndarray, precision: Type, parts: int) -> np.ndarray:
    """The sum of the leading `parts` of each value, each rounded to the precision type: what an algorithm that
    splits its operands sees of them. Complex numbers, which no such algorithm is for, stay as they are."""
    if np.iscomplexobj(array):
        return array
    rest = array.astype(np.float64)
    total = np.zeros_like(rest)
    # Each part has a bit at least, and there are 53: what is left behind them is zero, or stays as it is.
    for _ in range(min(parts, 54)):
        part = _round_tf32(rest) if str(precision) == "tf32" else rest.astype(precision.dtype).astype(np.float64)
        total, rest = total + part, np.where(np.isfinite(part), rest - part, 0)
    return total


def _round_tf32(array: np.ndarray) -> np.ndarray:
    """Rounds to the eleven significant bits of TensorFloat-32, ties to even."""
    mantissa, exponent = np.frexp(array)
    return np.ldexp(np.rint(np.ldexp(mantissa, 11)), exponent - 11)


# Checks


def _check_dot_dimensions(lhs, rhs, numbers):
    expect_tensor("I1", "lhs", lhs)
    expect_tensor("I2", "rhs", rhs, per_axis=True)
    for label, kind in (("C1", "batching"), ("C2", "contracting")):
        left, right = (getattr(numbers, f"{side}_{kind}_dimensions") for side in ("lhs", "rhs"))
        if len(left) != len(right):
            fail(label, f"lhs has {len(left)} {kind} dimensions, rhs has {len(right)}; expected as many")
    for operand, side, unique_label, range_labels in (
        (lhs, "lhs", "C3", ("C5", "C6")),
        (rhs, "rhs", "C4", ("C7", "C8")),
    ):
        lists = [getattr(numbers, f"{side}_{kind}_dimensions") for kind in ("batching", "contracting")]
        for label, kind, values in zip(range_labels, ("batching", "contracting"), lists, strict=True):
            expect_within(label, f"{side}_{kind}_dimensions", values, operand.rank)
        if len({*lists[0], *lists[1]}) != len(lists[0]) + len(lists[1]):
            fail(
                unique_label,
                f"{side} is batched in {list(lists[0])} and contracted in {list(lists[1])}, expected each once",
            )


def _check_pairs(label, kind, lhs, left, rhs, right):
    for one, other in zip(left, right, strict=True):
        if not dimensions_compatible(lhs.shape[one], rhs.shape[other]):
            fail(
                label,
                f"{kind} dimension {one} of lhs has extent {lhs.shape[one]}, {other} of rhs has {rhs.shape[other]}",
            )


def check_precision(label, precision_config):
    # MLIR accepts an empty list too.
    if precision_config is not None and len(precision_config) not in (0, 2):
        fail(label, f"precision_config has {len(precision_config)} entries, expected 2")


def _check_algorithm(algorithm, precision_config):
    if any(precision is not Precision.DEFAULT for precision in precision_config or ()):
        fail("C21", "precision_config has other entries than DEFAULT, and algorithm is given")
    for label, name in (
        ("C22", "lhs_component_count"),
        ("C23", "rhs_component_count"),
        ("C24", "num_primitive_operations"),
    ):
        if getattr(algorithm, name) <= 0:
            fail(label, f"{name} has {getattr(algorithm, name)}, expected a positive number")
    for name in ("lhs_precision_type", "rhs_precision_type", "accumulation_type"):
        if not isinstance(getattr(algorithm, name), FloatType):
            fail("", f"{name} has {getattr(algorithm, name)}, expected a float type")
    if not _is_known(algorithm):
        fail("", "algorithm is none that any hardware is known to have")


_PRIMITIVE_OPERATIONS = {
    ("f16", "f16"): (1,),
    ("f16", "f32"): (1,),
    ("bf16", "bf16"): (1,),
    ("bf16", "f32"): (1, 3, 6, 9),
    ("tf32", "f32"): (1, 3),
    ("f32", "f32"): (1,),
    ("f64", "f64"): (1,),
}
"""Of a precision type and an accumulation type, the counts of primitive operations that algorithms have."""


def _is_known(algorithm: DotAlgorithm) -> bool:
    """Whether it is an algorithm of some hardware: one that MLIR reads, too."""
    lhs, rhs = str(algorithm.lhs_precision_type), str(algorithm.rhs_precision_type)
    accumulation, count = str(algorithm.accumulation_type), algorithm.num_primitive_operations
    if algorithm.lhs_component_count != 1 or algorithm.rhs_component_count != 1:
        return False
    if all(name.startswith("f8") and name != "f8E8M0FNU" for name in (lhs, rhs)):
        return accumulation == "f32" and count == 1
    known = _PRIMITIVE_OPERATIONS.get((lhs, accumulation), ())
    return lhs == rhs and count in known and not algorithm.allow_imprecise_accumulation


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
            expect_size(size_label, name, values, spatial, "the rank less two")
            expect_at_least(sign_label, name, values, 1)
    if padding is not None and (len(padding) != spatial or any(len(pair) != 2 for pair in padding)):
        fail("C4", f"padding has {[list(pair) for pair in padding]}, expected {spatial} pairs")
    for size_label, range_label, part in (("C12", "C13", "input"), ("C17", "C18", "kernel"), ("C19", "C20", "output")):
        space = getattr(numbers, f"{part}_spatial_dimensions")
        expect_size(size_label, f"{part}_spatial_dimensions", space, spatial, "the rank less two")
        dimensions = getattr(numbers, f"{part}_dimensions")
        if sorted(dimensions) != list(range(lhs.rank)):
            fail(
                range_label, f"the {part} dimensions are {sorted(dimensions)}, expected 0 to {lhs.rank - 1}, each once"
            )


def _check_quantized_rhs(rhs, contracting):
    element = rhs.element_type
    if np.any(element.parameters(rhs.shape)[1]):
        fail("C15", f"rhs has type {rhs}, expected zero points of 0")
    if isinstance(element, PerAxisType) and element.quantization_dimension in contracting:
        fail("C16", f"rhs has type {rhs}, which is contracted along its quantization dimension")


def check_conv_elements(lhs, rhs, numbers, result):
    if not any(is_quantized(kind.element_type) for kind in (lhs, rhs, result)):
        # The result may be wider, as of integers: MLIR and XLA accept it.
        return expect_same_element("C27", lhs=lhs, rhs=rhs)
    features = "that of output features"
    expect_dimension("C29", "rhs", rhs, numbers.kernel_output_feature_dimension, features)
    expect_dimension("C30", "result", result, numbers.output_feature_dimension, features)
    return check_products(("C28", "C31", "C32", "C33", "C34"), lhs, rhs, result)


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
