"""Evaluates the scalar operations of kernels on NumPy arrays of any shape. An operation means what the StableHLO or
CHLO op of its name means on one element, so that op's `evaluate` is called. Only `fma`, which is not an op, is defined
here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from trivium.compiler.kernel.dtypes import DType, numpy_dtype
from trivium.compiler.kernel.structure import Apply
from trivium.ir import ops
from trivium.ir.declare import OPS
from trivium.ir.errors import CompileError
from trivium.ir.ops import numerics

_COMPARE: Callable[..., np.ndarray] = ops.Compare.evaluate


def evaluate(instruction: Apply, operands: list[np.ndarray]) -> np.ndarray:
    """Returns the result of `instruction` for these operands, which broadcast against each other."""
    attributes, dtype = instruction.attributes, numpy_dtype(instruction.result.dtype)
    match instruction.op:
        case "convert":
            return numerics.convert(operands[0], dtype)
        case "bitcast_convert":
            return numerics.bitcast(operands[0], dtype)
        case "reduce_precision":
            return numerics.reduce_precision(operands[0], **attributes)  # type: ignore[arg-type]
        case "select":
            return np.where(*operands)
        case "compare":
            total = ops.ComparisonType.TOTALORDER if attributes.get("total_order") else None
            direction = ops.ComparisonDirection(attributes["direction"])
            return _COMPARE(*operands, comparison_direction=direction, compare_type=total)
    return named(instruction.op, instruction.result.dtype, operands)


def named(op: str, dtype: DType, operands: list[np.ndarray]) -> np.ndarray:
    """Evaluates an operation without attributes, by its name; `dtype` is the type of its result."""
    return _function(op)(SimpleNamespace(dtype=numpy_dtype(dtype)), operands)


@cache
def _function(op: str) -> Callable[[Any, list[np.ndarray]], np.ndarray]:
    """Returns a function (result type, operands) -> result. An op's `evaluate` takes its operands in order, and the
    result's type if it needs it."""
    if op == "fma":
        return lambda result, operands: numerics.compute(_fused, *operands)
    cls = OPS.get(f"stablehlo.{op}") or OPS.get(f"chlo.{op}")
    if cls is None:
        raise CompileError(f"{op!r} is not a scalar operation of kernels")
    function: Callable[..., np.ndarray] = cls.evaluate  # type: ignore[attr-defined]
    typed = "result" in inspect.signature(function).parameters
    return lambda result, operands: function(*operands, **({"result": result} if typed else {}))


def _fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Returns a * b + c, rounded once."""
    plain = np.asarray(a * b + c)
    exact = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    return np.where(exact, _exact(*(np.where(exact, x, 0) for x in (a, b, c))).astype(plain.dtype), plain)


def _exact_sum(a: float, b: float, c: float) -> float:
    product = Fraction(float(a)) * Fraction(float(b))
    total = product + Fraction(float(c))
    if not total:  # the sign of a zero follows IEEE's rules, as in the unfused sum
        return float(a) * float(b) + float(c) if not product else 0.0
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else -float("inf")


_exact = np.vectorize(_exact_sum, otypes=[np.float64])
