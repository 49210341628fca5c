"""Which function computes a transcendental operation: inline polynomials where they are written, else the C library
once per lane."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import llvmlite.ir as ll

from trivium.backends.cpu.code import F64, Code, element
from trivium.backends.cpu.math import f32, f64
from trivium.ir.errors import CompileError

Function = Callable[..., ll.Value]

_LIBRARY = {
    "exponential": "exp", "exponential_minus_one": "expm1", "log": "log", "log_plus_one": "log1p", "tanh": "tanh",
    "sine": "sin", "cosine": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh",
    "cosh": "cosh", "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "cbrt": "cbrt", "erf": "erf", "erfc": "erfc",
    "lgamma": "lgamma", "atan2": "atan2", "power": "pow",
}  # fmt: skip
"""StableHLO's names, and those of C's double functions; an f at the end gives the float ones."""


def function(op: str, type_: ll.Type) -> Function:
    """The function for operands of `type_`, called with a Code and the operands."""
    double = element(type_) == F64
    inline = (f64 if double else f32).FUNCTIONS
    if op in inline:
        return inline[op]
    if op in _LIBRARY:
        return partial(_library, _LIBRARY[op] if double else f"{_LIBRARY[op]}f")
    raise CompileError(f"{op}: the CPU backend has no function for it")


def _library(name: str, code: Code, *operands: ll.Value) -> ll.Value:
    return code.each_lane(name, *operands)
