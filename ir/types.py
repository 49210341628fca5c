"""The types of StableHLO. Types are interned: equal types are one object, so that `is` compares them."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from trivium.ir.errors import Error

DYNAMIC = None
"""The extent of a dimension known only at run time, `?` in text."""


class Interned(type):
    """A class whose calls with equal arguments give the same object. Arguments are hashable."""

    def __init__(cls, *args, **kwargs):
        super().__init__(*args, **kwargs)
        cls._cache: dict[Any, Any] = {}

    def __call__(cls, *args, **kwargs):
        cache = cls._cache
        key = (args, tuple(kwargs.items())) if kwargs else args
        try:
            found = cache.get(key)
        except TypeError:
            raise Error(f"{cls.__name__} is given {key}, expected values that cannot change, as tuples are") from None
        if found is None:
            made = super().__call__(*args, **kwargs)
            # The same type may be spelled in several ways (defaults, keywords): all lead to the first one made.
            found = cache.setdefault(("fields", *vars(made).values()), made)
            cache[key] = found
        return found


@dataclass(frozen=True, eq=False)
class Type(metaclass=Interned):
    """The root of all types."""

    def __reduce__(self):
        return type(self), tuple(vars(self).values())


@dataclass(frozen=True, eq=False)
class FloatType(Type):
    """A floating-point number, by MLIR's name of its format."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def width(self) -> int:
        """Bits of one value."""
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
    """The storage `u8` of quantized types: MLIR's `i8` whose numbers have no sign. `ui8` is another type."""

    signedness: str = "u"

    def __str__(self) -> str:
        return f"u{self.width}"


MAX_STORAGE_WIDTH = 32


