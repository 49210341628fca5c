"""`dot_general`: products of matrices, with any number of batching and contracting dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trivium.ir.attributes import Struct
from trivium.ir.declare import EXPRESSED, PURE, Op, Operand, Result
from trivium.ir.errors import fail
from trivium.ir.ops.common import expect_same_element, expect_shape, expect_tensor, expect_within
from trivium.ir.ops.parameters import check_products
from trivium.ir.ops.products import Precision, add_products, check_precision, narrow, sum_dtype, wide
from trivium.ir.types import FloatType, PerAxisType, TensorType, Type, dimensions_compatible, is_quantized

__all__ = ["DotAlgorithm", "DotDimensionNumbers", "DotGeneral"]


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
        """Returns how many parts of the precision type the values of an operand are split into: at least the stated
        component count, and enough for the number of products (programs state one component for every algorithm)."""
        products = max(1, self.num_primitive_operations)
        return max(getattr(self, f"{side}_component_count"), 1 + math.isqrt(products - 1))


class DotGeneral(Op, name="stablehlo.dot_general", traits={PURE, EXPRESSED}):
    """Dot products along the contracting dimensions, for each index of the batching dimensions. The result has the
    batching dimensions, then the remaining dimensions of `lhs`, then those of `rhs`."""

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
        add_products(sums, _converted(rows, kind), _converted(columns, kind))
        return narrow(sums, result.dtype).reshape(shape)


def _converted(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Converts to the dtype of the sums; if that is real, complex numbers become their real part, as in `convert`."""
    return (array.real if array.dtype.kind == "c" != dtype.kind else array).astype(dtype)


def _grouped(array: np.ndarray, *groups: Sequence[int]) -> np.ndarray:
    """Transposes so that the axes of a group are adjacent, and joins each group into one."""
    shape = [math.prod(array.shape[axis] for axis in group) for group in groups]
    return array.transpose([axis for group in groups for axis in group]).reshape(shape)


def _free(rank: int, batching: Sequence[int], contracting: Sequence[int]) -> list[int]:
    return [axis for axis in range(rank) if axis not in batching and axis not in contracting]


def _rounded(array: np.ndarray, precision: Type, parts: int) -> np.ndarray:
    """Returns the sum of the leading `parts` of each value, each rounded to the precision type, which is what an
    algorithm that splits its operands computes with. Complex numbers, for which no such algorithm exists, do not
    change.
    """
    if np.iscomplexobj(array):
        return array
    rest = array.astype(np.float64)
    total = np.zeros_like(rest)
    # Each part has at least one of 53 bits: after that, the rest is zero or no longer changes.
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
            fail(label, f"lhs has {len(left)} {kind} dimensions, rhs has {len(right)}; expected the same number")
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


def _check_quantized_rhs(rhs, contracting):
    element = rhs.element_type
    if np.any(element.parameters(rhs.shape)[1]):
        fail("C15", f"rhs has type {rhs}, expected zero points of 0")
    if isinstance(element, PerAxisType) and element.quantization_dimension in contracting:
        fail("C16", f"rhs has type {rhs}, which is contracted along its quantization dimension")


def _check_algorithm(algorithm, precision_config):
    if any(precision is not Precision.DEFAULT for precision in precision_config or ()):
        fail("C21", "precision_config has entries other than DEFAULT although algorithm is set")
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
        fail("", "algorithm is not one of any known hardware")


_PRIMITIVE_OPERATIONS = {
    ("f16", "f16"): (1,),
    ("f16", "f32"): (1,),
    ("bf16", "bf16"): (1,),
    ("bf16", "f32"): (1, 3, 6, 9),
    ("tf32", "f32"): (1, 3),
    ("f32", "f32"): (1,),
    ("f64", "f64"): (1,),
}
"""The numbers of primitive operations in known algorithms, by precision type and accumulation type."""


def _is_known(algorithm: DotAlgorithm) -> bool:
    """Whether the algorithm exists in some hardware; MLIR accepts the same ones."""
    lhs, rhs = str(algorithm.lhs_precision_type), str(algorithm.rhs_precision_type)
    accumulation, count = str(algorithm.accumulation_type), algorithm.num_primitive_operations
    if algorithm.lhs_component_count != 1 or algorithm.rhs_component_count != 1:
        return False
    if all(name.startswith("f8") and name != "f8E8M0FNU" for name in (lhs, rhs)):
        return accumulation == "f32" and count == 1
    known = _PRIMITIVE_OPERATIONS.get((lhs, accumulation), ())
    return lhs == rhs and count in known and not algorithm.allow_imprecise_accumulation
