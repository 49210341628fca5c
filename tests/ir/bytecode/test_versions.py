"""The version that a program needs, and the errors for versions that cannot express it."""

import pytest

import trivium
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.bytecode.reading import ModuleReader
from trivium.ir.bytecode.versions import INTRODUCED, REVISIONS, TYPES, Version
from trivium.ir.declare import OPS
from trivium.ir.equality import difference
from trivium.ir.text import parse

HEAD = "func.func @main(%x: tensor<4x4xf32>, %f: tensor<f32>) -> tensor<4x4xf32> {{ {} return %x : tensor<4x4xf32> }}"
STARTED = """%0 = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %s = stablehlo.slice %a [0:4, 0:4] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.return %s : tensor<4x4xf32>
  }) : (tensor<4x4xf32>) -> !stablehlo.future<tensor<4x4xf32>>"""
NEEDS = {
    "1.0.0": "%0 = stablehlo.sine %x : tensor<4x4xf32>",
    "1.2.0": "%0 = stablehlo.constant dense<1> : tensor<2xi2>",
    "1.3.0": "%0 = stablehlo.custom_call @t(%x) {api_version = 4 : i32, backend_config = {a = 1 : i32}} "
    ": (tensor<4x4xf32>) -> tensor<f32>",
    "1.4.0": "%0 = stablehlo.tan %x : tensor<4x4xf32>",
    "1.6.0": "%0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, "
    "rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
    "num_primitive_operations = 1, allow_imprecise_accumulation = false> "
    ": (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>",
    "1.7.0": "%0 = stablehlo.constant dense<1.0> : tensor<2xf8E3M4>",
    "1.8.0": "%0 = stablehlo.constant dense<1.0> : tensor<2xf4E2M1FN>",
    "1.9.0": "%0 = stablehlo.exponential %x {result_accuracy = #stablehlo.result_accuracy<ulps = 2, "
    "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4x4xf32>",
    "1.10.0": "%0 = stablehlo.sine %x {result_accuracy = #stablehlo.result_accuracy<mode = "
    "#stablehlo.result_accuracy_mode<HIGHEST>>} : tensor<4x4xf32>",
    "1.11.0": "%0 = stablehlo.abs %x {flag} : tensor<4x4xf32>",
    "1.12.0": "%t = stablehlo.create_token : !stablehlo.token "
    '%0 = "stablehlo.send"(%x, %t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, '
    "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>, !stablehlo.token) "
    "-> !stablehlo.token",
    "1.13.0": "%0 = stablehlo.custom_call @t(%x) : (tensor<4x4xf32>) -> memref<4xf32>",
    "1.15.0": STARTED,
    "1.16.0": '%0 = "stablehlo.collective_broadcast"(%x) <{replica_groups = #stablehlo.replica_group_mesh_axes<'
    'mesh = #stablehlo.mesh<axes=[<name = "x", size = 2>]>, axes = []>}> : (tensor<4x4xf32>) -> tensor<4x4xf32>',
    "1.17.0": f"{STARTED} %1 = stablehlo.custom_call @t(%0) : (!stablehlo.future<tensor<4x4xf32>>) -> tensor<f32>",
    "1.18.0": "%0 = stablehlo.custom_call @t(%x) {operand_layouts = [dense<[1, 0]> : tensor<2xindex>], "
    "result_layouts = [dense<> : tensor<0xindex>], result_tilings = [[dense<2> : tensor<1xindex>]]} "
    ": (tensor<4x4xf32>) -> tensor<f32>",
    "1.19.0": '%0 = "stablehlo.collective_reduce"(%x) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({ '
    "^bb0(%a: tensor<f32>, %b: tensor<f32>): stablehlo.return %a : tensor<f32> }) "
    ": (tensor<4x4xf32>) -> tensor<4x4xf32>",
    "1.20.0": "%r = stablehlo.constant dense<0> : tensor<1xi32> "
    '%0 = "stablehlo.collective_broadcast"(%x, %r) <{has_dynamic_root, replica_groups = dense<0> : tensor<1x1xi64>}> '
    ": (tensor<4x4xf32>, tensor<1xi32>) -> tensor<4x4xf32>",
}


