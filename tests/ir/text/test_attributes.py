"""Attributes, types, locations, aliases and resources: reading and printing."""

import numpy as np
import pytest

from trivium.ir.attributes import (
    UNIT,
    DenseArray,
    DenseElements,
    Dictionary,
    Float,
    Integer,
    OpaqueAttribute,
    SymbolRef,
)
from trivium.ir.equality import difference
from trivium.ir.errors import ParseError
from trivium.ir.location import UNKNOWN, CallSiteLocation, FileLocation, FusedLocation, NameLocation
from trivium.ir.text import parse, print_module
from trivium.ir.text.attributes import AttributeWriter
from trivium.ir.text.parser import Parser
from trivium.ir.types import BF16, F32, F64, I1, I8, I32, I64, UI8, Bounds, OpaqueType, tensor


def attribute_of(text: str):
    """Returns the attribute that a text represents, and the text that it is printed as."""
    module = parse(f"module attributes {{x = {text}}} {{}}")
    printed = str(module)
    again = parse(printed)
    assert str(again) == printed
    return module.extra["x"], printed.removeprefix("module attributes {x = ").removesuffix("} {\n}\n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("5 : i64", Integer(5, I64)),
        ("-5 : i8", Integer(-5, I8)),
        ("255 : ui8", Integer(255, UI8)),
        ("1.000000e+00 : f64", Float(1.0, F64)),
        ("-0.000000e+00 : f32", Float(-0.0, F32)),
        ("0x7FC00000 : f32", Float(float("nan"), F32)),
        ("0xFF80 : bf16", Float(float("-inf"), BF16)),
        ("3.14159274 : f32", Float(float(np.float32(np.pi)), F32)),
        (r'"a\22b\\c\0A\C3\A9"', 'a"b\\c\né'),
        ("[]", ()),
        ("[1, [true], 1 : i32, 1.500000e+00, 0x7FF0000000000000 : f64]", None),
        ("0x7F800001 : f32", None),
        ("0xFFC12345 : f32", None),
        ("0x7FF0000000000001 : f64", None),
        ("0x7F : f8E5M2", None),
        ("3.300780e+00 : tf32", None),
        ('{"a b" = 1 : i64, c.d, e = {}}', Dictionary({"a b": Integer(1, I64), "c.d": UNIT, "e": Dictionary()})),
        ("@f", SymbolRef("f")),
        ('@f::@"g h"', SymbolRef("f", ("g h",))),
        ("array<i64>", DenseArray(I64, ())),
        ("array<i1: true, false>", DenseArray(I1, (True, False))),
        ("array<f32: 1.500000e+00>", DenseArray(F32, (1.5,))),
        ("tensor<2x?xf32>", tensor(2, None)),
        ("f8E4M3FN", None),
        ("(tensor<f32>) -> (tensor<f32>, i1)", None),
        ("!quant.any<i8:f32>", OpaqueType("!quant.any<i8:f32>")),
        ('#sdy.sharding<@mesh, [{"x"}, {}]>', OpaqueAttribute('#sdy.sharding<@mesh, [{"x"}, {}]>')),
        ("affine_map<(d0, d1) -> (d1)>", OpaqueAttribute("affine_map<(d0, d1) -> (d1)>")),
        ("affine_set<(d0)[s0] : (d0 - s0 >= 0, s0 == 0)>", None),
        ("strided<[4, ?], offset: 2>", OpaqueAttribute("strided<[4, ?], offset: 2>")),
        ("distinct[0]<42 : i32>", OpaqueAttribute("distinct[0]<42 : i32>")),
        ("#stablehlo.channel<1>", OpaqueAttribute("#stablehlo.channel<1>")),
        ("tensor<?x4xf32, #stablehlo.bounds<8, ?>>", None),
        ('loc("a.py":1:2)', FileLocation("a.py", 1, 2)),
        (
            "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 0, input_spatial_dimensions = [],"
            " kernel_input_feature_dimension = 0, kernel_output_feature_dimension = 1, kernel_spatial_dimensions = [],"
            " output_batch_dimension = 0, output_feature_dimension = 1, output_spatial_dimensions = []>",
            None,
        ),
    ],
)
def test_attribute(text, value):
    read, printed = attribute_of(text)
    assert printed == text
    assert value is None or read == value


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("5", "5 : i64"),
        ("0xFF : i32", "255 : i32"),
        ("255 : i8", "-1 : i8"),
        ("1.5", "1.500000e+00 : f64"),
        ("1 : i1", "true"),
        ("{a, b = unit}", "{a, b}"),
        ("3.3 : tf32", "3.300780e+00 : tf32"),
        ("[1 : i64, 2.5 : f64]", "[1, 2.500000e+00]"),
        ("sparse<[[0, 1], [1, 0]], [5, 6]> : tensor<2x2xi8>", "dense<[[0, 5], [6, 0]]> : tensor<2x2xi8>"),
        ("sparse<1, 5> : tensor<3xi8>", "dense<[0, 5, 0]> : tensor<3xi8>"),
        ("sparse<> : tensor<3xi8>", "dense<0> : tensor<3xi8>"),
        ("tensor<?x4xf32, #stablehlo.type_extensions<bounds = [8, ?]>>", "tensor<?x4xf32, #stablehlo.bounds<8, ?>>"),
        (
            "#stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 1, input_spatial_dimensions = [],"
            " kernel_input_feature_dimension = 0, kernel_output_feature_dimension = 1, kernel_spatial_dimensions = [],"
            " output_batch_dimension = 0, output_feature_dimension = 1, output_spatial_dimensions = []>",
            "#stablehlo.conv<[b, f]x[i, o]->[b, f]>",
        ),
    ],
)
def test_other_spellings(text, printed):
    assert attribute_of(text)[1] == printed