@dataclass(frozen=True, eq=False)
class QuantizedType(Type):
    """A real number kept as an integer from `storage_min` to `storage_max`: it is `(stored - zero_point) * scale`, of
    `expressed_type`. The kinds differ in which elements of a tensor share a scale and a zero point."""

    storage_type: IntegerType
    expressed_type: FloatType
    storage_min: int
    storage_max: int

    def __post_init__(self) -> None:
        if not isinstance(self.storage_type, IntegerType) or not 0 < self.storage_type.width <= MAX_STORAGE_WIDTH:
            self._fail(
                "C1", f"storage type {self.storage_type}, expected an integer of at most {MAX_STORAGE_WIDTH} bits"
            )
        if not isinstance(self.expressed_type, FloatType):
            self._fail("C4", f"expressed type {self.expressed_type}, expected a float type")
        least, most = storage_range(self.storage_type)
        if not least <= self.storage_min < self.storage_max <= most:
            has = f"storage from {self.storage_min} to {self.storage_max}"
            self._fail("C3", f"{has}, {self.storage_type} holds {least} to {most}, and the first is the lesser one")

    def __str__(self) -> str:
        limits = (self.storage_min, self.storage_max)
        stored = "" if limits == storage_range(self.storage_type) else f"<{limits[0]}:{limits[1]}>"
        return f"!quant.uniform<{self.storage_type}{stored}:{self.expressed_type}{self._parameters_text()}>"

    @property
    def dtype(self) -> np.dtype:
        """What holds the stored integers."""
        return self.storage_type.dtype

    def parameters(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The scale (f64) and the zero point (i64) of each element of a tensor of that shape, as arrays that broadcast
        to it."""
        raise NotImplementedError

    def _parameters_text(self) -> str:
        raise NotImplementedError

    def _checked(self, scales: tuple[float, ...], zero_points: tuple[int, ...]) -> tuple[Any, Any]:
        """The scales and zero points as plain numbers, once they are known to be good ones."""
        if len(scales) != len(zero_points):
            self._fail("C9", f"{len(scales)} scales and {len(zero_points)} zero points, expected equally many")
        least, most = scale_range(self.expressed_type)
        for scale in scales:
            if not least <= scale <= most:
                label = "C5" if scale <= 0 else "C6"
                self._fail(label, f"scale {scale}, expected one of {self.expressed_type} from {least} to {most}")
        return tuple(map(float, scales)), tuple(map(operator.index, zero_points))

    def _check_dimension(self, dimension: int) -> None:
        if not 0 <= dimension < 1 << 31:
            self._fail("C11", f"quantization dimension {dimension}, expected one from 0 to {(1 << 31) - 1}")

    def _fail(self, label: str, message: str) -> NoReturn:
        raise Error(f"a quantized type has {message} ({label} of quantized types)")


def storage_range(storage_type: IntegerType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    signed = storage_type.signedness != "u"
    return -(1 << storage_type.width - 1) if signed else 0, (1 << storage_type.width - signed) - 1


def scale_range(expressed_type: FloatType) -> tuple[float, float]:
    """The least positive number of a float type, and the greatest."""
    if expressed_type.name == "tf32":
        return 2.0**-136, (2 - 2.0**-10) * 2.0**127
    limits = ml_dtypes.finfo(expressed_type.dtype)
    return float(limits.smallest_subnormal), float(limits.max)


@dataclass(frozen=True, eq=False)
class PerTensorType(QuantizedType):
    """All elements of a tensor share one scale and one zero point."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        super().__post_init__()
        (scale,), (zero_point,) = self._checked((self.scale,), (self.zero_point,))
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "zero_point", zero_point)

    def parameters(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        return np.float64(self.scale), np.int64(self.zero_point)  # type: ignore[return-value]

    def _parameters_text(self) -> str:
        return f", {_parameter_text(self.scale, self.zero_point)}"


@dataclass(frozen=True, eq=False)
class PerAxisType(QuantizedType):
    """Each slice along `quantization_dimension` has its own scale and zero point."""

    quantization_dimension: int
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_dimension(self.quantization_dimension)
        scales, zero_points = self._checked(self.scales, self.zero_points)
        object.__setattr__(self, "scales", scales)
        object.__setattr__(self, "zero_points", zero_points)

    def parameters(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        along = tuple(-1 if axis == self.quantization_dimension else 1 for axis in range(len(shape)))
        return np.array(self.scales, np.float64).reshape(along), np.array(self.zero_points, np.int64).reshape(along)

    def _parameters_text(self) -> str:
        items = ",".join(map(_parameter_text, self.scales, self.zero_points))
        return f":{self.quantization_dimension}, {{{items}}}"


@dataclass(frozen=True, eq=False)
class SubChannelType(QuantizedType):
    """Each block has its own scale and zero point. `block_sizes` has (dimension, extent of a block) pairs; a dimension
    that is not there is not cut. `scales` and `zero_points` lie row by row in an array of shape `blocks`, one extent
    for each dimension of the tensor. As in MLIR, scales are rounded to the expressed type, and zero points wrap around
    in the storage type."""

    block_sizes: tuple[tuple[int, int], ...]
    blocks: tuple[int, ...]
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for dimension, size in self.block_sizes:
            self._check_dimension(dimension)
            if size < 1:
                self._fail("C13", f"blocks of {size} along dimension {dimension}, expected at least 1")
        scales, zero_points = self._checked(self.scales, self.zero_points)
        if len(scales) != math.prod(self.blocks):
            self._fail("C9", f"{len(scales)} scales, expected {self.blocks}")
        rounded = np.array(scales, np.float64).astype(self.expressed_type.dtype).astype(np.float64).tolist()
        object.__setattr__(self, "scales", tuple(rounded))
        object.__setattr__(self, "zero_points", tuple(_wrapped(number, self.storage_type) for number in zero_points))

    def parameters(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        scales = np.array(self.scales, np.float64).reshape(self.blocks)
        zero_points = np.array(self.zero_points, np.int64).reshape(self.blocks)
        for dimension, size in self.block_sizes:
            scales, zero_points = scales.repeat(size, dimension), zero_points.repeat(size, dimension)
        return scales, zero_points

    def _parameters_text(self) -> str:
        # MLIR reads both kinds of zero points, and writes those without a sign as if they had one.
        signed = IntegerType(self.storage_type.width)
        items = [
            _parameter_text(scale, _wrapped(zero_point, signed), self.expressed_type)
            for scale, zero_point in zip(self.scales, self.zero_points, strict=True)
        ]
        for extent in reversed(self.blocks):
            items = [f"{{{', '.join(items[at : at + extent])}}}" for at in range(0, len(items), extent)]
        return f":{{{', '.join(f'{dimension}:{size}' for dimension, size in self.block_sizes)}}}, {items[0]}"


def _wrapped(number: int, storage_type: IntegerType) -> int:
    """The integer of that type that has the same lowest bits."""
    least, _ = storage_range(storage_type)
    return (number - least) % (1 << storage_type.width) + least


def _parameter_text(scale: float, zero_point: int, kind: FloatType | None = None) -> str:
    # The digits of numbers are a matter of text, which itself needs the types.
    from trivium.ir.text.numbers import float_text

    digits = float_text(scale, kind or F64)
    if kind is not None and digits.startswith("0x"):
        # Readers, MLIR's as well, take bits for those of a double.
        digits = float_text(scale, F64)
    return f"{digits}:{zero_point}" if zero_point else digits


ElementType = FloatType | IntegerType | IndexType | ComplexType | QuantizedType


@dataclass(frozen=True, eq=False)
class Bounds(metaclass=Interned):
    """The largest extent of each dynamic dimension, where one is known; an encoding of a tensor type."""

    bounds: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"#stablehlo.bounds<{', '.join('?' if bound is None else str(bound) for bound in self.bounds)}>"


@dataclass(frozen=True, eq=False)
class TensorType(Type):
    """An array: extents (`None` where dynamic), element type, and an encoding (bounds, or any attribute)."""

    shape: tuple[int | None, ...]
    element_type: Any
    encoding: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        _check_element(self.element_type)
        if isinstance(self.encoding, Bounds):
            self._check_bounds(self.encoding)

    def _check_bounds(self, bounds: Bounds) -> None:
        if len(bounds.bounds) != len(self.shape):
            raise Error(f"a tensor type has {len(bounds.bounds)} bounds for {len(self.shape)} dimensions")
        for dimension, (bound, extent) in enumerate(zip(bounds.bounds, self.shape, strict=True)):
            if bound is not None and extent is not None:
                raise Error(f"a tensor type has the bound {bound} for dimension {dimension}, a static one of {extent}")

    def __str__(self) -> str:
        encoding = "" if self.encoding is None else f", {_attribute_text(self.encoding)}"
        return f"tensor<{_extents_text(self.shape)}{self.element_type}{encoding}>"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return None not in self.shape

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, when every extent is known; else an `Error`."""
        if None in self.shape:
            raise Error(f"{self} has dynamic dimensions, expected a static shape")
        return self.shape  # type: ignore[return-value]

    @property
    def size(self) -> int:
        """The number of elements of a static tensor."""
        return math.prod(self.static_shape)

    @property
    def dtype(self) -> np.dtype:
        return self.element_type.dtype

    @property
    def bounds(self) -> tuple[int | None, ...]:
        """The bound of each dimension; `None` where there is none."""
        return self.encoding.bounds if isinstance(self.encoding, Bounds) else (None,) * len(self.shape)

    def with_shape(self, shape) -> TensorType:
        return TensorType(tuple(shape), self.element_type)

    def with_element(self, element_type) -> TensorType:
        return TensorType(self.shape, element_type, self.encoding)


@dataclass(frozen=True, eq=False)
class UnrankedTensorType(Type):
    """An array of which not even the number of dimensions is known. Ops of StableHLO take none: functions pass it
    on."""

    element_type: Any

    def __post_init__(self) -> None:
        _check_element(self.element_type)

    def __str__(self) -> str:
        return f"tensor<*x{self.element_type}>"


@dataclass(frozen=True, eq=False)
class BufferType(Type):
    """An array in memory, which custom calls make of tensors, write to, and make tensors of again."""

    shape: tuple[int | None, ...]
    element_type: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _checked_shape(self.shape))
        _check_element(self.element_type)
        if isinstance(self.element_type, QuantizedType):
            raise Error(f"a buffer has element type {self.element_type}, expected a number's type")

    def __str__(self) -> str:
        return f"memref<{_extents_text(self.shape)}{self.element_type}>"


@dataclass(frozen=True, eq=False)
class WitnessType(Type):
    """A proof that a condition on shapes holds, of MLIR's dialect for shapes."""

    def __str__(self) -> str:
        return "!shape.witness"


@dataclass(frozen=True, eq=False)
class TokenType(Type):
    """Orders ops that have effects."""

    def __str__(self) -> str:
        return "!stablehlo.token"


@dataclass(frozen=True, eq=False)
class NoneType(Type):
    """MLIR's `none`."""

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True, eq=False)
class TupleType(Type):
    """Several values as one."""

    types: tuple[Type, ...]

    def __post_init__(self) -> None:
        _check_types("tuple", self.types)

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.types))}>"


