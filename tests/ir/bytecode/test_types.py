"""Every type in artifacts: MLIR reads it, and writes the same bytes."""

import pytest

from tests.ir.bytecode import mlir
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.bytecode.versions import STABLE
from trivium.ir.equality import difference
from trivium.ir.errors import Error, ParseError
from trivium.ir.func import Module
from trivium.ir.text import parse, print_module
from trivium.ir.types import FLOATS

SINCE = {
    **dict.fromkeys(("i1", "i4", "i8", "i16", "i32", "i64", "ui4", "ui8", "ui16", "ui32", "ui64", "index"), "0.9.0"),
    **dict.fromkeys(("f16", "f32", "f64", "bf16", "f8E4M3FN", "f8E5M2", "complex<f32>", "complex<f64>"), "0.9.0"),
    **dict.fromkeys(("f8E4M3FNUZ", "f8E5M2FNUZ"), "0.10.0"),
    **{"f8E4M3B11FNUZ": "0.11.0", "i2": "1.2.0", "ui2": "1.2.0", "tf32": "1.6.0", "f8E3M4": "1.7.0", "f8E4M3": "1.7.0"},
    **dict.fromkeys(("f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU"), "1.8.0"),
    **dict.fromkeys(("!quant.uniform<i8:f32, 0.5:-20>", "!quant.uniform<u8<0:200>:f32, 0.1:200>"), "0.9.0"),
    **dict.fromkeys(("!quant.uniform<ui8:f16, 123456789.0E-9>", "!quant.uniform<i32:bf16, 1.0e-5>"), "0.9.0"),
    "!quant.uniform<i8<-8:7>:f32:1, {0.1:-30,0.5,2.0:7}>": "0.18.0",
}
"""Element types, and the first version whose artifacts can contain them."""
OTHERS = {
    "tensor<?x2x!quant.uniform<u4:f32:1, {0.1:1,0.5:2}>, #stablehlo.bounds<3, ?>>": "0.18.0",
    "tensor<*xf32>": "0.9.0",
    "memref<2x?xf32>": "1.13.0",
    "!shape.witness": "0.9.0",
    "!stablehlo.token": "0.9.0",
    "!stablehlo.future<tensor<2xf32>, tensor<i1>>": "1.15.0",
    "tuple<tensor<f32>, tuple<>>": "0.9.0",
    "none": "1.6.0",
    "(tensor<f32>, i1) -> ()": "0.9.0",
}
TYPES = {f"tensor<2x{kind}>": since for kind, since in SINCE.items()} | OTHERS


def program(kind: str) -> Module:
    return parse(f"func.func @f(%a: {kind}) -> ({kind}) {{ return %a : {kind} }}")


def test_every_float_is_here():
    assert SINCE.keys() >= FLOATS.keys()


@pytest.mark.parametrize("kind", TYPES)
def test_round_trip(kind):
    module = program(kind)
    assert difference(deserialize(serialize(module)), module) == ""
    assert difference(deserialize(serialize(module, TYPES[kind])), module) == ""


@pytest.mark.jax
@pytest.mark.parametrize("kind", TYPES)
def test_mlir_writes_the_same(kind):
    module = program(kind)
    version = max(TYPES[kind], str(STABLE), key=lambda text: tuple(map(int, text.split("."))))
    text = print_module(module)
    assert mlir.text_of(serialize(module, version)) == str(mlir.parsed(text))
    theirs = mlir.artifact(text, version)
    assert serialize(deserialize(theirs), version) == theirs


@pytest.mark.parametrize("kind", [kind for kind, since in TYPES.items() if since != "0.9.0"])
def test_refused_before(kind):
    major, minor, _ = map(int, TYPES[kind].split("."))
    before = f"{major}.{minor - 1}.0"
    with pytest.raises(Error, match=TYPES[kind]):
        serialize(program(kind), before)


@pytest.mark.parametrize(
    "kind",
    [
        *("!quant.any<i8:f32>", "!quant.uniform<i8:f32:{0:1}, {0.5, 0.1}>", "i5", "si8"),
        *('tensor<2xf32, "text">', "tensor<2xf32, 1>", "memref<2xf32, 1>", "!foo.bar"),
    ],
)
def test_types_that_artifacts_cannot_contain(kind):
    with pytest.raises(Error, match="cannot be written"):
        serialize(program(kind))


def test_a_bound_of_a_static_dimension():
    """The file is put together from two others, because no writer produces such a type."""
    one = serialize(program("tensor<?x3xf32, #stablehlo.bounds<4, ?>>"), "1.0.0")
    other = serialize(program("tensor<3x?xf32, #stablehlo.bounds<?, 4>>"), "1.0.0")
    places = [place for place, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs]
    # The bounds come before the type that has them.
    middle = (places[0] + places[-1]) // 2
    with pytest.raises(ParseError, match="the bound 4 for dimension"):
        deserialize(one[:middle] + other[middle:])
