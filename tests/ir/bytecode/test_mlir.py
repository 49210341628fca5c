"""Artifacts compared with those of MLIR itself, as JAX ships it."""

import re
from pathlib import Path

import pytest

from tests.ir.bytecode.mlir import artifact, text_of
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.equality import difference
from trivium.ir.text import parse

pytestmark = pytest.mark.jax

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = ("0.9.0", "0.11.0", "0.14.0", "0.20.0", "1.0.0", "1.5.0", "1.9.0", "1.13.7", "1.17.0")
PROGRAMS = {
    **dict.fromkeys(("program", "processes"), VERSIONS),
    **dict.fromkeys(("quantized", "shardy"), ("1.11.0", "1.17.0")),
    **{"asynchronous": ("1.15.0", "1.17.0"), "mesh": ("1.16.0", "1.17.0")},
}
"""Programs, and versions that can contain them."""
CASES = [(name, version) for name, versions in PROGRAMS.items() for version in versions]
TEXTS = {name: (FIXTURES / f"{name}.mlir").read_text() for name in PROGRAMS}
OTHER_DIALECTS = re.compile(r"(?<!@)check\.expect|chlo\.")


@pytest.mark.parametrize(("name", "version"), CASES)
def test_mlir_reads_ours(name, version):
    module = parse(TEXTS[name])
    assert difference(parse(text_of(serialize(module, version))), module) == ""


@pytest.mark.parametrize(("name", "version"), CASES)
def test_we_read_theirs(name, version):
    assert difference(deserialize(artifact(TEXTS[name], version)), parse(TEXTS[name])) == ""


@pytest.mark.parametrize(
    ("name", "version"),
    [("program", "0.9.0"), ("processes", "0.9.0"), *((name, "1.17.0") for name in PROGRAMS if name != "shardy")],
)
def test_the_same_bytes(name, version):
    """A file that MLIR wrote is written again byte for byte, unless it records the order of uses."""
    data = artifact(TEXTS[name], version)
    assert serialize(deserialize(data), version) == data


def test_programs_of_stablehlo(conformance):
    """MLIR reads ours, and we read what it writes: every sixth program, in eight versions. Where MLIR writes no orders
    of uses, the same text gives the same bytes. Programs with CHLO, which becomes composites, have their own test, and
    JAX's MLIR does not know the ops of `check`."""
    paths = sorted((conformance / "stablehlo" / "testdata").rglob("*.mlir"))[::6]
    texts = {path.name: text for path in paths if not OTHER_DIALECTS.search(text := path.read_text())}
    assert len(texts) > 300
    for name, text in texts.items():
        module = parse(text, "-")  # MLIR's name of a text that comes from no file
        compared = set[str | bytes]()  # most versions write the same
        for version in ("0.9.0", "0.14.0", "0.20.0", "1.0.0", "1.5.0", "1.9.0", "1.13.7", "1.17.0"):
            ours, theirs = serialize(module, version), artifact(text, version)
            read = text_of(ours)
            assert read in compared or difference(parse(read), module) == "", (name, version)
            assert theirs in compared or difference(deserialize(theirs), module) == "", (name, version)
            compared.update((read, theirs))
            assert ours == theirs or version not in ("0.9.0", "1.17.0"), (name, version)


STRUCTURES = {
    "nothing": "module {}",
    "a name": "module @m {}",
    "functions alone": "func.func @f() { return } func.func private @g()",
    "modules inside": """
    module @outer attributes {foo.a = 1 : i32} {
      module @inner attributes {sym_visibility = "private", foo.flag} {
        func.func nested @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
        module { func.func @g() { return } }
      }
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
    }""",
    "declarations": """
    func.func private @f(tensor<4xf32> {foo.a = 1 : i32}, f32) -> (tensor<2xf32> {foo.b = "x"})
      attributes {foo.c = 1.0 : f32}
    func.func @main() { return }""",
    "locations": """
    func.func @main(%x: tensor<4xf32> loc("x"), %y: tensor<4xf32>) -> tensor<4xf32> {
      %0:2 = stablehlo.custom_call @f(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
        loc(fused<"m">["a", callsite("b" at "c":1:2)])
      return %0#1 : tensor<4xf32> loc("r"("f.py":2:3 to 5:6))
    } loc("z")""",
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures(name):
    """The same text becomes the same bytes, including everything that is not an op of StableHLO."""
    text = STRUCTURES[name]
    data = serialize(parse(text, "-"), "1.17.0")
    assert data == artifact(text, "1.17.0")
    assert difference(deserialize(data), parse(text)) == ""


@pytest.mark.parametrize("place", ["0:0 to 0:0", "8:0 to 8:0", "8:0 to 8:3", "8:3 to 8:3", "8:3 to :5", "8:3 to 9:3"])
def test_ranges_in_files(place):
    """A range without a column, such as that of code that was never in a file, is the line alone."""
    text = f"""func.func @main(%a: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.abs %a : tensor<f32> loc("f":{place})
      return %0 : tensor<f32>
    }}"""
    data = artifact(text, "1.17.0")
    assert serialize(parse(text, "-"), "1.17.0") == data
    assert difference(deserialize(data), parse(text)) == ""
    if place != "8:3 to 8:3":  # MLIR, too, writes it differently after reading it.
        assert serialize(deserialize(data), "1.17.0") == data


def test_exports_of_jax():
    """What JAX exports is written again byte for byte."""
    import jax
    import jax.numpy as jnp
    from jax import export

    functions = {
        "softmax": (lambda x, w: jax.nn.softmax(jnp.tanh(x @ w)), [(4, 8), (8, 16)]),
        "gradient": (jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), [(5,)]),
        "scan": (lambda x: jax.lax.scan(lambda c, y: (c + y, c * y), x[0], x), [(6, 3)]),
        "while": (lambda x: jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x), [(6, 3)]),
        "convolution": (lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"), [(1, 3, 8, 8), (4, 3, 3, 3)]),
        "random": (lambda x: jax.random.normal(jax.random.key(0), x.shape) + x, [(7, 5)]),
        "attention": (jax.nn.dot_product_attention, [(1, 4, 2, 8)] * 3),
    }
    for name, (function, shapes) in functions.items():
        arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
        data = bytes(export.export(jax.jit(function))(*arguments).mlir_module_serialized)
        version = re.match(rb"ML\xefR.StableHLO_v([\d.]+)\0", data)
        assert version is not None
        assert serialize(deserialize(data), version[1].decode()) == data, name
