"""Artifacts as bytes, in the layout of `native/artifact.h`, which C++ reads in place. Reading trusts nothing: every
number is checked before it is used, and bytes that are damaged, truncated or not an artifact raise an Error. For the
machine code itself, the checksum shows only that it is what was written."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from ctypes import LittleEndianStructure, c_char, c_int64, c_uint32, c_uint64, sizeof
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from trivium.compiler.artifact import (
    Artifact,
    Axis,
    ConstantData,
    Embedded,
    Machine,
    ModuleConstant,
    NativeFunction,
    Packing,
    PythonFunction,
    Slot,
)
from trivium.ir.errors import Error

MAGIC = b"\x93TRIVIUM"
FORMAT = 1
RECORD, PAGE, LINE = 8, 4096, 64
LARGEST = 1 << 48
"""More than a machine can address: larger sizes mean damage."""
MOST_DIMENSIONS = 64
"""NumPy's limit."""

NATIVE, PYTHON = 0, 1
EMBEDDED, MODULE = 0, 1

ELEMENT_TYPES: dict[int, type] = {
    1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64,
    6: np.uint8, 7: np.uint16, 8: np.uint32, 9: np.uint64,
    10: np.float16, 11: np.float32, 12: np.float64, 13: ml_dtypes.bfloat16,
    14: np.complex64, 15: np.complex128,
    16: ml_dtypes.float8_e5m2, 17: ml_dtypes.float8_e4m3fn, 18: ml_dtypes.float8_e4m3b11fnuz,
    19: ml_dtypes.float8_e5m2fnuz, 20: ml_dtypes.float8_e4m3fnuz,
    21: ml_dtypes.int4, 22: ml_dtypes.uint4, 24: ml_dtypes.int2, 25: ml_dtypes.uint2,
    26: ml_dtypes.float8_e4m3, 27: ml_dtypes.float8_e3m4, 28: ml_dtypes.float8_e8m0fnu, 29: ml_dtypes.float4_e2m1fn,
    1000: ml_dtypes.float6_e2m3fn, 1001: ml_dtypes.float6_e3m2fn,
}  # fmt: skip
_NUMBERS = {np.dtype(kind): number for number, kind in ELEMENT_TYPES.items()}


class _Span(LittleEndianStructure):
    _fields_ = (("offset", c_uint64), ("count", c_uint64))
    offset: int
    count: int


def _record(title: str, /, **fields: Any) -> Any:
    return type(title, (LittleEndianStructure,), {"_fields_": tuple(fields.items())})


_Int64 = _record("Int64", value=c_int64)
_Slot = _record("Slot", type=c_uint32, reserved=c_uint32, bytes=c_uint64, dimensions=_Span)
_HostCall = _record("HostCall", kind=c_uint32, reserved=c_uint32, function=_Span, routine=_Span, program=_Span)
_Axis = _record("Axis", extent=c_int64, stride=c_int64)
_Packing = _record(
    "Packing",
    element_bytes=c_uint64,
    offset=c_uint64,
    batch=_Span,
    columns=_Span,
    reduction=_Span,
    widths=_Span,
)
_Constant = _record(
    "Constant",
    source=c_uint32,
    index=c_uint32,
    offset=c_uint64,
    source_bytes=c_uint64,
    bytes=c_uint64,
    alignment=c_uint64,
    packing=_Span,
)
_Text = _record("Text", name=_Span, text=_Span)
_TEXTS = ("name", "producer", "triple", "cpu", "features")
_LISTS = ("inputs", "outputs", "host_calls", "constants", "texts", "code", "data")
_Header = _record(
    "Header",
    magic=c_char * 8,
    format=c_uint32,
    checksum=c_uint32,
    size=c_uint64,
    runtime=c_uint32,
    threads=c_uint32,
    arena_bytes=c_uint64,
    arena_alignment=c_uint64,
    **dict.fromkeys((*_TEXTS, *_LISTS), _Span),
)
_CHECKED = 16
"""The offset of the first byte that the checksum covers."""


def to_bytes(artifact: Artifact) -> bytes:
    """Returns the artifact in the layout of `native/artifact.h`."""
    return bytes(_Writer(artifact).data)


def from_bytes(data: bytes) -> Artifact:
    """Returns the artifact that `to_bytes` wrote; anything else raises an Error. Embedded constants stay in `data`."""
    return _Reader(data).artifact()


