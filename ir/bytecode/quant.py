"""The types of MLIR's quant dialect in plain bytecode."""

from __future__ import annotations

from collections.abc import Callable

from trivium.ir.attributes import DenseElements
from trivium.ir.bytecode.stablehlo import refuse
from trivium.ir.bytecode.tables import Dialect, EntryReader
from trivium.ir.types import (
    FloatType,
    IntegerType,
    PerAxisType,
    PerTensorType,
    QuantizedType,
    SubChannelType,
    UnsignedStorageType,
)

_SIGNED = 1
"""The flag of types whose stored integers have a sign."""


def _read_storage(reader: EntryReader) -> tuple[IntegerType, FloatType]:
    flags = reader.varint()
    storage = reader.expect(reader.type(), IntegerType)
    if not flags & _SIGNED and not storage.signedness:
        storage = UnsignedStorageType(storage.width)
    return storage, reader.expect(reader.type(), FloatType)


def _doubles(reader: EntryReader) -> tuple[float, ...]:
    return tuple([reader.double() for _ in range(reader.count())])


def _read_per_tensor(reader: EntryReader) -> PerTensorType:
    storage, expressed = _read_storage(reader)
    scale, zero_point = reader.double(), reader.signed()
    return PerTensorType(storage, expressed, reader.signed(), reader.signed(), scale, zero_point)


def _read_per_axis(reader: EntryReader) -> PerAxisType:
    storage, expressed = _read_storage(reader)
    dimension = reader.varint()
    least, most = reader.signed(), reader.signed()
    return PerAxisType(storage, expressed, least, most, dimension, _doubles(reader), reader.signeds())


def _read_sub_channel(reader: EntryReader) -> SubChannelType:
    storage, expressed = _read_storage(reader)
    least, most = reader.signed(), reader.signed()
    sizes = tuple(zip(reader.signeds(), reader.signeds(), strict=True))
    scales, zero_points = (reader.expect(reader.attribute(), DenseElements).expanded() for _ in range(2))
    # Both lie in tensors of one shape; stored numbers have no sign of their own there.
    numbers = zero_points.astype(storage.dtype).reshape(-1).tolist()
    return SubChannelType(
        storage, expressed, least, most, sizes, scales.shape, tuple(scales.reshape(-1).tolist()), tuple(numbers)
    )


_TYPES: dict[int, Callable[[EntryReader], QuantizedType]] = {
    4: _read_per_tensor,
    5: _read_per_axis,
    6: _read_sub_channel,
}

QUANT = Dialect({}, _TYPES, refuse, refuse)