@dataclass(frozen=True, eq=False)
class FutureType(Type):
    """Values that are still being computed; `async_done` waits for them."""

    types: tuple[Type, ...]

    def __post_init__(self) -> None:
        if not self.types or not all(isinstance(kind, TensorType) for kind in self.types):
            raise Error(f"a future has types ({', '.join(map(str, self.types))}), expected one tensor type or more")

    def __str__(self) -> str:
        return f"!stablehlo.future<{', '.join(map(str, self.types))}>"


@dataclass(frozen=True, eq=False)
class FunctionType(Type):
    """The types of a function's arguments and results."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __post_init__(self) -> None:
        _check_types("function", (*self.inputs, *self.results))

    def __str__(self) -> str:
        results = ", ".join(map(str, self.results))
        if len(self.results) != 1 or isinstance(self.results[0], FunctionType):
            results = f"({results})"
        return f"({', '.join(map(str, self.inputs))}) -> {results}"


@dataclass(frozen=True, eq=False)
class OpaqueType(Type):
    """A type of a dialect that is not registered, kept as its text (`!dialect.name<...>`)."""

    text: str

    def __str__(self) -> str:
        return self.text


def _extents_text(shape: tuple[int | None, ...]) -> str:
    return "".join("?x" if extent is None else f"{extent}x" for extent in shape)


def _attribute_text(encoding: Any) -> str:
    # The text of attributes needs the types.
    from trivium.ir.text.attributes import AttributeWriter

    return AttributeWriter().attribute(encoding)


def _checked_shape(shape: Any) -> tuple[int | None, ...]:
    """The extents as plain integers: those that equal one (True, NumPy's) would become that of all tensors with it."""
    return tuple([None if extent is None else _extent(extent) for extent in shape])


def _extent(extent: Any) -> int:
    try:
        return int(operator.index(extent))
    except TypeError:
        raise Error(f"a tensor type has the extent {extent!r}, expected an integer, or None where dynamic") from None


def _check_element(kind: Any) -> None:
    if not isinstance(kind, FloatType | IntegerType | IndexType | ComplexType | QuantizedType | OpaqueType):
        raise Error(f"has element type {kind}, expected a number's type")


def _check_types(what: str, kinds: Any) -> None:
    for kind in kinds:
        if not isinstance(kind, Type):
            raise Error(f"a {what} type has {kind!r} among its types")


def _float_dtype(name: str) -> Any:
    native = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "tf32": np.float32}
    if name in native:
        return native[name]
    # MLIR says f8E4M3FN where ml_dtypes says float8_e4m3fn.
    return getattr(ml_dtypes, f"float{name[1]}_{name[2:].lower()}")


