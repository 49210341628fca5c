"""Types in text, compared with MLIR: which texts are types, and how types are printed."""

import pytest

from tests.ir.bytecode.mlir import context
from trivium.ir.errors import Error, ParseError
from trivium.ir.text.parser import Parser
from trivium.ir.types import FLOATS, Type

TYPES = (
    *(f"{sign}i{width}" for width in (1, 2, 4, 8, 16, 32, 64) for sign in ("", "u", "s")),
    *(*FLOATS, "i5", "index", "none", "complex<f32>", "complex<bf16>", "tuple<>", "tuple<tensor<f32>, tuple<i32>>"),
    *("() -> ()", "(i1) -> i1", "(i1) -> ((i1) -> i1)", "(i1, tensor<2xf32>) -> (i1, i2)"),
    *("tensor<f32>", "tensor<?x0x3xi1>", "tensor<0x10xf32>", "tensor<2 x ? x f32>", "tensor<9223372036854775807xf32>"),
    *("tensor<*xf32>", "tensor<* x !quant.uniform<i8:f32, 0.5>>", "tensor<2x!quant.any<i8:f32>>"),
    *("tensor<?x3xf32, #stablehlo.bounds<4, ?>>", "tensor<?x3xf32, #stablehlo.type_extensions<bounds = [4, ?]>>"),
    *('tensor<2xf32, "text">', "tensor<2xf32, 1>", "tensor<2xf32, {a = true, b}>"),
    *("i08", "tensor<2xui0032>"),
    *("memref<f32>", "memref<2x?xcomplex<f32>>", "memref<2xindex>"),
    *("memref<2xf32, 1>", "memref<*xf32>", "memref<2xf32, strided<[1]>>"),
    *("!stablehlo.token", "!stablehlo.future<tensor<f32>, tensor<2xi8>>", "!shape.witness", "!shape.shape"),
    # Storage
    *("!quant.uniform<i8:f32, 0.5:-20>", "!quant.uniform<u8:f32, 0.5:200>", "!quant.uniform<ui8:f32, 0.5>"),
    *(
        "!quant.uniform<i8<-8:7>:f32, 0.5>",
        "!quant.uniform<u8<0:200>:f32, 0.5>",
        "!quant.uniform<i8<-128:127>:f32, 0.5>",
    ),
    *("!quant.uniform<i2:f32, 0.5>", "!quant.uniform<u32:f32, 0.5>", "!quant.uniform<i3:f32, 0.5:300>"),
    *("!quant.uniform<i8 < -8 : 0x7 > : f32 : 0 , { 1.0 : 3 } >", "!quant.uniform<i16:f16, 0.5:0>"),
    # Scales
    *("!quant.uniform<i8:f32, 0.0039215482917486456:-128>", "!quant.uniform<i8:f32, 1.537725862903607E-5>"),
    *("!quant.uniform<i8:f64, 1.0e-300>", "!quant.uniform<i8:f32, 123456789.0>", "!quant.uniform<i8:tf32, 3.4e38>"),
    *("!quant.uniform<i8:f16, 65504.0>", "!quant.uniform<i8:f8E8M0FNU, 6.0e-39>", "!quant.uniform<i8:f32, 1.>"),
    # Per axis, and per block
    *("!quant.uniform<i8:f32:0, {0.1:-30,0.5:-20}>", "!quant.uniform<i8:f32:1, {{0.1, 0.2}, {0.3, 0.4:1}}>"),
    *("!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1:1, 0.2}, {0.3, 0.5:-4}}>", "!quant.uniform<i8:f32:{}, {{{0.25}}}>"),
    *("!quant.uniform<i8:bf16:{0:1}, {0.1, 0.2:300}>", "!quant.uniform<u8:f32:{0:1}, {1.0e-5:200, 34.0:-56}>"),
    *("!quant.uniform<i8:tf32:{0:1}, {0.1, 0.2}>", "!quant.uniform<i8:f8E4M3FN:{0:1}, {0.1, 0.2}>"),
    *("!quant.calibrated<f32<-1.000000e+00:1.000000e+00>>", "!quant.any<u8<0:10>>"),
)
REFUSED = {
    "i33 storage": "!quant.uniform<i33:f32, 0.5>",
    "storage range": "!quant.uniform<i8<-129:127>:f32, 0.5>",
    "empty storage range": "!quant.uniform<i8<5:5>:f32, 0.5>",
    "expressed integer": "!quant.uniform<i8:i8, 0.5>",
    "integer scale": "!quant.uniform<i8:f32, 34>",
    "zero scale": "!quant.uniform<i8:f32, 0.0>",
    "negative scale": "!quant.uniform<i8:f32, -1.0>",
    "large scale": "!quant.uniform<i8:f16, 65505.0>",
    "small scale": "!quant.uniform<i8:f32, 1.0e-45>",
    "zero point of 65 bits": "!quant.uniform<i8:f32, 0.5:18446744073709551616>",
    "no scales": "!quant.uniform<i8:f32:0, {}>",
    "negative axis": "!quant.uniform<i8:f32:-1, {0.1}>",
    "ragged blocks": "!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1, 0.2}, {0.3}}>",
    "mixed depths": "!quant.uniform<i8:f32:{0:1}, {{0.1}, 0.2}>",
    "empty blocks": "!quant.uniform<i8:f32:{1:0}, {{0.1}}>",
    "bound of a static dimension": "tensor<4xf32, #stablehlo.bounds<4>>",
    "bounds of another rank": "tensor<?xf32, #stablehlo.bounds<4, ?>>",
    "element tensor": "tensor<2xtensor<f32>>",
    "quantized buffer": "memref<2x!quant.uniform<i8:f32, 0.5>>",
    "empty future": "!stablehlo.future<>",
    "future of a number": "!stablehlo.future<f32>",
    "unknown type": "!stablehlo.foobar",
    "unknown quantized type": "!quant.foobar<i8>",
    "large extent": "tensor<9223372036854775808xf32>",
}


def type_of(text: str) -> Type:
    parser = Parser(text, "")
    kind = parser.type()
    assert parser.pos == len(text)
    return kind


@pytest.mark.parametrize("text", TYPES)
def test_round_trip(text):
    kind = type_of(text)
    assert type_of(str(kind)) is kind


@pytest.mark.jax
@pytest.mark.parametrize("text", TYPES)
def test_mlir_writes_the_same(text):
    with context():
        from jaxlib.mlir import ir

        assert str(type_of(text)) == str(ir.Type.parse(text))


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_refused(text):
    with pytest.raises(ParseError):
        type_of(text)


@pytest.mark.jax
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_mlir_refuses_the_same(text):
    with context():
        from jaxlib.mlir import ir

        with pytest.raises(ir.MLIRError, match="Unable to parse type"):
            ir.Type.parse(text)


def test_scales_of_many_digits_stay_readable():
    """MLIR prints the bits of a float where it does not print digits, and reads them as the bits of a double; we print
    those of a double."""
    kind = type_of("!quant.uniform<i8:f32:{0:1}, {123456789.0}>")
    assert str(kind) == "!quant.uniform<i8:f32:{0:1}, {0x419D6F3460000000}>"
    assert type_of(str(kind)) is kind


@pytest.mark.parametrize("text", ["f80", "vector<2xf32>", "complex<i8>", "i0"])
def test_types_of_mlir_that_are_not_types_of_stablehlo(text):
    with pytest.raises(Error, match=r"is not a type of StableHLO|expected a float type"):
        type_of(text)
