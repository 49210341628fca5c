"""Sums of products: how precise they should be, and how they are computed.

Floats of 32 and 64 bits are rounded after each product and each sum, in the order of the contracted elements. This is
the literal meaning of the specification, and what StableHLO's own interpreter does. Narrower floats are rounded once at
the end, because no device sums in them.
"""

from __future__ import annotations

import numpy as np

from trivium.ir.attributes import Enumeration, enumeration
from trivium.ir.errors import fail
from trivium.ir.ops.numerics import rounded

__all__ = ["Precision"]


@enumeration("stablehlo.precision")
class Precision(Enumeration):
    """How precise the products of an operand should be; each backend decides what it means."""

    DEFAULT = "DEFAULT"
    HIGH = "HIGH"
    HIGHEST = "HIGHEST"


def check_precision(label, precision_config):
    # MLIR accepts an empty list too.
    if precision_config is not None and len(precision_config) not in (0, 2):
        fail(label, f"precision_config has {len(precision_config)} entries, expected 2")


def add_products(total: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> None:
    """Adds a batched matrix product to `total`, one contracted element at a time, all in the dtype of `total`."""
    if total.dtype.kind == "i":  # exact in any order
        total += np.matmul(rows, columns)
        return
    multiply = _multiply_complex if total.dtype.kind == "c" else np.multiply
    product = np.empty_like(total)
    for index in range(rows.shape[-1]):
        multiply(rows[..., index, None], columns[..., None, index, :], product)
        total += product


def _multiply_complex(lhs: np.ndarray, rhs: np.ndarray, product: np.ndarray) -> None:
    """Multiplies complex numbers with rounded real products, which NumPy does not do on every machine."""
    product.real = lhs.real * rhs.real - lhs.imag * rhs.imag
    product.imag = lhs.real * rhs.imag + lhs.imag * rhs.real


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype in which products are summed if the sum has `dtype`."""
    return dtype if dtype.kind in "fc" and dtype.itemsize >= 4 else wide(np.empty(0, dtype)).dtype


def wide(array: np.ndarray) -> np.ndarray:
    """Converts to the widest type of the same kind; booleans and integers become int64, which wraps around like the
    narrower ones."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if array.dtype.kind in "biu" or array.dtype.name.startswith(("int", "uint")):
        return array.astype(np.int64)
    return array.astype(np.float64)


def narrow(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Rounds, or wraps around, to `dtype`; a sum of booleans is their disjunction."""
    return array != 0 if dtype == np.bool_ else rounded(array, dtype)
