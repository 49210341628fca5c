"""Shardy in files: what JAX exports for several devices is read as MLIR reads it, and still runs after we have written
it again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ir.bytecode.mlir import plain, text_of
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.equality import difference
from trivium.ir.errors import Error
from trivium.ir.text import parse

ROOT = Path(__file__).parents[3]
NAMES = ("constrained", "summed", "looped")

ATTRIBUTES = """
#rule = #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=8, k=8} reduction={j} blocked_propagation={k}, custom>
module {
  sdy.mesh @mesh = <["x"=2, "y"=4, "z"=8]>
  sdy.mesh @"a b" = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
  sdy.mesh @one = <[], device_ids=[5]>
  func.func @main(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}, {"z", ?}p1], replicated={"y":(2)2}>},
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{?}, {}], unreduced={"a"}>},
    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@"a b", [{"x"}p0, {}]>}
  ) -> tensor<8x8xf32> {
    %0 = stablehlo.custom_call @f(%arg0, %arg1) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>,
      sdy.sharding_rule = #rule} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {?}]> : tensor<8x8xf32>
    %2 = sdy.reshard %1 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    sdy.sharding_group %2 group_id=1 : tensor<8x8xf32>
    return %2 : tensor<8x8xf32>
  }
}
"""


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """The artifacts that JAX exports for four devices."""
    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("exports")
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.ir.bytecode.sharded_programs", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | devices, check=True)
    return {name: (folder / f"{name}.mlirbc").read_bytes() for name in NAMES}


@pytest.mark.jax
@pytest.mark.parametrize("name", NAMES)
def test_exports(exports, name):
    module = deserialize(exports[name])
    module.verify()
    assert difference(module, parse(text_of(exports[name]))) == ""
    data = serialize(module)
    assert difference(deserialize(data), module) == ""
    assert difference(parse(text_of(data)), module) == ""
    assert "sdy.mesh" in str(module)


@pytest.mark.jax
@pytest.mark.parametrize("name", ["constrained", "summed"])
def test_the_same_bytes(exports, name):
    """Files that do not record the order of uses are written again byte for byte, including casts."""
    version = re.search(rb"StableHLO_v([\d.]+)", exports[name])
    assert version is not None
    assert serialize(deserialize(exports[name]), version[1].decode()) == exports[name]


UNKNOWN = (
    *("#sdy.sharding<nonsense>", '#sdy.sharding<@mesh, [{"x" 1}]>', '#sdy.mesh<["x"=y]>', "#sdy.other<1, [2]>"),
    *('#sdy.sharding<@mesh,[{"x"}]>', '#sdy.sharding<@"mesh", [{}]>', '#sdy.mesh<["x"=02]>', '#sdy.mesh<["\\41"=2]>'),
    *("#sdy.sharding<@mesh, [{}], replicated={}>", '#sdy.mesh<["x"=2], device_ids=[]>', '#sdy<manual_axes {"x"}>'),
)


@pytest.mark.parametrize("attribute", UNKNOWN)
def test_unknown_annotations_stay_text(attribute):
    module = parse(f"module attributes {{a.b = {attribute}}} {{}}")
    assert difference(deserialize(serialize(module)), module) == ""


@pytest.mark.jax
def test_attributes():
    """Every kind of attribute, in plain bytecode and in artifacts."""
    module = parse(ATTRIBUTES)
    assert difference(deserialize(plain(ATTRIBUTES)), module) == ""
    assert difference(parse(text_of(serialize(module))), module) == ""
    assert difference(deserialize(serialize(module)), module) == ""


def test_older_artifacts_have_no_other_dialects():
    with pytest.raises(Error, match=r"sdy\.mesh .*needs 1\.11\.0") as caught:
        serialize(parse(ATTRIBUTES), "1.10.0")
    assert "cast" not in str(caught.value)
