"""The values of a SavedModel's variables: tensors in a bundle, which is an index (a sorted table of protocol buffers)
beside the data. TensorFlow aborts the process if an index is damaged, so it is checked here before TensorFlow reads
from it."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import tensor_bundle_pb2

from trivium.importers.common import require_regular
from trivium.ir.errors import Error

OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""The key of the objects whose variables are in the bundle."""

MAX_INDEX = 1 << 24
"""The maximal size of an index in bytes: about a hundred thousand variables."""

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER = 48


class Checkpoint:
    """The tensors of a bundle by key: its files are `prefix.index` and `prefix.data-00000-of-00001`."""

    def __init__(self, prefix: Path):
        self.prefix = prefix
        self.entries = self._entries()

    @cached_property
    def _reader(self) -> tf.train.CheckpointReader:
        return tf.train.load_checkpoint(str(self.prefix))

    def array(self, key: str, shape: tuple[int, ...], dtype: tf.DType) -> np.ndarray:
        """Returns the value of a variable, with the shape and dtype that the graph declares for it."""
        entry, have = self._variable(key), self.shape(key)
        if have != shape or entry.dtype != dtype.as_datatype_enum:
            name = tf.dtypes.as_dtype(entry.dtype).name
            raise Error(f"{self.prefix} has {name} {have} for the variable {key}, expected {dtype.name} {shape}")
        expected = math.prod(shape) * dtype.size
        if not entry.slices and entry.size != expected:
            raise Error(f"{self.prefix} has {entry.size} bytes for the variable {key}, expected {expected}")
        try:
            return np.asarray(self._reader.get_tensor(key))
        except Exception as error:  # various types
            raise Error(f"{self.prefix} is damaged: cannot read the variable {key}: {error}") from None

    def shape(self, key: str) -> tuple[int, ...]:
        """Returns the shape of a variable's value."""
        return tuple(dim.size for dim in self._variable(key).shape.dim)

    def _variable(self, key: str) -> tensor_bundle_pb2.BundleEntryProto:
        if key not in self.entries:
            raise Error(f"{self.prefix} has no value of the variable {key}")
        return self.entries[key]

    def text(self, key: str) -> bytes:
        """Returns the value of a 0-d string: its length, a checksum, its bytes."""
        entry = self.entries.get(key)
        if entry is None or entry.dtype != tf.string.as_datatype_enum or entry.shape.dim or entry.slices:
            raise Error(f"{self.prefix} has no text {key}")
        with open(self._shard(entry), "rb") as file:
            file.seek(entry.offset)
            data = file.read(entry.size)
        length, start = _varint(data, 0)
        if start + 4 + length != len(data):
            raise Error(
                f"{self.prefix} is damaged: the text {key} has {len(data)} bytes, expected {start + 4 + length}"
            )
        return data[start + 4 :]

    def _shard(self, entry: tensor_bundle_pb2.BundleEntryProto) -> Path:
        return Path(f"{self.prefix}.data-{entry.shard_id:05d}-of-{self.shards:05d}")

    def _entries(self) -> dict[str, tensor_bundle_pb2.BundleEntryProto]:
        path = Path(f"{self.prefix}.index")
        try:
            require_regular(path)
            if path.stat().st_size > MAX_INDEX:
                raise Error(f"{path} has {path.stat().st_size} bytes, expected at most {MAX_INDEX}")
            table = _Table(path.read_bytes()).pairs()
            header = tensor_bundle_pb2.BundleHeaderProto.FromString(table.pop(b""))
            if not 1 <= header.num_shards <= 10_000 or header.endianness != header.LITTLE:
                raise ValueError(f"it has {header.num_shards} shards, or big-endian ones")
            self.shards = header.num_shards
            entries = {
                key.decode(): tensor_bundle_pb2.BundleEntryProto.FromString(value) for key, value in table.items()
            }
            for key, entry in entries.items():
                self._require_held(key, entry)
            return entries
        except OSError as error:
            raise Error(f"cannot read {path}: {error.strerror}") from None
        except (DecodeError, IndexError, KeyError, ValueError, struct.error) as error:
            raise Error(f"{path} is not an index of a checkpoint, or is damaged: {error}") from None

    def _require_held(self, key: str, entry: tensor_bundle_pb2.BundleEntryProto) -> None:
        """Rejects an entry whose bytes are not in the data."""
        if min([entry.shard_id, entry.offset, entry.size, *(dim.size for dim in entry.shape.dim)]) < 0:
            raise ValueError(f"{key} has a negative size")
        if entry.slices:  # whose parts are entries of their own
            held = sum(x.stat().st_size for x in self.prefix.parent.glob(f"{self.prefix.name}.data-*"))
            needed = math.prod(dim.size for dim in entry.shape.dim)
        else:
            require_regular(shard := self._shard(entry))
            held = shard.stat().st_size
            needed = entry.offset + entry.size
        if needed > held:
            raise ValueError(f"{key} needs {needed} bytes of data, there are {held}")


@dataclass(frozen=True)
class Stored:
    """A value in a checkpoint."""

    checkpoint: Checkpoint
    key: str
    shape: tuple[int, ...]
    dtype: tf.DType

    def read(self) -> np.ndarray:
        """Returns the value itself."""
        return self.checkpoint.array(self.key, self.shape, self.dtype)


class _Table:
    """A sorted table: blocks of pairs, whose keys share prefixes, a block that locates them, and a footer that locates
    that one."""

    def __init__(self, data: bytes):
        self.data = data
        if len(data) < _FOOTER or data[-8:] != _MAGIC:
            raise ValueError("it has no footer")

    def pairs(self) -> dict[bytes, bytes]:
        position = len(self.data) - _FOOTER
        for _ in range(2):  # the block of statistics, which is empty
            _, position = _varint(self.data, position)
        found: dict[bytes, bytes] = {}
        for handle in self._block(self.data, position).values():
            block = self._block(handle, 0)
            if found.keys() & block.keys():
                raise ValueError("a key occurs twice")
            found |= block
        return found

    def _block(self, handle: bytes, position: int) -> dict[bytes, bytes]:
        """Returns the pairs of the block that a handle locates."""
        offset, position = _varint(handle, position)
        size, _ = _varint(handle, position)
        if offset + size + 5 > len(self.data):
            raise ValueError("it is truncated")
        content, kind = self.data[offset : offset + size], self.data[offset + size]
        (checksum,) = struct.unpack_from("<I", self.data, offset + size + 1)
        if _checksum(self.data[offset : offset + size + 1]) != checksum:
            raise ValueError("a checksum differs")
        if kind:
            raise ValueError("it is compressed")
        (restarts,) = struct.unpack_from("<I", content, size - 4)
        return _pairs(content[: size - 4 * (restarts + 1)]) if size >= 4 * (restarts + 1) else {}


def _pairs(content: bytes) -> dict[bytes, bytes]:
    pairs: dict[bytes, bytes] = {}
    key, position = b"", 0
    while position < len(content):
        shared, position = _varint(content, position)
        unshared, position = _varint(content, position)
        length, position = _varint(content, position)
        end = position + unshared + length
        if shared > len(key) or end > len(content):
            raise ValueError("it is truncated")
        key = key[:shared] + content[position : position + unshared]
        pairs[key] = content[position + unshared : end]
        position = end
    return pairs


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Returns a number of variable length, and the start of what follows it."""
    value = 0
    for shift in range(0, 64, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ValueError("a number has more than 64 bits")


@cache
def _remainders() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


def _checksum(data: bytes) -> int:
    """Returns the CRC-32C, masked as in tables."""
    table, value = _remainders(), 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 255]
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF
