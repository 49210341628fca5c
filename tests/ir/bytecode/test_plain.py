"""Plain bytecode of StableHLO itself, as MLIR writes it, is read as the same program as its text."""

import re

import numpy as np
import pytest

import trivium
from tests.ir.bytecode.mlir import plain
from tests.ir.ops.records import collect
from trivium.ir.bytecode import deserialize
from trivium.ir.equality import difference
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

TOO_NEW = {"stablehlo.collective_reduce"}
"""Ops that JAX's MLIR does not have."""
UNKNOWN_ALGORITHMS = "num_primitive_operations = 6"
"""MLIR refuses algorithms of `dot_general` that no hardware has."""
OPS_FOR_TESTS = re.compile(r"^ *check\.", re.MULTILINE)

QUANTIZED = """
func.func @main(
  %0: tensor<4x!quant.uniform<u8:f32, 0.5:200>>, %1: tensor<2x3x!quant.uniform<i8<-8:7>:f32:1, {0.5:1,0.25,0.1:-2}>>,
  %2: tensor<4x2x!quant.uniform<i8:f32:{0:2, 1:1}, {{0.5:1, 2.0:-3}, {0.25, 0.125:7}}>>
) {
  return
}
"""


@pytest.mark.jax
@pytest.mark.parametrize("version", range(7))
def test_records(version):
    """Every op, in every version of the encoding."""
    for record in collect():
        text = record.module().text(elide=False)
        if record.op.NAME not in TOO_NEW and UNKNOWN_ALGORITHMS not in text:
            assert difference(deserialize(plain(text, version)), parse(text)) == "", record


@pytest.mark.jax
@pytest.mark.parametrize("version", [0, 6])
def test_quantized_types(version):
    assert difference(deserialize(plain(QUANTIZED, version)), parse(QUANTIZED)) == ""


@pytest.mark.jax
def test_conformance(conformance):
    """Every twentieth of StableHLO's own programs, and all programs with CHLO."""
    paths = sorted((conformance / "stablehlo" / "testdata").rglob("*.mlir"))
    texts = {path.name: path.read_text() for path in paths}
    chosen = {name: text for index, (name, text) in enumerate(texts.items()) if index % 20 == 0 or " chlo." in text}
    for name, text in chosen.items():
        if not OPS_FOR_TESTS.search(text):
            assert difference(deserialize(plain(text)), parse(text)) == "", name
    assert len(chosen) > 150


RESOURCES = """
module {
  func.func @main() -> (tensor<2x3xf32>, tensor<4xi1>, tensor<8xi32>) {
    %0 = stablehlo.constant dense_resource<large> : tensor<2x3xf32>
    %1 = stablehlo.constant dense_resource<bits> : tensor<4xi1>
    %2 = stablehlo.constant dense_resource<"two words"> : tensor<8xi32>
    return %0, %1, %2 : tensor<2x3xf32>, tensor<4xi1>, tensor<8xi32>
  }
}
{-#
  dialect_resources: { builtin: {
    large: "0x040000000000803F0000004000004040000080400000A0400000C040",
    bits: "0x0100000001000101",
    "two words": "0x0400000007000000"
  } },
  external_resources: { tool: { setting: true, words: "a b" } }
#-}
"""


@pytest.mark.jax
@pytest.mark.parametrize("version", [0, 6])
def test_resources(version):
    """Tensors that are stored separately from the program are read as views."""
    data = plain(RESOURCES, version)
    module = deserialize(data)
    assert difference(module, parse(RESOURCES)) == ""
    first = module.main.body.block.first
    assert first is not None
    assert np.shares_memory(first.attributes["value"].array, np.frombuffer(data, np.uint8))


@pytest.mark.jax
@pytest.mark.parametrize("name", ["program.mlirbc", "program.mlir.bc", "program.mlir"])
def test_files(name, tmp_path):
    """Bytecode is recognized by its first bytes, as in MLIR's tools."""
    (tmp_path / name).write_bytes(plain(QUANTIZED))
    assert difference(trivium.load(tmp_path / name), parse(QUANTIZED)) == ""


@pytest.mark.tensorflow
def test_tensorflow(tmp_path):
    """Programs that TensorFlow compiles, in the bytecode that it writes itself."""
    tf = pytest.importorskip("tensorflow")
    function = tf.function(lambda x, y: tf.nn.softmax(tf.linalg.matmul(x, y)) + 1.0, jit_compile=True)
    compiled = function.experimental_get_compiler_ir(tf.ones((2, 3)), tf.ones((3, 4)))
    (tmp_path / "program.mlirbc").write_bytes(compiled("stablehlo_serialized"))
    module = trivium.load(tmp_path / "program.mlirbc")
    module.verify()
    assert difference(module, parse(compiled("stablehlo"))) == ""


@pytest.mark.tensorflow
def test_functions_of_xla():
    """TensorFlow's files express the error function in XLA's dialect."""
    tf = pytest.importorskip("tensorflow")
    x = np.linspace(-3, 3, 25, dtype=np.float32)
    function = tf.function(lambda x: tf.math.erf(x) * 2, jit_compile=True)
    compiled = function.experimental_get_compiler_ir(x)
    assert "mhlo.erf" in compiled("stablehlo")
    (found,) = evaluate(deserialize(compiled("stablehlo_serialized")), x)
    np.testing.assert_allclose(found, function(x), rtol=1e-5, atol=1e-6)