def test_bounds():
    read, _ = attribute_of("tensor<?x4xf32, #stablehlo.bounds<8, ?>>")
    assert read.encoding == Bounds((8, None))
    assert read.bounds == (8, None)


LOCATIONS = [
    ("loc(unknown)", UNKNOWN),
    ('loc("f.py":3:4)', FileLocation("f.py", 3, 4)),
    ('loc("f.py":3:4 to :9)', FileLocation("f.py", 3, 4, 3, 9)),
    ('loc("f.py":3:4 to 5:9)', FileLocation("f.py", 3, 4, 5, 9)),
    ('loc("name")', NameLocation("name")),
    ('loc("name"("f.py":3:4))', NameLocation("name", FileLocation("f.py", 3, 4))),
    ('loc(callsite("a" at "b"))', CallSiteLocation(NameLocation("a"), NameLocation("b"))),
    ('loc(fused["a", "b"])', FusedLocation((NameLocation("a"), NameLocation("b")))),
    ('loc(fused<"meta">["a"])', FusedLocation((NameLocation("a"),), "meta")),
]


@pytest.mark.parametrize(("text", "location"), LOCATIONS)
def test_location(text, location):
    module = parse(f"module {{}} {text}")
    assert module.location == location
    assert print_module(module, locations=True) == f"module {{\n}} {text}\n"


def test_shared_locations_have_aliases():
    """The parts of a location are defined before it, as MLIR requires."""
    text = """\
module {
  func.func @f(%x: tensor<f32> loc("x")) {
    %0 = stablehlo.negate %x : tensor<f32> loc(#loc2)
    %1 = stablehlo.negate %0 : tensor<f32> loc(#loc3)
    return loc(#loc3)
  } loc(unknown)
} loc(unknown)
#loc1 = loc("main")
#loc2 = loc(callsite("f"("a.py":1:2) at #loc1))
#loc3 = loc(callsite("g" at #loc1))
"""
    module = parse(text)
    assert print_module(module, locations=True) == text
    assert module.functions["f"].body.terminator.location == CallSiteLocation(NameLocation("g"), NameLocation("main"))


def test_location_of_the_text():
    module = parse("module {\n  func.func @f(%a: tensor<f32>) {\n    return\n  }\n}", file="x.mlir")
    function = module.functions["f"]
    assert function.location == FileLocation("x.mlir", 2, 3)
    assert function.arguments[0].location == FileLocation("x.mlir", 2, 16)
    assert function.body.terminator.location == FileLocation("x.mlir", 3, 5)


def test_aliases():
    """Attributes, types and locations, used before and after their definition."""
    module = parse(
        """\
#map = {a = 1 : i64}
!t = tensor<2xf32>
module attributes {x = #map, y = #late} {
  func.func @f(%arg0: !t loc(#loc1)) -> !t {
    return %arg0 : !t loc(#loc2)
  }
}
#late = [!t]
#loc = loc(unknown)
#loc1 = loc("a")
#loc2 = loc(callsite(#loc1 at #loc))
"""
    )
    assert module.extra == {"x": Dictionary(a=Integer(1, I64)), "y": (tensor(2),)}
    function = module.functions["f"]
    assert function.arguments[0].type is tensor(2)
    assert function.arguments[0].location == NameLocation("a")
    assert function.body.terminator.location == CallSiteLocation(NameLocation("a"), UNKNOWN)


def test_resources():
    text = """\
module {
  func.func @f() {
    %cst = stablehlo.constant dense_resource<weights> : tensor<2xf32>
    %c = stablehlo.constant dense_resource<"a b"> : tensor<3xi8>
    return
  }
}

{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F00000040",
      "a b": "0x01000000010203"
    }
  }
#-}
"""
    module = parse(text)
    weights, integers, _ = module.functions["f"].body.block
    np.testing.assert_array_equal(weights.value.array, np.array([1, 2], np.float32))
    np.testing.assert_array_equal(integers.value.array, np.array([1, 2, 3], np.int8))
    assert str(module) == text


def test_resources_of_the_same_name_are_distinguished():
    module = parse("func.func @f() { return }")
    module.extra["x"] = tuple(
        DenseElements(np.arange(start, start + 2, dtype=np.int8), tensor(2, of=I8), resource="w") for start in (0, 5)
    )
    again = parse(str(module))
    assert [value.array.tolist() for value in again.extra["x"]] == [[0, 1], [5, 6]]
    assert "dense_resource<w_1>" in str(module)


def test_integer_attributes_keep_their_type():
    read, _ = attribute_of("7 : i32")
    assert read.type is I32


def test_fields_that_are_floats():
    """Any float is accepted, in decimals or as its bits, but no integer."""
    text = "#stablehlo.result_accuracy<atol = {}, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
    for value in ("0x7FF8000000000000", "0xFFFFFFFFFFFFFFFF", "1.500000e+00", "4.9406564584124654E-324"):
        written = AttributeWriter().attribute(Parser(text.format(value)).attribute())
        assert written == AttributeWriter().attribute(Parser(written).attribute())
        assert value[:4] in written
    with pytest.raises(ParseError, match="'1' is not a float"):
        Parser(text.format("1")).attribute()
    with pytest.raises(ParseError, match="has more than 64 bits"):
        Parser(text.format("0x10000000000000000")).attribute()


def test_a_result_that_is_a_function_is_in_parentheses():
    text = '%0 = "stablehlo.custom_call"() <{call_target_name = "f"}> : () -> ((tensor<f32>) -> tensor<f32>)'
    module = parse(f"func.func @main() {{ {text} return }}")
    for generic in (False, True):
        assert difference(parse(print_module(module, generic=generic)), module) == ""