@pytest.mark.parametrize("version", NEEDS)
def test_the_lowest_version(version):
    """A program is written for the lowest version that can express it. For earlier versions, the error names what they
    lack."""
    module = parse(HEAD.format(NEEDS[version]))
    data = serialize(module)
    assert data.startswith(b"ML\xefR\rStableHLO_v" + version.encode() + b"\0")
    assert difference(deserialize(data), module) == ""
    assert difference(deserialize(serialize(module, "1.20.0")), module) == ""
    if version != "1.0.0":
        before = f"1.{int(version.split('.')[1]) - 1}.0"
        with pytest.raises(
            trivium.UnsupportedOpError, match=f"(?s)cannot be written for version {before} .*needs {version}"
        ):
            serialize(module, before)


MANY = """
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %0 = stablehlo.tan %x : tensor<4xf32>
  %1 = stablehlo.tan %0 : tensor<4xf32>
  %2 = stablehlo.constant dense<1.0> : tensor<2xf4E2M1FN>
  %3:2 = "stablehlo.all_gather"(%x, %x) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}>
    : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %1 : tensor<4xf32>
}
"""


def test_features_that_an_older_version_lacks_are_listed():
    """The error lists all of them: the ops, their locations, and the version that each needs."""
    with pytest.raises(trivium.UnsupportedOpError) as caught:
        serialize(parse(MANY, file="model.mlir"), "1.0.0")
    assert str(caught.value).splitlines() == [
        "the program cannot be written for version 1.0.0 of StableHLO",
        "  - stablehlo.tan (2 times), first at model.mlir:3:8: needs 1.4.0",
        "  - stablehlo.constant, first at model.mlir:5:8: type f4E2M1FN needs 1.8.0",
        "  - stablehlo.all_gather, first at model.mlir:6:10: other than one operand only needs 1.5.0",
    ]
    assert [op.name for op in caught.value.ops] == ["stablehlo.tan", "stablehlo.constant", "stablehlo.all_gather"]
    assert b"StableHLO_v1.8.0\0" in serialize(parse(MANY))


def test_features_that_no_version_has_are_listed():
    lines = (
        *("%0 = stablehlo.tan %x : tensor<4x4xf32>", "%1 = stablehlo.abs %x {a = 3 : si32} : tensor<4x4xf32>"),
        "%2 = stablehlo.abs %x {a = !foo.bar} : tensor<4x4xf32>",
    )
    module = parse(HEAD.format("\n".join(lines)), file="model.mlir")
    with pytest.raises(trivium.UnsupportedOpError) as caught:
        serialize(module)
    assert str(caught.value).splitlines() == [
        "the program cannot be written as a portable artifact",
        "  - stablehlo.abs, first at model.mlir:2:6: type si32 cannot be written: "
        "StableHLO's artifacts have no such types",
        "  - stablehlo.abs, first at model.mlir:3:6: type !foo.bar cannot be written: "
        "StableHLO's artifacts have no such types",
    ]


@pytest.mark.parametrize("version", ["", "1", "1.x.0", "0.8.0", "1.21.0", "2.0.0"])
def test_versions_that_are_none(version):
    with pytest.raises(trivium.Error, match="the version is"):
        serialize(parse("module {}"), version)


def test_patches_change_nothing():
    module = parse(HEAD.format(NEEDS["1.4.0"]))
    assert serialize(module, "1.4.7").replace(b"1.4.7", b"1.4.0") == serialize(module, "1.4.0")


def test_a_file_tells_its_version():
    reader = ModuleReader(memoryview(serialize(parse("module {}"), "1.5.0")))
    reader.module()
    assert reader.version == Version(1, 5, 0)


def test_saving(tmp_path):
    module = parse(HEAD.format(NEEDS["1.4.0"]))
    module.save(tmp_path / "a.mlirbc")
    assert (tmp_path / "a.mlirbc").read_bytes() == serialize(module, "1.4.0")
    module.save(tmp_path / "b.mlirbc", version="1.9.0")
    assert (tmp_path / "b.mlirbc").read_bytes() == serialize(module, "1.9.0")
    assert difference(trivium.load(tmp_path / "b.mlirbc"), module) == ""
    with pytest.raises(trivium.Error, match="text has no version"):
        module.save(tmp_path / "c.mlir", version="1.9.0")


def test_ops_without_a_portable_form_are_listed():
    module = parse(HEAD.format("%0 = chlo.erf %x : tensor<4x4xf32> -> tensor<4x4xf32>"))
    with pytest.raises(trivium.UnsupportedOpError, match=r"chlo\.erf"):
        serialize(module, "0.18.0")


def test_the_table_names_existing_ops_and_types():
    """Each name in the tables is that of a declared op or type."""
    for name in {*INTRODUCED, *REVISIONS}:
        assert f"stablehlo.{name}" in OPS, name
    assert TYPES["tf32"] == Version(1, 6)
