"""The functions that compute transcendental operations: inline, free of branches except for rare arguments, on scalars
and vectors alike. Nothing calls the C library."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll

from trivium.backends.llvm.code import F64, element
from trivium.backends.llvm.math import error, f32, f64, gamma, hyperbolic, inverse, power, short_error, trigonometric
from trivium.ir.errors import CompileError

Function = Callable[..., ll.Value]

_BOTH: dict[str, Function] = {
    "erfc": error.erfc, **inverse.FUNCTIONS, **hyperbolic.FUNCTIONS, **gamma.FUNCTIONS,
}  # fmt: skip
_F64: dict[str, Function] = {
    **f64.FUNCTIONS, **hyperbolic.WIDE, **trigonometric.FUNCTIONS,
    "erf": error.erf, "erf_inv": error.erf_inv, "power": power.power, **_BOTH,
}  # fmt: skip
_F32: dict[str, Function] = {**f32.FUNCTIONS, "erf": short_error.erf, **_BOTH}


def function(op: str, type_: ll.Type) -> Function:
    """Returns the function for operands of `type_`, which is called with a Code and the operands."""
    known = _F64 if element(type_) == F64 else _F32
    if op not in known:
        raise CompileError(f"{op} of {element(type_)}: no function computes it")
    return known[op]
