"""CHLO in artifacts: its ops become composites with decompositions, and become the same ops again when they are
read."""

import dataclasses

import numpy as np
import pytest

from tests.ir.bytecode.mlir import parsed, text_of
from tests.ir.ops.records import collect
from trivium.ir import ops
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.bytecode.portable import first_version
from trivium.ir.equality import difference
from trivium.ir.errors import Error
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

RECORDS = [record for record in collect() if record.op.NAME.startswith("chlo.")]
IDS = [f"{record.op.short_name()}-{index}" for index, record in enumerate(RECORDS)]


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_round_trip(record):
    module = record.module()
    before = str(module)
    data = serialize(module)
    assert difference(deserialize(data), module) == ""
    assert serialize(deserialize(data)) == data
    assert str(module) == before


WRITTEN = [
    pytest.param(record, version, id=f"{name}-{version}")
    for record, name in zip(RECORDS, IDS, strict=True)
    for version in (str(first_version(record.op)), "1.17.0")
]


@pytest.mark.jax
@pytest.mark.parametrize(("record", "version"), WRITTEN)
def test_mlir_reads_it(record, version):
    """Ops are written in the oldest version that can contain them, and in the newest that JAX's MLIR reads."""
    text = text_of(serialize(record.module(), version))
    parsed(text)
    assert f'"{record.op.NAME}"' in text
    assert "chlo." not in text.replace(f'"{record.op.NAME}"', "").replace(f"@{record.op.NAME}.impl", "")


PROGRAM = """
func.func @main(%x: tensor<4xf32>, %k: tensor<2x4xf32>) -> (tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>) {
  %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  %1 = chlo.erf %0 {mhlo.frontend_attributes = {a = "b"}} : tensor<4xf32> -> tensor<4xf32>
  %2, %3 = chlo.top_k(%k, k = 3) : tensor<2x4xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
  %4 = call @chlo.erf.impl(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %4, %2, %1 : tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>
}
func.func private @chlo.erf.impl(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.broadcast_add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


NESTED = f"""
module {{
  module @inner {{
    {PROGRAM}
  }}
  func.func private @f(%x: tensor<f32>) -> tensor<f32> {{
    %0 = chlo.erf %x : tensor<f32> -> tensor<f32>
    return %0 : tensor<f32>
  }}
}}
"""


@pytest.mark.parametrize("text", [PROGRAM, NESTED], ids=["plain", "nested"])
def test_programs(text):
    """Names that are already taken, attributes that are not declared, and ops that share a decomposition."""
    module = parse(text)
    assert difference(deserialize(serialize(module)), module) == ""
    assert serialize(module).count(b"chlo.erf.impl") == 2


@pytest.mark.jax
def test_every_module_has_its_own_decompositions():
    parsed(text_of(serialize(parse(NESTED))))


@pytest.mark.jax
def test_decompositions_run():
    """MLIR, which does not know CHLO here, reads a program that computes the same results."""
    module = parse(PROGRAM)
    arrays = np.linspace(-2, 2, 4, dtype=np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    theirs = parse(text_of(serialize(module)))
    for found, wanted in zip(evaluate(theirs, *arrays), evaluate(module, *arrays), strict=True):
        np.testing.assert_array_equal(found, wanted)


FUNCTIONS = {
    "chlo.acosh": lambda lax, x: lax.acosh(x + 2),
    "chlo.asin": lambda lax, x: lax.asin(x + 1j),
    "chlo.atan": lambda lax, x: lax.atan(x),
    "chlo.bessel_i1e": lambda lax, x: lax.bessel_i1e(x),
    "chlo.digamma": lambda lax, x: lax.digamma(x),
    "chlo.erf": lambda lax, x: lax.erf(x),
    "chlo.erf_inv": lambda lax, x: lax.erf_inv(x),
    "chlo.erfc": lambda lax, x: lax.erfc(x),
    "chlo.lgamma": lambda lax, x: lax.lgamma(x + 3),
    "chlo.mulhi": lambda lax, x: lax.mulhi(lax.bitcast_convert_type(x, np.int32), np.full((4, 6), 7, np.int32)),
    "chlo.next_after": lambda lax, x: lax.nextafter(x, x * 2),
    "chlo.polygamma": lambda lax, x: lax.polygamma(lax.round(x + 2), x + 1.5),
    "chlo.sinh": lambda lax, x: lax.sinh(x),
    "chlo.square": lambda lax, x: lax.square(x),
    "chlo.top_k": lambda lax, x: lax.top_k(x, 3),
    "chlo.zeta": lambda lax, x: lax.zeta(x + 3, abs(x) + 0.5),
}


@pytest.mark.jax
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jax_runs_them(name):
    """XLA computes the same results from our artifact as from JAX's own program. It recognizes some composites as ops,
    and runs the decompositions of the others."""
    jax = pytest.importorskip("jax")
    from jax import export, lax

    x = np.linspace(-0.95, 0.95, 24, dtype=np.float32).reshape(4, 6)
    function = jax.jit(lambda x: FUNCTIONS[name](lax, x))
    program = parse(function.lower(x).as_text())
    assert any(name == op.NAME for op in program.walk())
    exported = dataclasses.replace(export.export(function)(x), mlir_module_serialized=serialize(program))
    for found, wanted in zip(jax.tree.leaves(jax.jit(exported.call)(x)), jax.tree.leaves(function(x)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)  # XLA's lgamma is this inaccurate.


def test_ops_that_older_versions_do_not_have():
    with pytest.raises(Error, match=r"(?s)chlo\.erf \(2 times\).*needs 0\.19\.0.*chlo\.top_k.*needs 0\.19\.0"):
        serialize(parse(PROGRAM), "0.18.0")
    scan = next(record for record in RECORDS if record.op is ops.Scan)
    with pytest.raises(Error, match=r"chlo\.scan.*other than no regions needs 1\.14\.0"):
        serialize(scan.module(), "1.13.0")


UNKNOWN_EXTENTS = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<4xf32>) {
  %0, %1 = chlo.scan(%x) inits(%y) dimension=0 {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>): stablehlo.return %a, %b : tensor<4xf32>, tensor<4xf32>
  } : (tensor<?x4xf32>, tensor<4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>)
  %2 = chlo.erf %x : tensor<?x4xf32> -> tensor<?x4xf32>
  return
}
"""


