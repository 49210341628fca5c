"""When two programs are equal, and how differences are described."""

import pytest

from trivium.ir.attributes import Dictionary
from trivium.ir.equality import difference, equal
from trivium.ir.text import parse

PROGRAM = """\
func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.subtract %a, %b {note = "x"} : tensor<2xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<2xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0]
    : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<2xf32>
}
"""


def test_names_and_locations_are_not_compared():
    other = PROGRAM.replace("%a", "%x").replace("%0", "%zero").replace("return", "\n\n  return")
    assert equal(parse(PROGRAM), parse(other))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("%a, %b {", "%b, %a {", "operand 0 is a different value"),
        ("%a, %b {", "%a, %a {", "operand 1 is a different value"),
        ("stablehlo.subtract", "stablehlo.divide", "subtract is in the place of the other's stablehlo.divide"),
        ('"x"', '"y"', "note has 'x', the other 'y'"),
        ("dims = [0]", "dims = []", "dimensions has (0,), the other ()"),
        ("applies stablehlo.add", "applies stablehlo.multiply", "stablehlo.add is in the place"),
        ("dense<0.0>", "dense<-0.0>", "value has"),
        ("return %1", "return %0", "operand 0 is a different value"),
        ("  return %1 : tensor<2xf32>\n", "", "a block ends before func.return"),
        ("@f", "@g", "sym_name has 'f', the other 'g'"),
    ],
)
def test_difference(old, new, told):
    assert told in difference(parse(PROGRAM), parse(PROGRAM.replace(old, new)))


def test_dictionaries_without_entries_are_ignored():
    """Files can contain empty dictionaries; text cannot."""
    one, other = parse(PROGRAM), parse(PROGRAM)
    one.functions["f"].attributes["arg_attrs"] = (Dictionary(), Dictionary())
    assert equal(one, other)
    one.functions["f"].attributes["arg_attrs"] = (Dictionary(), Dictionary(a=True))
    assert "arg_attrs has" in difference(one, other)
