"""Attributes of every kind, in every place where a program may have them: what artifacts keep, and from which version
on. The results are compared with MLIR's."""

import re

import pytest

import trivium
from tests.ir.bytecode.mlir import artifact, context, text_of
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.equality import difference
from trivium.ir.text import parse, print_module

SINCE = {
    **dict.fromkeys(
        (
            *("true", "3 : i8", "3 : ui32", "-3 : index", "1.0 : f32", '"\\00\\FF"', "[]", "[1 : i64, [true]]", "{}"),
            *("{a = 1 : i32, b = {}}", "dense<1> : tensor<2xi32>", "dense<[true, false]> : tensor<2xi1>"),
            *("f32", "complex<f64>", "tensor<2x?xf32>", "(f32, i1) -> tuple<index>", "!stablehlo.token"),
            *("tensor<?xf32, #stablehlo.bounds<4>>", "#stablehlo<precision HIGH>", "!quant.uniform<i8:f32, 0.5:3>"),
        ),
        "1.0.0",
    ),
    "dense<1> : tensor<2xi2>": "1.2.0",
    "none": "1.6.0",
    "memref<2xf32>": "1.13.0",
    '#stablehlo.mesh_axis<name = "x", size = 2>': "1.16.0",
    # Attributes that VHLO does not have are written unchanged, from that version on.
    **dict.fromkeys(
        (
            *(
                "unit",
                "[unit]",
                "{flag}",
                "@outer::@inner",
                "array<i32: 1, 2>",
                "array<f32>",
                "affine_map<(d0) -> (d0)>",
            ),
            *('loc("here":1:2)', "#chlo<comparison_direction LT>", "#foo.bar<[1]>", '#sdy.sharding<@mesh, [{"x"}]>'),
        ),
        "1.11.0",
    ),
}
"""Attributes, and the first version whose artifacts can contain them."""
REFUSED = {
    **dict.fromkeys(("3 : si32", "si32", "dense<1> : tensor<2xsi32>"), "type si32"),
    "3 : i3": "type i3",
    "!foo.bar": "type !foo.bar",
    'tensor<2xf32, "a">': 'type tensor<2xf32, "a">',
    "#stablehlo.channel_handle<handle = 1, type = 0>": "the attribute #stablehlo.channel_handle<handle = 1, type = 0>",
    "#stablehlo.bounds<1>": "the attribute #stablehlo.bounds<1>",
}
"""Attributes that no artifact can contain, and the errors."""
OTHER_KINDS = {
    "array<i64: 1, 2>": "dense<[1, 2]> : tensor<2xi64>",
    "array<i1>": "dense<> : tensor<0xi1>",
    "@f": '"f"',
    "[{a = @f}]": '[{a = "f"}]',
}
"""Attributes that VHLO does not distinguish from others."""
PLACES = ("op", "function", "argument", "result", "module")


def program(place: str, value: str) -> str:
    given = {other: f"foo.a = {value}" if other == place else "" for other in PLACES}
    return f"""
    module attributes {{{given["module"]}}} {{
      func.func public @main(%x: tensor<4xf32> {{{given["argument"]}}}) -> (tensor<4xf32> {{{given["result"]}}})
          attributes {{{given["function"]}}} {{
        %0 = stablehlo.abs %x {{{given["op"]}}} : tensor<4xf32>
        return %0 : tensor<4xf32>
      }}
    }}"""


@pytest.fixture
def any_dialect():
    """MLIR accepts attributes of unknown dialects."""
    context().allow_unregistered_dialects = True
    yield
    context().allow_unregistered_dialects = False


@pytest.mark.parametrize("value", SINCE)
@pytest.mark.parametrize("place", PLACES)
def test_the_lowest_version(place, value):
    module = parse(program(place, value))
    data = serialize(module)
    # The attributes of a module are not part of the versioned dialect.
    since = "1.0.0" if place == "module" else SINCE[value]
    assert f"StableHLO_v{since}\0".encode() in data
    assert difference(deserialize(data), module) == ""
    if since != "1.0.0":
        with pytest.raises(trivium.Error, match=f"needs {re.escape(since)}"):
            serialize(module, "1.0.0")


