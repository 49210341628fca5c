"""The artifacts that StableHLO has recorded since 0.9.0, and the texts from which they were made."""

import re
from pathlib import Path

import pytest

import trivium
from tests.ir.vectors import texts
from trivium.ir.bytecode import deserialize, load, reading, serialize
from trivium.ir.bytecode.encoding import Cursor, Output
from trivium.ir.equality import difference
from trivium.ir.text import parse

LEGALIZED = "stablehlo_legalize_to_vhlo"
WRITTEN_AGAIN = {
    f"{LEGALIZED}.{version}": version.replace("_", ".")
    for version in (
        *("0_9_0", "0_10_0", "0_12_0", "0_13_0", "0_14_0", "0_15_0", "0_16_0", "0_18_0", "0_19_0", "0_20_0"),
        *("1_0_0", "1_1_0", "1_18_0", "1_19_0"),
    )
}
"""The files that are written again byte for byte, and their versions."""
WITH_ORDERS_OF_USES = {
    f"{LEGALIZED}.{version}": version.replace("_", ".")
    for version in (
        *("1_2_0", "1_4_0", "1_5_0", "1_6_0", "1_7_0", "1_8_0", "1_10_0", "1_11_0", "1_12_0", "1_13_0", "1_15_0"),
        "1_16_0",
    )
} | {"vhlo_emit_version_api.1_1_0": "1.1.0"}
"""Files that are written again byte for byte, except for one list of three bytes: the order in which MLIR kept, in
memory, the two uses of an argument, by a `custom_call` and by the return after it. Below 1.18.0, MLIR's writer replaces
the call by its first revision, and the use by the new op comes first. (The last file is older, and comes from another
writer.) The order shows how the writer works; it says nothing about the program. In the files above, no op with several
uses is replaced, and a reader restores the same order anyway."""
ARTIFACTS = WRITTEN_AGAIN | WITH_ORDERS_OF_USES
DEFAULT_ACCURACY = re.compile(r"result_accuracy = #stablehlo\.result_accuracy<[^<>]*<DEFAULT>>")
"""Artifacts do not distinguish an attribute with its default value from an absent one, and MLIR reads it as absent."""


@pytest.fixture(scope="module")
def artifacts(conformance) -> Path:
    return conformance / "stablehlo" / "vhlo"


def test_all_artifacts_are_listed(artifacts):
    found = {path.name.removesuffix(".mlir.bc") for path in artifacts.glob("*.mlir.bc")}
    assert found - {"invalid_vhlo_future"} == ARTIFACTS.keys()


@pytest.mark.parametrize("name", ARTIFACTS)
def test_recorded_artifacts(artifacts, name):
    """Each file is read, upgraded, and equal to its text."""
    text = DEFAULT_ACCURACY.sub("", (artifacts / f"{name}.mlir").read_text())
    assert difference(load(artifacts / f"{name}.mlir.bc"), parse(text)) == ""


@pytest.mark.parametrize("name", WRITTEN_AGAIN)
def test_artifacts_are_written_again(artifacts, name):
    data = (artifacts / f"{name}.mlir.bc").read_bytes()
    assert serialize(deserialize(data), WRITTEN_AGAIN[name]) == data


@pytest.mark.parametrize("name", WITH_ORDERS_OF_USES)
def test_artifacts_are_written_again_except_for_the_order_of_uses(artifacts, name, monkeypatch):
    data = (artifacts / f"{name}.mlir.bc").read_bytes()
    stripped, lists = without_orders_of_uses(data, monkeypatch)
    assert list(map(len, lists)) == [3]
    assert serialize(deserialize(data), WITH_ORDERS_OF_USES[name]) == stripped


def without_orders_of_uses(data: bytes, monkeypatch) -> tuple[bytes, list[bytes]]:
    """Returns a file without its lists of the orders of uses, and these lists. The byte before each list, which
    announces it, becomes zero, and the sections around it become shorter by as much."""
    edits: list[tuple[int, int, bytes]] = []
    sections: list[tuple[int, int, int]] = []
    skip, enter = reading._skip_use_lists, Cursor.section

    def skipped(cursor, values):
        start = cursor.base + cursor.pos
        skip(cursor, values)
        edits.extend([(start - 1, start, b"\0"), (start, cursor.base + cursor.pos, b"")])

    def entered(cursor):
        start = cursor.base + cursor.pos
        kind, content = enter(cursor)
        sections.append((start + 1, content.base, len(content.data)))
        return kind, content

    monkeypatch.setattr(reading, "_skip_use_lists", skipped)
    monkeypatch.setattr(Cursor, "section", entered)
    deserialize(data)
    monkeypatch.undo()
    lists = [data[start:end] for start, end, new in edits if not new]
    for place, start, size in sorted(sections, reverse=True):
        inside = [edit for edit in edits if start <= edit[0] < start + size]
        out = Output()
        out.varint(size + sum(len(new) - (end - begin) for begin, end, new in inside))
        edits.append((place, start, out.getvalue()))
    stripped = bytearray(data)
    for begin, end, new in sorted(edits, reverse=True):
        stripped[begin:end] = new
    return bytes(stripped), lists


def test_a_file_of_the_future(artifacts):
    with pytest.raises(trivium.UnsupportedOpError, match=r"StableHLO version 2\.0\.0, newer than 1\.20\.0") as caught:
        load(artifacts / "invalid_vhlo_future.mlir.bc")
    assert [op.name for op in caught.value.ops] == ["vhlo.constant_v99"]


@pytest.mark.parametrize(("folder", "every"), {"testdata": 20, "testdata/quantized": 1, "testdata/dynamic": 1}.items())
def test_round_trips(conformance, folder, every):
    """StableHLO's own test programs (every twentieth of those that are neither quantized nor dynamic) are the same when
    they are read again, from the lowest version that can express them and from the newest."""
    for name, text in texts(conformance, folder, every):
        module = parse(text, name)
        data = serialize(module)
        again = deserialize(data)
        assert difference(again, module) == "", name
        assert serialize(again) == data, name
        assert difference(deserialize(serialize(again, "1.20.0")), module) == "", name