class _Writer:
    """The bytes of an artifact, appended piece by piece; the header is written last, over the zeros that reserve its
    place."""

    def __init__(self, artifact: Artifact):
        self.data = bytearray(sizeof(_Header))
        self._payload = 0
        self._embedded: list[tuple[int, np.ndarray]] = []
        machine = artifact.machine
        texts = artifact.name, artifact.producer, machine.triple, machine.cpu, machine.features
        spans: dict[str, _Span] = dict(zip(_TEXTS, map(self._text, texts), strict=True))
        spans["inputs"] = self._records(_Slot, map(self._slot, artifact.inputs))
        spans["outputs"] = self._records(_Slot, map(self._slot, artifact.outputs))
        spans["host_calls"] = self._records(_HostCall, map(self._host_call, artifact.host_functions))
        spans["constants"] = self._records(_Constant, map(self._constant, artifact.constants))
        pairs = (_Text(self._text(name), self._text(text)) for name, text in artifact.texts.items())
        spans["texts"] = self._records(_Text, pairs)
        spans["code"] = self._bytes(artifact.code, LINE)
        spans["data"] = self._data()
        header = _Header(
            magic=MAGIC,
            format=FORMAT,
            size=len(self.data),
            runtime=artifact.runtime,
            threads=artifact.threads,
            arena_bytes=artifact.arena_size,
            arena_alignment=artifact.arena_alignment,
            **spans,
        )
        self.data[: sizeof(_Header)] = bytes(header)
        header.checksum = zlib.crc32(memoryview(self.data)[_CHECKED:])
        self.data[: sizeof(_Header)] = bytes(header)

    def _bytes(self, data: bytes, alignment: int, count: int | None = None) -> _Span:
        self.data += bytes(-len(self.data) % alignment)
        span = _Span(len(self.data), len(data) if count is None else count)
        self.data += data
        return span

    def _text(self, text: str) -> _Span:
        encoded = text.encode()
        return self._bytes(encoded + b"\0", 1, len(encoded))

    def _records(self, kind: Any, records: Iterator[Any]) -> _Span:
        listed = list(records)
        return self._bytes(b"".join(map(bytes, listed)), RECORD, len(listed))

    def _slot(self, slot: Slot) -> Any:
        dimensions = self._records(_Int64, map(_Int64, slot.shape))
        return _Slot(_NUMBERS[slot.dtype], 0, slot.nbytes, dimensions)

    def _host_call(self, call: NativeFunction | PythonFunction) -> Any:
        if isinstance(call, NativeFunction):
            return _HostCall(NATIVE, 0, self._text(call.function), self._text(call.routine), self._text(""))
        return _HostCall(PYTHON, 0, self._text(call.target), self._text(""), self._text(call.program))

    def _constant(self, constant: ConstantData) -> Any:
        source = constant.source
        packings = () if constant.packing is None else (constant.packing,)
        packing = self._records(_Packing, map(self._packing, packings))
        if isinstance(source, ModuleConstant):
            place = MODULE, source.index, source.offset
        else:
            place = EMBEDDED, 0, self._embed(source.data)
        return _Constant(*place, source.nbytes, constant.nbytes, LINE, packing)

    def _packing(self, packing: Packing) -> Any:
        groups = packing.batch, packing.columns, packing.reduction
        axes = (self._records(_Axis, (_Axis(axis.extent, axis.stride) for axis in group)) for group in groups)
        return _Packing(packing.itemsize, packing.offset, *axes, self._records(_Int64, map(_Int64, packing.widths)))

    def _embed(self, data: np.ndarray) -> int:
        """Reserves space in the payload for the bytes."""
        offset = self._payload + -self._payload % LINE
        self._embedded.append((offset, data))
        self._payload = offset + data.nbytes
        return offset

    def _data(self) -> _Span:
        self.data += bytes(-len(self.data) % PAGE)
        start = len(self.data)
        for offset, data in self._embedded:
            self.data += bytes(start + offset - len(self.data))
            self.data += np.ascontiguousarray(data).tobytes()
        return _Span(start, len(self.data) - start)


R = TypeVar("R", bound=LittleEndianStructure)