FLOATS = {
    name: FloatType(name)
    for name in (
        *("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E3M4", "f8E4M3", "f8E4M3FN", "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2"),
        *("f8E5M2FNUZ", "f8E8M0FNU", "bf16", "f16", "f32", "f64", "tf32"),
    )
}
_DTYPES: dict[Type, np.dtype] = {kind: np.dtype(_float_dtype(name)) for name, kind in FLOATS.items()}
_DTYPES |= {IntegerType(1): np.dtype(np.bool_)}
_DTYPES |= {IntegerType(width): np.dtype(f"int{width}") for width in (8, 16, 32, 64)}
_DTYPES |= {IntegerType(width, "u"): np.dtype(f"uint{width}") for width in (8, 16, 32, 64)}
_DTYPES |= {IntegerType(width, "s"): np.dtype(f"int{width}") for width in (8, 16, 32, 64)}
_DTYPES |= {IntegerType(width): np.dtype(getattr(ml_dtypes, f"int{width}")) for width in (2, 4)}
_DTYPES |= {IntegerType(width, "u"): np.dtype(getattr(ml_dtypes, f"uint{width}")) for width in (2, 4)}
_DTYPES |= {ComplexType(FLOATS["f32"]): np.dtype(np.complex64), ComplexType(FLOATS["f64"]): np.dtype(np.complex128)}
_DTYPES |= {UnsignedStorageType(width): _DTYPES[IntegerType(width, "u")] for width in (2, 4, 8, 16, 32)}
# Bits that are numbers, which StableHLO's own booleans (i1) are not.
_DTYPES |= {IntegerType(1, "u"): np.dtype(ml_dtypes.uint1), IntegerType(1, "s"): np.dtype(ml_dtypes.int1)}
# Of several types with one dtype (i8 and si8, f32 and tf32) the one named first is meant.
_ELEMENTS = {dtype: kind for kind, dtype in reversed(_DTYPES.items())}

F16, BF16, F32, F64 = FLOATS["f16"], FLOATS["bf16"], FLOATS["f32"], FLOATS["f64"]
I1, I8, I16, I32, I64 = (IntegerType(width) for width in (1, 8, 16, 32, 64))
UI8, UI16, UI32, UI64 = (IntegerType(width, "u") for width in (8, 16, 32, 64))
C64, C128 = ComplexType(F32), ComplexType(F64)
INDEX, TOKEN, NONE, WITNESS = IndexType(), TokenType(), NoneType(), WitnessType()


def dtype_of(element_type: Type) -> np.dtype:
    """The NumPy dtype that holds an element type."""
    try:
        return _DTYPES[element_type]
    except KeyError:
        raise Error(f"{element_type} has no NumPy dtype") from None


def element_type_of(dtype: Any) -> ElementType:
    """The element type of a NumPy (or ml_dtypes) dtype."""
    try:
        return _ELEMENTS[np.dtype(dtype)]  # type: ignore[return-value]
    except (KeyError, TypeError):
        raise Error(
            f"dtype {dtype} has no StableHLO element type; expected one of {sorted(map(str, _ELEMENTS))}"
        ) from None


def tensor(*shape: int | None, of: Any = F32) -> TensorType:
    """`tensor(2, 3, of=F32)`: the type of a 2x3 array of `of`, an element type or a NumPy dtype."""
    return TensorType(tuple(shape), of if isinstance(of, Type) else element_type_of(of))


def type_of(array: np.ndarray) -> TensorType:
    """The type of an array."""
    return TensorType(tuple(int(extent) for extent in array.shape), element_type_of(array.dtype))


def is_float(kind: Type) -> bool:
    return isinstance(kind, FloatType)


def is_integer(kind: Type) -> bool:
    """An integer, signed or not; not a boolean."""
    return isinstance(kind, IntegerType) and kind.width > 1


def is_boolean(kind: Type) -> bool:
    return kind is I1


def is_complex(kind: Type) -> bool:
    return isinstance(kind, ComplexType)


def is_quantized(kind: Type) -> bool:
    return isinstance(kind, QuantizedType)


def is_per_tensor(kind: Type) -> bool:
    """Quantized, with one scale and one zero point for all elements."""
    return isinstance(kind, PerTensorType)


def is_per_axis(kind: Type) -> bool:
    """Quantized, with a scale and a zero point for each slice along one dimension."""
    return isinstance(kind, PerAxisType)


def expressed(kind: Any) -> Any:
    """The type of what a tensor's elements stand for: of quantized ones, real numbers. Any other type is its own."""
    quantized = isinstance(kind, TensorType) and isinstance(kind.element_type, QuantizedType)
    return kind.with_element(kind.element_type.expressed_type) if quantized else kind


def stored(kind: Any) -> Any:
    """The type of what a tensor's elements are kept as: of quantized ones, integers. Any other type is its own."""
    quantized = isinstance(kind, TensorType) and isinstance(kind.element_type, QuantizedType)
    return kind.with_element(kind.element_type.storage_type) if quantized else kind


def same_baseline(one: Type, other: Type) -> bool:
    """Whether element types are equal but for the parameters of quantized ones: scales, zero points, and what they lie
    along."""
    if not isinstance(one, QuantizedType) or not isinstance(other, QuantizedType):
        return one is other
    names = ("storage_type", "storage_min", "storage_max", "expressed_type")
    return type(one) is type(other) and all(getattr(one, name) == getattr(other, name) for name in names)


def dimensions_compatible(one: int | None, other: int | None) -> bool:
    """Whether two extents can be the same at run time."""
    return one is None or other is None or one == other


def shapes_compatible(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    """Whether two shapes can be the same at run time."""
    return one == other or (len(one) == len(other) and all(map(dimensions_compatible, one, other)))


def compatible(one: Type, other: Type) -> bool:
    """Whether two types can hold the same value: equal but for dynamic dimensions and their bounds, and for the
    parameters of quantized elements, as MLIR has it."""
    if one is other:
        return True
    if isinstance(one, TensorType) and isinstance(other, TensorType):
        equal = one.element_type is other.element_type or same_baseline(one.element_type, other.element_type)
        return equal and _bounded_compatible(one, other)
    lists = TupleType if isinstance(one, TupleType) else FutureType
    if isinstance(one, lists) and isinstance(other, lists):
        return len(one.types) == len(other.types) and all(map(compatible, one.types, other.types))
    return False


def alike(one: Type, other: Type) -> bool:
    """Whether two types are compatible, and elements have the same quantization parameters."""
    same = getattr(one, "element_type", None) is getattr(other, "element_type", None)
    return same and compatible(one, other)


def _bounded_compatible(one: TensorType, other: TensorType) -> bool:
    if not shapes_compatible(one.shape, other.shape):
        return False
    limits = zip(one.shape, one.bounds, other.shape, other.bounds, strict=True)
    return all(
        (bound is None or theirs is None or theirs <= bound) and (limit is None or mine is None or mine <= limit)
        for mine, bound, theirs, limit in limits
    )