def test_ops_without_a_decomposition():
    with pytest.raises(
        Error, match=r"(?s)cannot be written with StableHLO's own.*chlo\.scan.*static extents"
    ) as caught:
        serialize(parse(UNKNOWN_EXTENTS))
    assert "chlo.erf" not in str(caught.value)


COMPOSITE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.composite "{name}" %x {{{attributes}decomposition = @f, version = {version} : i32}}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
func.func {visibility}@f(%x: tensor<4xf32>) -> tensor<4xf32> {{
  return %x : tensor<4xf32>
}}
"""


@pytest.mark.parametrize(
    ("name", "version", "attributes"),
    [
        ("chlo.erf", 2, ""),
        ("chlo.zeta", 1, ""),
        ("chlo.nothing", 1, ""),
        ("mine.erf", 1, ""),
        ("chlo.top_k", 1, ""),
        ("chlo.constant_like", 1, "composite_attributes = {value = 1 : i64}, "),
        ("chlo.constant_like", 1, 'composite_attributes = {value = "1"}, '),
    ],
)
def test_other_composites_stay(name, version, attributes):
    text = COMPOSITE.format(name=name, version=version, attributes=attributes, visibility="private ")
    module = parse(text)
    assert difference(deserialize(serialize(module)), module) == ""


def test_public_decompositions_stay():
    text = COMPOSITE.format(name="chlo.erf", version=1, attributes="", visibility="")
    module = deserialize(serialize(parse(text)))
    assert [op.NAME for op in module.main.body.block] == ["chlo.erf", "func.return"]
    assert list(module.functions) == ["main", "f"]


AS_A_CALL = """
func.func @main(%x: tensor<8x4xf32>, %y: tensor<2x4x3xf32>, %sizes: tensor<2xi32>) -> tensor<8x3xf32> {{
  %0 = stablehlo.custom_call @chlo.ragged_dot(%x, %y, %sizes) {{mhlo.attributes = {{
    precision_config = ["DEFAULT", "DEFAULT"],
    ragged_dot_dimension_numbers = [dense<> : tensor<0xi64>, dense<> : tensor<0xi64>, dense<1> : tensor<1xi64>,
      dense<1> : tensor<1xi64>, dense<0> : tensor<1xi64>, dense<0> : tensor<1xi64>]}}, mhlo.version = {version} : i64}}
    : (tensor<8x4xf32>, tensor<2x4x3xf32>, tensor<2xi32>) -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}}
"""
"""What JAX 0.9 passes to a device."""


def test_calls_that_stand_for_ops():
    module = deserialize(serialize(parse(AS_A_CALL.format(version=1))))
    x, y = np.arange(32.0, dtype=np.float32).reshape(8, 4), np.arange(24.0, dtype=np.float32).reshape(2, 4, 3)
    (found,) = evaluate(module, x, y, np.array([3, 5], np.int32))
    np.testing.assert_array_equal(found, np.concatenate([x[:3] @ y[0], x[3:] @ y[1]]))
    assert [op.NAME for op in module.main.body.block] == ["chlo.ragged_dot", "func.return"]


def test_other_calls_stay():
    module = parse(AS_A_CALL.format(version=2))
    assert difference(deserialize(serialize(module)), module) == ""