@pytest.mark.jax
@pytest.mark.parametrize("value", SINCE)
@pytest.mark.parametrize("place", PLACES)
def test_mlir(any_dialect, place, value):
    """MLIR reads what we write, and we read what MLIR writes."""
    text = program(place, value)
    module = parse(text)
    for version in {"1.17.0", *([SINCE[value]] if place != "module" else [])}:
        assert difference(parse(text_of(serialize(module, version))), module) == ""
        assert difference(deserialize(artifact(text, version)), module) == ""


@pytest.mark.parametrize("value", REFUSED)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "module"])
def test_attributes_that_no_artifact_can_contain(place, value):
    with pytest.raises(trivium.Error) as caught:
        serialize(parse(program(place, value)))
    assert f"{REFUSED[value]}" in str(caught.value)
    assert "cannot be written" in str(caught.value)


NARROW = [f"3 : {kind}" for kind in ("ui2", "i2", "ui4", "i4", "ui8", "i8", "ui16", "i16", "ui32", "ui64", "index")]
NARROW += [f"dense<3> : tensor<1x{kind}>" for kind in ("ui2", "i2", "ui4", "i4", "ui8")] + [
    "array<i8: 3>",
    "array<i1: true>",
]


@pytest.mark.parametrize("value", NARROW)
def test_numbers_have_the_bits_of_their_type(value):
    """Only the low bits of a byte are significant, so the attribute prints as a number that can be read again."""
    read, numbers = 0, set()
    for place in ("op", "module"):
        data = serialize(parse(program(place, value)))
        for position, byte in ((p, b) for p in range(len(data)) for b in (0xF9, 0x80, 0x01)):
            try:
                module = deserialize(data[:position] + bytes([byte]) + data[position + 1 :])
                text = print_module(module)
                module.verify()
            except trivium.Error:
                continue
            again = parse(text)
            assert print_module(again) == text
            assert difference(again, module) == ""
            read += 1
            numbers.update(re.findall(r"foo.a = (.*)", text))
    assert read > 10
    assert len(numbers) > 2


@pytest.mark.parametrize("place", PLACES)
def test_unknown_attributes_of_vhlo(place):
    with pytest.raises(trivium.Error, match=r"attribute #vhlo.none<1> cannot be written"):
        serialize(parse(program(place, "#vhlo.none<1>")))


@pytest.mark.jax
@pytest.mark.parametrize("value", REFUSED)
def test_mlir_has_none_of_them_either(any_dialect, value):
    with pytest.raises(Exception, match="failed to serialize"):
        artifact(program("op", value), "1.17.0")


@pytest.mark.jax
@pytest.mark.parametrize("value", OTHER_KINDS)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "module"])
def test_kinds_that_become_others(place, value):
    """They are read as MLIR reads them, in any place."""
    module, other = (parse(program(place, given)) for given in (value, OTHER_KINDS[value]))
    assert difference(deserialize(serialize(module)), other) == ""
    assert difference(parse(text_of(artifact(program(place, value), "1.17.0"))), other) == ""


@pytest.mark.parametrize("value", ["memref<2x?xf32>", "tensor<*xf32>", "#stablehlo.gather<offset_dims = [0]>"])
@pytest.mark.jax
def test_attributes_of_modules_are_those_of_plain_programs(value):
    text = program("module", value)
    assert difference(deserialize(artifact(text, "1.0.0")), parse(text)) == ""
    assert difference(parse(text_of(serialize(parse(text)))), parse(text)) == ""


MESHES = (
    '#stablehlo.mesh<axes=[<name = "x", size = 2>]>',
    '#stablehlo.mesh<axes=[<name = "x", size = 2>], device_ids=dense<[1, 0]> : tensor<2xi64>>',
    '#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>',
    '#stablehlo.axis_ref<name = "x">',
)
GROUPS = '#stablehlo.replica_group_mesh_axes<mesh = @main, axes = [#stablehlo.axis_ref<name = "x">]>'


@pytest.mark.parametrize(
    ("place", "value"), [("op", GROUPS), *((place, value) for place in ("op", "module") for value in MESHES)]
)
@pytest.mark.jax
def test_meshes(place, value):
    """The encodings of VHLO and of StableHLO itself."""
    text = program(place, value)
    assert difference(deserialize(artifact(text, "1.16.0")), parse(text)) == ""
    assert difference(parse(text_of(serialize(parse(text), "1.16.0"))), parse(text)) == ""
