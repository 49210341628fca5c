"""The types of VHLO, StableHLO's versioned dialect, in an artifact's bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trivium.ir.bytecode.encoding import DYNAMIC_EXTENT
from trivium.ir.bytecode.tables import EntryReader, EntryWriter
from trivium.ir.bytecode.versions import TYPES
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.types import (
    FLOATS,
    I1,
    INDEX,
    NONE,
    TOKEN,
    ComplexType,
    FloatType,
    FunctionType,
    IntegerType,
    TensorType,
    TupleType,
    Type,
)

_SIMPLE: dict[int, Type] = {
    0: I1,
    9: INDEX,
    22: TOKEN,
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


def unsupported(what: str) -> Callable[[EntryReader], Any]:
    """What VHLO has and Trivium has not."""

    def refuse(reader: EntryReader) -> Any:
        raise UnsupportedOpError(f"the file has {what}, which are not supported")

    return refuse


def _read_tensor_type(reader: EntryReader, encoding: Any = None) -> TensorType:
    shape = read_extents(reader)
    return TensorType(shape, reader.type(), encoding)


TYPE_READERS: dict[int, Callable[[EntryReader], Type]] = {
    **{code: lambda reader, kind=kind: kind for code, kind in _SIMPLE.items()},
    1: lambda reader: ComplexType(reader.expect(reader.type(), FloatType)),
    8: lambda reader: FunctionType(reader.types(), reader.types()),
    20: _read_tensor_type,
    21: lambda reader: _read_tensor_type(reader, encoding=reader.attribute()),
    23: lambda reader: TupleType(reader.types()),
    **{
        code: unsupported(f"types of {what}")
        for code, what in {
            **{24: "quantized tensors", 25: "tensors without a rank", 26: "witnesses"},
            **{30: "tensors quantized per axis", 41: "buffers", 42: "futures"},
        }.items()
    },
}


def write_type(out: EntryWriter, kind: Type) -> None:
    if kind in _SIMPLE_CODES:
        if str(kind) in TYPES:
            out.require(TYPES[str(kind)], f"type {kind}")
        out.varint(_SIMPLE_CODES[kind])
        return
    match kind:
        case TensorType(shape, element_type, encoding):
            out.varint(20 if encoding is None else 21)
            if encoding is not None:
                out.attribute(encoding)
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
        case _:
            raise Error(f"type {kind} cannot be written: StableHLO's artifacts have none of its kind")


def write_extents(out: EntryWriter, extents: tuple[int | None, ...]) -> None:
    out.signeds([DYNAMIC_EXTENT if extent is None else extent for extent in extents])
