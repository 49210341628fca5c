"""The types of VHLO, StableHLO's versioned dialect, in the bytes of an artifact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trivium.ir.attributes import Attribute
from trivium.ir.bytecode.encoding import DYNAMIC_EXTENT
from trivium.ir.bytecode.tables import EntryReader, EntryWriter
from trivium.ir.bytecode.versions import TYPES
from trivium.ir.errors import Error
from trivium.ir.types import (
    FLOATS,
    I1,
    INDEX,
    NONE,
    TOKEN,
    WITNESS,
    Bounds,
    BufferType,
    ComplexType,
    FloatType,
    FunctionType,
    FutureType,
    IntegerType,
    PerAxisType,
    PerTensorType,
    QuantizedType,
    TensorType,
    TupleType,
    Type,
    UnrankedTensorType,
    UnsignedStorageType,
)

_SIMPLE: dict[int, Type] = {
    0: I1,
    9: INDEX,
    22: TOKEN,
    26: WITNESS,
    33: NONE,
    **dict(zip((31, 10, 11, 12, 13, 14), map(IntegerType, (2, 4, 8, 16, 32, 64)), strict=True)),
    **{code: IntegerType(width, "u") for code, width in zip((32, *range(15, 20)), (2, 4, 8, 16, 32, 64), strict=True)},
    **{
        code: FLOATS[name]
        for code, name in {
            **{2: "bf16", 3: "f16", 4: "f32", 5: "f64", 6: "f8E4M3FN", 7: "f8E5M2", 27: "f8E4M3FNUZ"},
            **{28: "f8E5M2FNUZ", 29: "f8E4M3B11FNUZ", 34: "tf32", 35: "f8E4M3", 36: "f8E3M4", 37: "f4E2M1FN"},
            **{38: "f6E2M3FN", 39: "f6E3M2FN", 40: "f8E8M0FNU"},
        }.items()
    },
}
_SIMPLE_CODES = {kind: code for code, kind in _SIMPLE.items()}


def read_extents(reader: EntryReader) -> tuple[int | None, ...]:
    extents = tuple([None if extent == DYNAMIC_EXTENT else extent for extent in reader.signeds()])
    if any(extent is not None and extent < 0 for extent in extents):
        raise reader.error(f"a shape has {extents}, expected no negative extent")
    return extents


def _read_tensor_type(reader: EntryReader, encoding: Attribute | None = None) -> TensorType:
    shape = read_extents(reader)
    return TensorType(shape, reader.type(), encoding)


_SIGNED = 1
"""The flag of a quantized type with signed storage."""


def read_storage(reader: EntryReader) -> tuple[IntegerType, FloatType]:
    """Reads the flag for signed storage, the storage type and the expressed type; returns the two types."""
    flags, storage = reader.varint(), reader.expect(reader.type(), IntegerType)
    if flags == 0 and storage.signedness == "":
        storage = UnsignedStorageType(storage.width)
    if flags != (storage.signedness != "u"):
        raise reader.error(f"has the flags {flags} for storage type {storage}")
    return storage, reader.expect(reader.type(), FloatType)


def read_per_tensor(reader: EntryReader) -> PerTensorType:
    storage, expressed = read_storage(reader)
    scale, zero_point = reader.double(), reader.signed()
    return PerTensorType(storage, expressed, reader.signed(), reader.signed(), scale, zero_point)


def read_per_axis(reader: EntryReader) -> PerAxisType:
    storage, expressed = read_storage(reader)
    dimension, least, most = reader.varint(), reader.signed(), reader.signed()
    scales = tuple([reader.double() for _ in range(reader.count())])
    return PerAxisType(storage, expressed, least, most, dimension, scales, reader.signeds())


TYPE_READERS: dict[int, Callable[[EntryReader], Type]] = {
    **{code: lambda reader, kind=kind: kind for code, kind in _SIMPLE.items()},
    1: lambda reader: ComplexType(reader.expect(reader.type(), FloatType)),
    8: lambda reader: FunctionType(reader.types(), reader.types()),
    20: _read_tensor_type,
    21: lambda reader: _read_tensor_type(reader, encoding=reader.attribute()),
    23: lambda reader: TupleType(reader.types()),
    24: read_per_tensor,
    25: lambda reader: UnrankedTensorType(reader.type()),
    30: read_per_axis,
    41: lambda reader: BufferType(read_extents(reader), reader.type()),
    42: lambda reader: FutureType(reader.types()),
}


@dataclass(frozen=True)
class Encoding:
    """Bounds of a tensor type; VHLO does not have them as an attribute of an op."""

    bounds: Bounds


def write_type(out: EntryWriter, kind: Type) -> None:
    if kind in _SIMPLE_CODES:
        if str(kind) in TYPES:
            out.require(TYPES[str(kind)], f"type {kind}")
        out.varint(_SIMPLE_CODES[kind])
        return
    match kind:
        case TensorType(shape, element_type, encoding):
            out.varint(20 if encoding is None else 21)
            if isinstance(encoding, Bounds):
                out.attribute(Encoding(encoding))
            elif encoding is not None:
                raise Error(f"type {kind} cannot be written: StableHLO's artifacts support only bounds as encodings")
            write_extents(out, shape)
            out.type(element_type)
        case ComplexType(element_type):
            out.varint(1)
            out.type(element_type)
        case FunctionType(inputs, results):
            out.varint(8)
            out.types(inputs)
            out.types(results)
        case TupleType(types):
            out.varint(23)
            out.types(types)
        case UnrankedTensorType(element_type):
            out.varint(25)
            out.type(element_type)
        case BufferType(shape, element_type):
            out.require(TYPES["buffer"], "a buffer")
            out.varint(41)
            write_extents(out, shape)
            out.type(element_type)
        case FutureType(types):
            out.require(TYPES["future"], "a future")
            out.varint(42)
            out.types(types)
        case QuantizedType():
            _write_quantized(out, kind)
        case _:
            raise Error(f"type {kind} cannot be written: StableHLO's artifacts have no such types")


def _write_quantized(out: EntryWriter, kind: QuantizedType) -> None:
    match kind:
        case PerTensorType():
            out.varint(24)
            _write_storage(out, kind)
            out.double(kind.scale)
            out.signed(kind.zero_point)
            out.signed(kind.storage_min)
            out.signed(kind.storage_max)
        case PerAxisType():
            out.require(TYPES["per axis"], "a type quantized per axis")
            out.varint(30)
            _write_storage(out, kind)
            out.varint(kind.quantization_dimension)
            out.signed(kind.storage_min)
            out.signed(kind.storage_max)
            out.varint(len(kind.scales))
            for scale in kind.scales:
                out.double(scale)
            out.signeds(kind.zero_points)
        case _:
            raise Error(f"type {kind} cannot be written: StableHLO's artifacts have no types quantized per block")


def _write_storage(out: EntryWriter, kind: QuantizedType) -> None:
    storage = kind.storage_type
    out.varint(_SIGNED if storage.signedness != "u" else 0)
    out.type(IntegerType(storage.width) if isinstance(storage, UnsignedStorageType) else storage)
    out.type(kind.expressed_type)


def write_extents(out: EntryWriter, extents: tuple[int | None, ...]) -> None:
    out.signeds([DYNAMIC_EXTENT if extent is None else extent for extent in extents])
