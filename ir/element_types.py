"""The types of single numbers, and the NumPy dtypes that store them. Types are interned: equal types are one object, so
that `is` compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from trivium.ir.errors import Error


class Interned(type):
    """A metaclass: calling the class with equal arguments returns the same object. Arguments are hashable."""

    def __init__(cls, *args, **kwargs):
        super().__init__(*args, **kwargs)
        cls._cache: dict[Any, Any] = {}

    def __call__(cls, *args, **kwargs):
        cache = cls._cache
        key = (args, tuple(kwargs.items())) if kwargs else args
        try:
            found = cache.get(key)
        except TypeError:
            raise Error(f"{cls.__name__} was given {key}, expected immutable values, such as tuples") from None
        if found is None:
            made = super().__call__(*args, **kwargs)
            # The same type may be written in several ways (defaults, keywords): all return the first object made.
            found = cache.setdefault(("fields", *vars(made).values()), made)
            cache[key] = found
        return found


@dataclass(frozen=True, eq=False)
class Type(metaclass=Interned):
    """The root of all types."""

    def __reduce__(self):
        return type(self), tuple(vars(self).values())


_FLOAT_NAMES = (
    *("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2"),
    *("f8E5M2FNUZ", "f8E8M0FNU", "bf16", "f16", "f32", "f64", "tf32"),
)


@dataclass(frozen=True, eq=False)
class FloatType(Type):
    """A floating-point number; `name` is MLIR's name of its format."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in _FLOAT_NAMES:
            raise Error(f"a float type has the name {self.name!r}, expected one of {', '.join(_FLOAT_NAMES)}")

    def __str__(self) -> str:
        return self.name

    @property
    def width(self) -> int:
        """The number of bits of one value."""
        return 19 if self.name == "tf32" else ml_dtypes.finfo(self.dtype).bits

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self)


@dataclass(frozen=True, eq=False)
class IntegerType(Type):
    """An integer of `width` bits. As in MLIR, StableHLO's signed integers are the signless ones (`i32`)."""

    width: int
    signedness: str = ""

    def __post_init__(self) -> None:
        if type(self.width) is not int or self.width < 1 or self.signedness not in ("", "s", "u"):
            raise Error(
                f"an integer type has width {self.width!r} and sign {self.signedness!r}, expected u or s or none"
            )

    def __str__(self) -> str:
        return f"{self.signedness}i{self.width}"

    @property
    def is_signed(self) -> bool:
        return self.signedness != "u" and self.width > 1

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self)


@dataclass(frozen=True, eq=False)
class IndexType(Type):
    """An integer as wide as the machine's addresses."""

    def __str__(self) -> str:
        return "index"

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.int64)


@dataclass(frozen=True, eq=False)
class ComplexType(Type):
    """A pair of floats: real and imaginary part."""

    element_type: FloatType

    def __post_init__(self) -> None:
        if not isinstance(self.element_type, FloatType):
            raise Error(f"a complex type has numbers of {self.element_type}, expected a float type")

    def __str__(self) -> str:
        return f"complex<{self.element_type}>"

    @property
    def dtype(self) -> np.dtype:
        return dtype_of(self)


@dataclass(frozen=True, eq=False)
class UnsignedStorageType(IntegerType):
    """The storage `u8` of quantized types: MLIR's `i8`, with unsigned numbers. `ui8` is a different type."""

    signedness: str = "u"

    def __str__(self) -> str:
        return f"u{self.width}"


def _float_dtype(name: str) -> Any:
    native = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "tf32": np.float32}
    if name in native:
        return native[name]
    # MLIR says f8E4M3FN where ml_dtypes says float8_e4m3fn.
    return getattr(ml_dtypes, f"float{name[1]}_{name[2:].lower()}")


FLOATS = {name: FloatType(name) for name in _FLOAT_NAMES}
_DTYPES: dict[Type, np.dtype] = {kind: np.dtype(_float_dtype(name)) for name, kind in FLOATS.items()}
_DTYPES |= {IntegerType(1): np.dtype(np.bool_)}
_DTYPES |= {IntegerType(width): np.dtype(f"int{width}") for width in (8, 16, 32, 64)}
_DTYPES |= {IntegerType(width, "u"): np.dtype(f"uint{width}") for width in (8, 16, 32, 64)}
_DTYPES |= {IntegerType(width, "s"): np.dtype(f"int{width}") for width in (8, 16, 32, 64)}
_DTYPES |= {IntegerType(width): np.dtype(getattr(ml_dtypes, f"int{width}")) for width in (2, 4)}
_DTYPES |= {IntegerType(width, "u"): np.dtype(getattr(ml_dtypes, f"uint{width}")) for width in (2, 4)}
_DTYPES |= {ComplexType(FLOATS["f32"]): np.dtype(np.complex64), ComplexType(FLOATS["f64"]): np.dtype(np.complex128)}
_DTYPES |= {UnsignedStorageType(width): _DTYPES[IntegerType(width, "u")] for width in (2, 4, 8, 16, 32)}
# One-bit integers, as opposed to StableHLO's booleans (i1).
_DTYPES |= {IntegerType(1, "u"): np.dtype(ml_dtypes.uint1), IntegerType(1, "s"): np.dtype(ml_dtypes.int1)}
# If several types have the same dtype (i8 and si8, f32 and tf32), the dtype stands for the first one.
_ELEMENTS = {dtype: kind for kind, dtype in reversed(_DTYPES.items())}

F16, BF16, F32, F64 = FLOATS["f16"], FLOATS["bf16"], FLOATS["f32"], FLOATS["f64"]
I1, I8, I16, I32, I64 = (IntegerType(width) for width in (1, 8, 16, 32, 64))
UI8, UI16, UI32, UI64 = (IntegerType(width, "u") for width in (8, 16, 32, 64))
C64, C128 = ComplexType(F32), ComplexType(F64)
INDEX = IndexType()


def dtype_of(element_type: Type) -> np.dtype:
    """Returns the NumPy dtype that stores an element type."""
    try:
        return _DTYPES[element_type]
    except KeyError:
        raise Error(f"{element_type} has no NumPy dtype") from None


def element_type_of(dtype: Any) -> FloatType | IntegerType | ComplexType:
    """Returns the element type of a NumPy (or ml_dtypes) dtype."""
    try:
        return _ELEMENTS[np.dtype(dtype)]  # type: ignore[return-value]
    except (KeyError, TypeError):
        raise Error(
            f"dtype {dtype} has no StableHLO element type; expected one of {sorted(map(str, _ELEMENTS))}"
        ) from None
