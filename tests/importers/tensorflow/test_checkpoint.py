"""Checkpoints of SavedModels that were damaged, by chance or on purpose."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")


import trivium
from tests.importers.tensorflow.saved_models import load, refuse
from trivium.importers.tensorflow import checkpoint as checkpoints

pytestmark = pytest.mark.tensorflow


def index_of(folder: Path) -> Path:
    return folder / "variables" / "variables.index"


def data_of(folder: Path) -> Path:
    return folder / "variables" / "variables.data-00000-of-00001"


def test_missing_files_are_reported(folder: Path) -> None:
    data_of(folder).unlink()
    refuse(folder, "cannot read .*variables.index|No such file")
    index_of(folder).unlink()
    refuse(folder, "cannot read .*variables.index: No such file")


def test_damaged_indices_are_refused(folder: Path) -> None:
    """Some of these would abort the process inside TensorFlow."""
    whole, generator = index_of(folder).read_bytes(), random.Random(0)
    for length in range(0, len(whole), 17):
        index_of(folder).write_bytes(whole[:length])
        refuse(folder, "is not an index of a checkpoint, or is damaged")
    for _ in range(60):
        content = bytearray(whole)
        content[generator.randrange(len(content) - 60)] ^= 1 << generator.randrange(8)
        index_of(folder).write_bytes(content)
        try:
            load(folder)
        except trivium.Error:
            continue


def rewritten(folder: Path, change: Callable[[dict[bytes, Any]], None]) -> None:
    """Rewrites the index, as one block with correct checksums, after changing its entries."""
    table = checkpoints._Table(index_of(folder).read_bytes()).pairs()
    change(table)
    index_of(folder).write_bytes(_table_of(dict(sorted(table.items()))))


def _table_of(pairs: dict[bytes, bytes]) -> bytes:
    content, handles = b"", []
    last = max(pairs, default=b"") + b"\xff"
    for block in (pairs, {}, {last: None}):
        data = b""
        for key, value in block.items():
            value = handles[0] if value is None else value
            data += _number(0) + _number(len(key)) + _number(len(value)) + key + value
        data += bytes(4) + (1).to_bytes(4, "little") + b"\0"
        handles.append(_number(len(content)) + _number(len(data) - 1))
        content += data + checkpoints._checksum(data).to_bytes(4, "little")
    return content + (handles[1] + handles[2]).ljust(40, b"\0") + checkpoints._MAGIC


def _number(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def change_entry(table: dict[bytes, Any], **fields: int) -> None:
    key = next(key for key in table if key.startswith(b"layers/0"))
    entry = checkpoints.tensor_bundle_pb2.BundleEntryProto.FromString(table[key])
    for name, value in fields.items():
        setattr(entry, name, value)
    table[key] = entry.SerializeToString()


def test_an_index_that_is_written_anew_is_read(folder: Path) -> None:
    before = str(load(folder))
    rewritten(folder, lambda table: None)
    assert str(load(folder)) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: change_entry(table, offset=1 << 40), "bytes of data, there are"),
        (lambda table: change_entry(table, size=1 << 40), "bytes of data, there are"),
        (lambda table: change_entry(table, size=63), "has 63 bytes for the variable .*, expected 64"),
        (lambda table: change_entry(table, offset=-1), "has a negative size"),
        (lambda table: change_entry(table, shard_id=7), "No such file"),
        (lambda table: change_entry(table, dtype=3), "has int32 .4, 4. for the variable"),
        (lambda table: change_entry(table, crc32c=1), "is damaged: cannot read the variable"),
        (lambda table: table.pop(b""), "is not an index of a checkpoint"),
        (lambda table: table.pop(checkpoints.OBJECTS.encode()), "has no text _CHECKPOINTABLE_OBJECT_GRAPH"),
        (lambda table: table.update({b"layers/0": b"\xff\xff"}), "is not an index of a checkpoint"),
        (lambda table: table.clear(), "is not an index of a checkpoint"),
        (lambda table: table.update({b"": b"\x08\x00"}), "has 0 shards"),
        (lambda table: table.update({b"": b"\x08\x01\x10\x01"}), "big-endian"),
        (lambda table: [table.pop(key) for key in list(table) if b"layers/0" in key], "has no value of the variable"),
    ],
)
def test_entries_that_the_data_does_not_have(folder: Path, change: Any, message: str) -> None:
    rewritten(folder, change)
    refuse(folder, message)


def test_damaged_data_is_refused(folder: Path) -> None:
    whole = data_of(folder).read_bytes()
    data_of(folder).write_bytes(whole[:-10])
    refuse(folder, "bytes of data, there are")
    for position in range(0, len(whole), len(whole) // 10):
        data_of(folder).write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        try:
            assert str(load(folder)) == str(load(folder))
        except trivium.Error:
            continue
