"""The types of quantized numbers: integers that stand for real ones."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, NoReturn

import ml_dtypes
import numpy as np

from trivium.ir.bits import narrow
from trivium.ir.element_types import F64, FloatType, IntegerType, Type
from trivium.ir.errors import Error
from trivium.ir.numerals import float_text

MAX_STORAGE_WIDTH = 32


@dataclass(frozen=True, eq=False)
class QuantizedType(Type):
    """A real number stored as an integer from `storage_min` to `storage_max`: its value is `(stored - zero_point) *
    scale`, of type `expressed_type`. The subclasses differ in which elements of a tensor share a scale and a zero
    point."""

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
            self._fail("C3", f"{has}, {self.storage_type} can store {least} to {most}, expected a range within that")

    def __str__(self) -> str:
        limits = (self.storage_min, self.storage_max)
        stored = "" if limits == storage_range(self.storage_type) else f"<{limits[0]}:{limits[1]}>"
        return f"!quant.uniform<{self.storage_type}{stored}:{self.expressed_type}{self._parameters_text()}>"

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the stored integers."""
        return self.storage_type.dtype

    def parameters(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the scale (f64) and the zero point (i64) of each element of a tensor of that shape, as arrays that
        broadcast to it."""
        raise NotImplementedError

    def _parameters_text(self) -> str:
        raise NotImplementedError

    def _checked(self, scales: tuple[float, ...], zero_points: tuple[int, ...]) -> tuple[Any, Any]:
        """Checks the scales and zero points, and returns them as plain Python numbers."""
        if len(scales) != len(zero_points):
            self._fail("C9", f"{len(scales)} scales and {len(zero_points)} zero points, expected equal numbers")
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
    """Returns the smallest and the largest integer of a type."""
    signed = storage_type.signedness != "u"
    return -(1 << storage_type.width - 1) if signed else 0, (1 << storage_type.width - signed) - 1


def scale_range(expressed_type: FloatType) -> tuple[float, float]:
    """Returns the smallest positive number of a float type, and the largest number."""
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
    """Each block has its own scale and zero point. `block_sizes` has (dimension, extent of a block) pairs; other
    dimensions are not divided. `scales` and `zero_points` are the elements, row by row, of an array of shape `blocks`,
    which has one extent for each dimension of the tensor. As in MLIR, scales are rounded to the expressed type, and
    zero points wrap around in the storage type."""

    block_sizes: tuple[tuple[int, int], ...]
    blocks: tuple[int, ...]
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for dimension, size in self.block_sizes:
            self._check_dimension(dimension)
            if size < 1:
                raise Error(f"a quantized type has blocks of {size} along dimension {dimension}, expected at least 1")
        scales, zero_points = self._checked(self.scales, self.zero_points)
        if len(scales) != math.prod(self.blocks):
            self._fail("C9", f"{len(scales)} scales, expected {self.blocks}")
        object.__setattr__(self, "scales", tuple(_rounded(scale, self.expressed_type) for scale in scales))
        object.__setattr__(self, "zero_points", tuple(_wrapped(number, self.storage_type) for number in zero_points))

    def parameters(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        scales = np.array(self.scales, np.float64).reshape(self.blocks)
        zero_points = np.array(self.zero_points, np.int64).reshape(self.blocks)
        for dimension, size in self.block_sizes:
            scales, zero_points = scales.repeat(size, dimension), zero_points.repeat(size, dimension)
        return scales, zero_points

    def _parameters_text(self) -> str:
        # MLIR reads signed and unsigned zero points, and writes unsigned ones as if they were signed.
        signed = IntegerType(self.storage_type.width)
        items = [
            _parameter_text(scale, _wrapped(zero_point, signed), self.expressed_type)
            for scale, zero_point in zip(self.scales, self.zero_points, strict=True)
        ]
        for extent in reversed(self.blocks):
            items = [f"{{{', '.join(items[at : at + extent])}}}" for at in range(0, len(items), extent)]
        return f":{{{', '.join(f'{dimension}:{size}' for dimension, size in self.block_sizes)}}}, {items[0]}"


def _rounded(number: float, expressed_type: FloatType) -> float:
    return float(narrow(number, expressed_type))  # type: ignore[arg-type]


def _wrapped(number: int, storage_type: IntegerType) -> int:
    """Returns the integer of that type with the same low bits."""
    least, _ = storage_range(storage_type)
    return (number - least) % (1 << storage_type.width) + least


def _parameter_text(scale: float, zero_point: int, kind: FloatType | None = None) -> str:
    digits = float_text(scale, kind or F64)
    if kind is not None and digits.startswith("0x"):
        # Readers, including MLIR's, interpret hexadecimal bits as those of a double.
        digits = float_text(scale, F64)
    return f"{digits}:{zero_point}" if zero_point else digits