class _Reader:
    """The bytes of an artifact, read through checked spans."""

    def __init__(self, data: bytes):
        self.data = memoryview(data)
        _require(len(data) >= sizeof(_Header), f"it has {len(data)} bytes, expected at least {sizeof(_Header)}")
        self.header = header = _Header.from_buffer_copy(data)
        _require(data[: len(MAGIC)] == MAGIC, f"it begins with {bytes(data[:8])!r}, expected {MAGIC!r}")
        _require(header.format == FORMAT, f"it has format {header.format}, expected {FORMAT}")
        _require(header.size == len(data), f"it has {len(data)} bytes, but its header says {header.size}")
        checksum = zlib.crc32(self.data[_CHECKED:])
        _require(header.checksum == checksum, f"its checksum is {checksum:08x}, its header says {header.checksum:08x}")

    def artifact(self) -> Artifact:
        header = self.header
        alignment = header.arena_alignment
        _require(header.arena_bytes < LARGEST, f"its arena has {header.arena_bytes} bytes")
        _require(0 < alignment <= PAGE and alignment & (alignment - 1) == 0, f"its arena is aligned to {alignment}")
        self._payload = self._bytes(header.data.offset, header.data.count)
        name, producer, triple, cpu, features = (self._text(getattr(header, field)) for field in _TEXTS)
        return Artifact(
            name=name,
            machine=Machine(triple, cpu, features),
            runtime=header.runtime,
            threads=header.threads,
            producer=producer,
            code=bytes(self._bytes(header.code.offset, header.code.count)),
            inputs=tuple(map(self._slot, self._records(_Slot, header.inputs))),
            outputs=tuple(map(self._slot, self._records(_Slot, header.outputs))),
            arena_size=header.arena_bytes,
            arena_alignment=alignment,
            host_functions=tuple(map(self._host_call, self._records(_HostCall, header.host_calls))),
            constants=tuple(map(self._constant, self._records(_Constant, header.constants))),
            texts={self._text(text.name): self._text(text.text) for text in self._records(_Text, header.texts)},
        )

    def _bytes(self, offset: int, size: int) -> memoryview:
        end = offset + size
        _require(end <= len(self.data), f"a part of it ends at {end}, after its end at {len(self.data)}")
        return self.data[offset:end]

    def _records(self, kind: Any, span: _Span) -> Sequence[Any]:
        data = self._bytes(span.offset, span.count * sizeof(kind))
        _require(span.offset % RECORD == 0, f"a list in it begins at {span.offset}, not a multiple of {RECORD}")
        return [kind.from_buffer_copy(data, number * sizeof(kind)) for number in range(span.count)]

    def _text(self, span: _Span) -> str:
        data = self._bytes(span.offset, span.count + 1)
        _require(data[-1] == 0, f"a text in it, at {span.offset}, does not end with a zero byte")
        try:
            return str(data[:-1], "utf-8")
        except UnicodeDecodeError as error:
            raise _damaged(f"a text in it is not UTF-8: {error}") from None

    def _numbers(self, span: _Span) -> tuple[int, ...]:
        numbers = tuple(record.value for record in self._records(_Int64, span))
        _require(all(0 <= number < LARGEST for number in numbers), f"it has sizes {numbers}")
        return numbers

    def _slot(self, record: Any) -> Slot:
        kind = ELEMENT_TYPES.get(record.type)
        if kind is None:
            raise _damaged(f"it has elements of type {record.type}")
        _require(record.dimensions.count <= MOST_DIMENSIONS, f"a value of it has rank {record.dimensions.count}")
        slot = Slot(np.dtype(kind), self._numbers(record.dimensions))
        _require(slot.nbytes == record.bytes, f"a value of {slot} in it has {record.bytes} bytes")
        return slot

    def _host_call(self, record: Any) -> NativeFunction | PythonFunction:
        function, routine, program = map(self._text, (record.function, record.routine, record.program))
        _require(record.kind in (NATIVE, PYTHON), f"it has a host call of kind {record.kind}")
        return NativeFunction(function, routine) if record.kind == NATIVE else PythonFunction(function, program)

    def _constant(self, record: Any) -> ConstantData:
        packings = [self._packing(packing) for packing in self._records(_Packing, record.packing)]
        _require(len(packings) <= 1, f"a constant of it has {len(packings)} packings")
        constant = ConstantData(self._source(record), packings[0] if packings else None)
        _require(constant.nbytes == record.bytes, f"a constant of it has {constant.nbytes} bytes, not {record.bytes}")
        for packing in packings:
            reach, count = packing.reach, record.source_bytes // packing.itemsize
            _require(reach.start >= 0 and reach.stop <= count, f"a packing reads {reach} of {count} elements")
        return constant

    def _source(self, record: Any) -> Embedded | ModuleConstant:
        end = record.offset + record.source_bytes
        if record.source == MODULE:
            _require(end < LARGEST, f"a constant of it ends at {end}")
            return ModuleConstant(record.index, record.offset, record.source_bytes)
        _require(record.source == EMBEDDED, f"it has a constant of source {record.source}")
        _require(end <= len(self._payload), f"a constant of it ends at {end}, beyond {len(self._payload)}")
        return Embedded(np.frombuffer(self._payload[record.offset : end], np.uint8))

    def _packing(self, record: Any) -> Packing:
        size, offset = record.element_bytes, record.offset
        _require(0 < size <= 16 and offset < LARGEST, f"it has a packing of elements of {size} bytes, from {offset} on")
        batch, columns, reduction = map(self._axes, (record.batch, record.columns, record.reduction))
        packing = Packing(size, offset, batch, columns, reduction, self._numbers(record.widths))
        count = math.prod(axis.extent for axis in columns)
        _require(count <= sum(packing.widths), f"it has a packing of {count} columns in {packing.widths}")
        _require(packing.nbytes < LARGEST, f"it has a packing of {packing.nbytes} bytes")
        return packing

    def _axes(self, span: _Span) -> tuple[Axis, ...]:
        axes = tuple(Axis(record.extent, record.stride) for record in self._records(_Axis, span))
        sound = all(0 < axis.extent < LARGEST and abs(axis.stride) < LARGEST for axis in axes)
        _require(sound, f"it has a packing along {axes}")
        return axes


def _require(condition: bool, complaint: str) -> None:
    if not condition:
        raise _damaged(complaint)


def _damaged(complaint: str) -> Error:
    return Error(f"these bytes are not a compiled program of this version of Trivium: {complaint}")
