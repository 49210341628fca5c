"""The recorded artifacts of StableHLO, from 0.9.0 on, beside the texts that they were made of."""

import pytest

import trivium
from trivium.ir.bytecode import deserialize, load, serialize
from trivium.ir.equality import difference
from trivium.ir.text import parse


def test_recorded_artifacts(conformance):
    """Each is read, upgraded, and equal to its text, but for those with ops that are not declared."""
    for path in sorted((conformance / "stablehlo" / "vhlo").glob("*.mlir.bc")):
        if "future" in path.name:
            continue
        try:
            module = load(path)
        except trivium.UnsupportedOpError:
            continue
        data = serialize(parse(path.with_suffix("").read_text()), "1.20.0")
        assert difference(module, deserialize(data)) == "", path.name


def test_a_file_of_the_future(conformance):
    with pytest.raises(trivium.UnsupportedOpError, match=r"StableHLO 2.0.0, newer than 1.20.0") as caught:
        load(conformance / "stablehlo" / "vhlo" / "invalid_vhlo_future.mlir.bc")
    assert [op.name for op in caught.value.ops] == ["vhlo.constant_v99"]


def test_round_trips(conformance):
    """Every twentieth of StableHLO's own test programs."""
    known = 0
    for path in sorted((conformance / "stablehlo" / "testdata").glob("*.mlir"))[::20]:
        try:
            module = parse(path.read_text(), path.name)
            data = serialize(module)
        except trivium.UnsupportedOpError:
            continue
        known += 1
        again = deserialize(data)
        assert serialize(again) == data, path.name
        assert difference(deserialize(serialize(again, "1.20.0")), again) == "", path.name
    assert known > 80
