"""Element types in kernels: complex numbers are pairs of floats, everything else is one scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from trivium.compiler.kernel import DType, Register
from trivium.ir.errors import CompileError
from trivium.ir.types import ComplexType, FloatType, IndexType, IntegerType, Type

Scalar = Register | tuple[Register, Register]
"""A real scalar, or the real and the imaginary part of a complex one."""


def dtype_of(element_type: Type) -> DType:
    """Returns the scalar type of an element, or of each part of a complex one."""
    if isinstance(element_type, ComplexType):
        return dtype_of(element_type.element_type)
    if isinstance(element_type, IndexType):
        return DType("i64")
    if isinstance(element_type, FloatType):
        return DType("f32" if element_type.name == "tf32" else element_type.name)
    if isinstance(element_type, IntegerType):
        return DType(str(element_type).removeprefix("s"))
    raise CompileError(f"kernels have no scalar type for {element_type}")


def is_pair(element_type: Type) -> bool:
    return isinstance(element_type, ComplexType)


def parts(element_type: Type) -> tuple[int, ...]:
    """Returns the additional dimensions of a buffer with such elements."""
    return (2,) if is_pair(element_type) else ()


def register_of(scalar: Scalar) -> Register:
    """Returns the register of a scalar that is not complex."""
    assert isinstance(scalar, Register)
    return scalar


def literal(number: Any) -> bool | int | float:
    """Returns a NumPy scalar as a Python number."""
    kind = np.asarray(number).dtype.kind
    if kind == "b":
        return bool(number)
    return int(number) if kind in "iu" or "int" in np.asarray(number).dtype.name else float(number)
