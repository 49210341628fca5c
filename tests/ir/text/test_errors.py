"""Text that is not a program: each mistake raises a single `ParseError` that says where it is and what was expected."""

from contextlib import suppress

import pytest

from trivium.ir.attributes import MAX_DEPTH
from trivium.ir.core import MAX_NESTING
from trivium.ir.errors import ParseError, UnsupportedOpError
from trivium.ir.text import parse


def body(*lines: str) -> str:
    text = "".join(f"  {line}\n" for line in lines)
    return f"func.func @f(%x: tensor<4xf32>, %i: tensor<i32>) {{\n{text}  return\n}}\n"


def attribute(text: str) -> str:
    return f"module attributes {{a = {text}}} {{}}"


def chain(line: str, count: int) -> str:
    """Returns a chain of aliases, each defined by the previous one: `{0}` is an alias's number, `{1}` that of the
    previous one."""
    first = {"#": "1 : i64", "!": "f32"}[line[0]] if "loc(" not in line else "loc(unknown)"
    lines = [f"{line[0]}a0 = {first}", *(line.format(number, number - 1) for number in range(1, count + 1))]
    return "".join(f"{text}\n" for text in lines)


ERRORS = {
    "nothing": ("  \n ", "contains no module and no function"),
    "undefined value": (body("%0 = stablehlo.add %x, %y : tensor<4xf32>"), "%y is not defined before its use"),
    "use before definition": (
        body("%0 = stablehlo.negate %1 : tensor<4xf32>", "%1 = stablehlo.negate %x : tensor<4xf32>"),
        "%1 is not defined before its use",
    ),
    "value of another function": (
        body("%0 = stablehlo.negate %x : tensor<4xf32>") + "func.func @g() { return %0 : tensor<4xf32> }",
        "%0 is not defined",
    ),
    "value of a region that has ended": (
        body(
            "%0 = stablehlo.while(%a = %i) : tensor<i32> cond { stablehlo.return %a : tensor<i32> }"
            " do { stablehlo.return %a : tensor<i32> }",
            "%1 = stablehlo.negate %a : tensor<i32>",
        ),
        "%a is not defined",
    ),
    "result that is not there": (
        body("%0:2 = call @g() : () -> (tensor<f32>, tensor<f32>)", "%1 = stablehlo.negate %0#2 : tensor<f32>"),
        "%0#2 is not defined",
    ),
    "redefinition": (
        body("%0 = stablehlo.negate %x : tensor<4xf32>", "%0 = stablehlo.negate %x : tensor<4xf32>"),
        "%0 is defined twice",
    ),
    "redefined argument": ("func.func @f(%a: tensor<f32>, %a: tensor<f32>) { return }", "%a is defined twice"),
    "type of an operand": (
        body("%0 = stablehlo.negate %x : tensor<5xf32>"),
        "the operand has type tensor<4xf32>, its use says tensor<5xf32>",
    ),
    "too few types": (
        body("%0 = stablehlo.reshape %x : () -> tensor<4xf32>"),
        "stablehlo.reshape has 1 operands and types for 0",
    ),
    "too many names": (body("%0:2 = stablehlo.negate %x : tensor<4xf32>"), "has 1 results"),
    "too few names": (body("%0 = call @g() : () -> (tensor<f32>, tensor<f32>)"), "has 2 results, 1 are named"),
    "missing colon": (body("%0 = stablehlo.negate %x tensor<4xf32>"), "has 'tensor', expected ':'"),
    "missing bracket": ("module {", "has the end of the text, expected '}'"),
    "trailing garbage": ("module {\n}\nrubbish", "'rubbish' is not an operation"),
    "region left out": ("func.func @f() {...}", "the region was left out when the text was printed"),
    "op outside": ("module {}\nreturn", "is outside of any function, expected a module, function or other symbol"),
    "not an operation": ("42", "has '42', expected an operation"),
    "op without a form": (body("%0 = stablehlo.gather %x, %i : tensor<4xf32>"), 'in quotes: "stablehlo.gather"(...)'),
    "second block": ("func.func @f() {\n^bb0:\n  return\n^bb1:\n  return\n}", "has a second block"),
    "attribute twice": (attribute("1 : i64, a = 2 : i64"), "the attribute a is given twice"),
    "attribute of another kind": (
        body('%0 = "stablehlo.transpose"(%x) {permutation = "x"} : (tensor<4xf32>) -> tensor<4xf32>'),
        'attribute permutation has "x", expected list of integers',
    ),
    "enumeration": (
        body("%0 = stablehlo.compare XX, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>"),
        "has 'XX'",
    ),
    "dimension of a convolution": (
        body("%0 = stablehlo.convolution(%x, %x) dim_numbers = [b, 0, 0]x[i, o, 0]->[b, f, 0], window = {}"),
        "the input has dimensions ['b', '0', '0'], expected each of ['b', 'f', '0'] once",
    ),
    "struct": (
        attribute("#stablehlo.gather<offset_dim = [0]>"),
        "offset_dim is not a field, expected one of offset_dims",
    ),
    "struct without a field": (attribute("#stablehlo.dot_algorithm<>"), "lacks lhs_precision_type"),
    "unknown type": (attribute("tensor<4xfloat>"), "'float' is not a type of StableHLO"),
    "unranked": (attribute("tensor<*f32>"), "has '*', expected a type"),
    "extent": (attribute("tensor<99999999999999999999xf32>"), "has an extent above 9223372036854775807"),
    "element type": (attribute("tensor<4xtuple<>>"), "has element type tuple<>, expected a number's type"),
    "bounds": (attribute("tensor<?xf32, #stablehlo.bounds<1, 2>>"), "has 2 bounds for 1 dimensions"),
    "integer range": (attribute("256 : i8"), "256 does not fit in i8"),
    "float digits": (attribute("1 : f32"), "'1' is not a float, expected one as in 1.0"),
    "long integer": (attribute("1" * 5000), "is not an integer"),
    "shape of elements": (
        attribute("dense<[1, 2]> : tensor<3xi32>"),
        "has elements of shape [2], expected tensor<3xi32>",
    ),
    "ragged elements": (attribute("dense<[[1], [2, 3]]> : tensor<2x1xi32>"), "has lists of 2 and of 1 elements"),
    "misplaced comma": (attribute("dense<[1,, 2]> : tensor<2xi32>"), "has ',,' in a list of elements"),
    "boolean element": (attribute("dense<true> : tensor<2xi32>"), "'true' is not of type i32"),
    "bytes": (attribute('dense<"0x00"> : tensor<2xi32>'), "has 1 bytes, tensor<2xi32> has 8"),
    "hexadecimal": (attribute('dense<"0x0G"> : tensor<2xi32>'), "has invalid hexadecimal digits"),
    "elements of a dynamic type": (attribute("dense<1> : tensor<?xi32>"), "expected a static shape"),
    "too many elements": (
        attribute("dense<1.0> : tensor<4611686018427387904x4611686018427387904xf32>"),
        "1:",
    ),
    "elements of a quantized type": (attribute("dense<1> : tensor<2x!quant.uniform<i8:f32, 1.0>>"), "expected numbers"),
    "resource of a dynamic type": (
        attribute("dense_resource<r> : tensor<?xi8>") + '\n{-# dialect_resources: {builtin: {r: "0x0400000001"}} #-}',
        "expected a static shape",
    ),
    "resource of an odd width": (
        attribute("dense_resource<r> : tensor<1xi7>") + '\n{-# dialect_resources: {builtin: {r: "0x0400000001"}} #-}',
        "i7 has no NumPy dtype",
    ),
    "resource that is no text": (attribute("1 : i64") + "\n{-# dialect_resources: {builtin: {r: }} #-}", "has '}'"),
    "unclosed string": (attribute('"abc'), "expected a string"),
    "no opaque": ("sdy.mesh @m =)<>", "has ')', expected an opening bracket"),
    "unclosed opaque": (attribute("#a.b<(>"), "has '>', expected ')'"),
    "undefined alias": (attribute("#nope"), "the alias #nope is not defined"),
    "alias of itself": ("#a = [#a]\n" + attribute("#a"), "the alias #a is defined through itself"),
    "alias twice": ("#a = 1 : i64\n#a = 2 : i64\n" + attribute("#a"), "the alias #a is defined twice"),
    "undefined resource": (attribute("dense_resource<r> : tensor<1xf32>"), "the resource r is not defined"),
    "location": ("module {} loc(nowhere)", "has 'nowhere', expected a location"),
    "alias is no location": ("#a = 1 : i64\nmodule {} loc(#a)", "#a is not a location"),
    "visibility": ("func.func secret @f() { return }", "has 'secret', expected the function's name"),
    "unnamed arguments": ("func.func @f(tensor<f32>) { return }", "expected names of the arguments"),
    "reduce with no commutative op": (
        body("%0 = stablehlo.reduce(%x init: %x) applies stablehlo.subtract across dimensions = [0] : () -> ()"),
        "'stablehlo.subtract' is not a commutative op",
    ),
    "groups": (
        body('%0 = "stablehlo.negate"(%x) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>) -> tensor<4xf32>'),
        "has groups of [1, 1] operands, expected 1 sizes",
    ),
    "groups of another type": (
        body('%0 = "stablehlo.negate"(%x) {operandSegmentSizes = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>'),
        "has the sizes of its groups of operands in i64, expected i32",
    ),
    "nested attributes": (attribute("[" * 5000 + "]" * 5000), f"nested more than {MAX_DEPTH} levels deep"),
    "nested types": (attribute("tuple<" * 5000 + ">" * 5000), f"nested more than {MAX_DEPTH} levels deep"),
    "nested regions": ("module {" * 5000 + "}" * 5000, f"nested more than {MAX_NESTING} levels deep"),
    "nested quantized types": (attribute("!quant.uniform<i8:" * 5000), f"nested more than {MAX_DEPTH} levels deep"),
    "chain of aliases": (
        chain("#a{0} = [#a{1}]", 200) + attribute("#a200"),
        f"nested more than {MAX_DEPTH} levels deep",
    ),
    "aliases that double": (chain("#a{0} = [#a{1}, #a{1}]", 30) + attribute("#a30"), "aliases expand to"),
    "aliases of types that double": (chain("!a{0} = tuple<!a{1}, !a{1}>", 30) + attribute("!a30"), "aliases expand to"),
    "aliases of locations that double": (
        chain("#a{0} = loc(fused[#a{1}, #a{1}])", 30) + "module {} loc(#a30)",
        "aliases expand to",
    ),
    "list of a huge splat": (
        body('%0 = "stablehlo.pad"(%x) {edge_padding_low = dense<0> : tensor<1000000000xi64>} : () -> ()'),
        "expected list of integers",
    ),
    "list of nothing, many times": (
        body('%0 = "stablehlo.send"(%x) {source_target_pairs = dense<> : tensor<9999999999x0xi64>} : () -> ()'),
        "expected list of pairs",
    ),
    "groups of a huge splat": (
        body('%0 = "stablehlo.negate"(%x) {operandSegmentSizes = dense<1> : tensor<1000000000xi32>} : () -> ()'),
        "expected 1 sizes",
    ),
    "half of a character": ('module attributes {a = "\ud800"} {}', "has '\\ud800', which is half of a character"),
    "byte of a character": ("// \udcff", "has '\\udcff', which is half of a character"),
    "bound below zero": (attribute("tensor<?xf32, #stablehlo.bounds<-1>>"), "has the bound -1, expected at least 0"),
    "line below zero": ('module {} loc("a.py":1:-1)', "has -1 for a line or a column"),
    "line too large": ('module {} loc("a.py":4294967296:1)', "has 4294967296 for a line or a column"),
    "nested locations": ("module {} loc(" + 'callsite("a" at ' * 5000, f"nested more than {MAX_DEPTH} levels deep"),
    "elided elements": (
        attribute("dense_resource<__elided__> : tensor<9xf32>"),
        "were left out when the text was printed",
    ),
    "label of a named block": ("func.func @f(%a: tensor<f32>) {\n^bb0:\n  return\n}", "the block has a label"),
    "sparse index": (attribute("sparse<[[3]], [1]> : tensor<3xi32>"), "has indices outside of tensor<3xi32>"),
    "sparse indices": (attribute("sparse<[0, 1, 2], 1> : tensor<2x2xi32>"), "has 3 numbers for the indices"),
    "sparse size": (attribute("sparse<0, 1> : tensor<99999999xi32>"), "expected at most 65536 elements"),
    "symbol": (attribute("@0"), "expected a symbol, as in @name"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    text, message = ERRORS[name]
    with pytest.raises(ParseError) as caught:
        parse(text, file="a.mlir")
    told = str(caught.value)
    assert message in told
    assert told.startswith(f"a.mlir:{caught.value.line}:{caught.value.column}: ")
    assert caught.value.line > 0


def test_the_caret_is_below_the_mistake():
    with pytest.raises(ParseError) as caught:
        parse("module {\n  func.func @f() {\n    %0 = stablehlo.negate %z : tensor<f32>\n  }\n}")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("<text>:3:27: %z is not defined")
    assert lines[1] == "      %0 = stablehlo.negate %z : tensor<f32>"
    assert lines[2].index("^") == lines[1].index("%z")


def test_the_caret_is_below_the_mistake_in_long_lines():
    text = attribute(f"[{'1 : i64, ' * 500}?]")
    with pytest.raises(ParseError) as caught:
        parse(text)
    _, source, caret = str(caught.value).splitlines()
    assert len(source) < 200
    assert source[caret.index("^")] == "?"


def test_all_unknown_ops_are_reported_at_once():
    text = body("%0 = my.op %x : tensor<4xf32>", '%1:2 = "your.op"(%0) : () -> ()', "my.op", "stablehlo.nothing")
    with pytest.raises(UnsupportedOpError) as caught:
        parse(text, file="a.mlir")
    assert [(op.name, op.count, op.first) for op in caught.value.ops] == [
        ("my.op", 2, "a.mlir:2:8"),
        ("your.op", 1, "a.mlir:3:11"),
        ("stablehlo.nothing", 1, "a.mlir:5:3"),
    ]


PROGRAM = """\
#loc1 = loc("a")
module @m attributes {x = [1 : i64, "s"]} {
  func.func @main(%arg0: tensor<2x3xf32> {a = true}, %arg1: tensor<f32>) -> tensor<2xf32> {
    %cst = stablehlo.constant dense<[[1.0, 0x7FC00000, 2.0], [1.0, 2.0, 3.0]]> : tensor<2x3xf32>
    %0 = stablehlo.slice %arg0 [0:2, 0:3:1] : (tensor<2x3xf32>) -> tensor<2x3xf32> loc(#loc1)
    %1 = stablehlo.add %0, %cst {k = #stablehlo.dot<lhs_batching_dimensions = [0]>} : tensor<2x3xf32>
    %2 = stablehlo.reduce(%1 init: %arg1) applies stablehlo.add across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %2 : tensor<2xf32>
  }
}
"""


def test_programs_with_missing_or_additional_characters():
    """If the text is cut anywhere, or a character is missing or added, it parses or raises a ParseError, and no other
    exception."""
    parse(PROGRAM)
    for place in range(len(PROGRAM)):
        for text in (PROGRAM[:place], PROGRAM[:place] + PROGRAM[place + 1 :], PROGRAM[:place] + ">" + PROGRAM[place:]):
            with suppress(ParseError, UnsupportedOpError):
                parse(text)
