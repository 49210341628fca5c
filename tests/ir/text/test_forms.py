"""Every pretty form: what is printed equals what was read, the generic form is the same program, and ops that a form
cannot express are printed generically."""

import pytest

from trivium.ir.declare import OPS
from trivium.ir.equality import difference
from trivium.ir.text import assembly, parse, print_module
from trivium.ir.text.assembly import GENERIC, form_of


def function(arguments: str, *lines: str) -> str:
    """Returns the text of a module with one function without results, which contains a few ops."""
    body = "".join(f"    {line}\n" for line in lines)
    return f"module {{\n  func.func @main({arguments}) {{\n{body}    return\n  }}\n}}\n"


F = "%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xf32>"
FORMS = {
    "binary": (F, "%0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>"),
    "unary": (F, "%0 = stablehlo.tanh %arg0 : tensor<2x3xf32>"),
    "unary of two types": (F, "%0 = stablehlo.convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi32>"),
    "extra attributes": (F, '%0 = stablehlo.negate %arg0 {a = 1 : i64, mhlo.frontend = "x"} : tensor<2x3xf32>'),
    "is_finite": (F, "%0 = stablehlo.is_finite %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi1>"),
    "compare": (F, "%0 = stablehlo.compare LT, %arg0, %arg1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>"),
    "compare with a type": (
        F,
        "%0 = stablehlo.compare LT, %arg0, %arg1, TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>",
    ),
    "select": (
        "%arg0: tensor<i1>, %arg1: tensor<4xf32>",
        "%0 = stablehlo.select %arg0, %arg1, %arg1 : tensor<i1>, tensor<4xf32>",
    ),
    "select of other types": (
        "%arg0: tensor<i1>, %arg1: tensor<4xf32>",
        "%0 = stablehlo.select %arg0, %arg1, %arg1 : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32>",
    ),
    "clamp": (F, "%0 = stablehlo.clamp %arg0, %arg1, %arg1 : tensor<2x3xf32>"),
    "clamp by scalars": (
        "%arg0: tensor<f32>, %arg1: tensor<4xf32>",
        "%0 = stablehlo.clamp %arg0, %arg1, %arg0 : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>",
    ),
    "complex": (F, "%0 = stablehlo.complex %arg0, %arg1 : tensor<2x3xcomplex<f32>>"),
    "reduce_precision": (F, "%0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<2x3xf32>"),
    "constant": ("", "%cst = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>"),
    "constant with attributes": ("", "%c = stablehlo.constant {a} dense<[1, 2]> : tensor<2xi32>"),
    "iota": ("", "%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>"),
    "broadcast_in_dim": (
        "%arg0: tensor<3xf32>",
        "%0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>",
    ),
    "reshape": (F, "%0 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6xf32>"),
    "transpose": (F, "%0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>"),
    "reverse": (F, "%0 = stablehlo.reverse %arg0, dims = [0] : tensor<2x3xf32>"),
    "slice": (F, "%0 = stablehlo.slice %arg0 [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>"),
    "pad": (
        "%arg0: tensor<4xf32>, %arg1: tensor<f32>",
        "%0 = stablehlo.pad %arg0, %arg1, low = [1], high = [-1], interior = [2]"
        " : (tensor<4xf32>, tensor<f32>) -> tensor<10xf32>",
    ),
    "concatenate": (
        F,
        "%0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>",
    ),
    "dynamic_slice": (
        "%arg0: tensor<4x4xf32>, %arg1: tensor<i32>",
        "%0 = stablehlo.dynamic_slice %arg0, %arg1, %arg1, sizes = [1, 2]"
        " : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>",
    ),
    "dynamic_update_slice": (
        "%arg0: tensor<4xf32>, %arg1: tensor<1xf32>, %arg2: tensor<i32>",
        "%0 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2"
        " : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>",
    ),
    "dot_general": (
        "%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>",
        "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]"
        " : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>",
    ),
    "dot_general with a precision": (
        "%arg0: tensor<2x3xf32>, %arg1: tensor<3x4xf32>",
        "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, HIGHEST]"
        " : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>",
    ),
    "dot_general with everything": (
        "%arg0: tensor<5x2x3xf32>, %arg1: tensor<5x3x4xf32>",
        "%0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1],"
        " precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16,"
        " accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3,"
        " allow_imprecise_accumulation = false> : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>",
    ),
    "convolution": (
        "%arg0: tensor<1x8x8x2xf32>, %arg1: tensor<3x3x2x4xf32>",
        "%0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],"
        " window = {stride = [2, 2], pad = [[1, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1],"
        " reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64,"
        " precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGH>]}"
        " : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x4x4xf32>",
    ),
    "convolution without a window": (
        "%arg0: tensor<1x8x2xf32>, %arg1: tensor<3x2x4xf32>",
        "%0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {}"
        " {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        " : (tensor<1x8x2xf32>, tensor<3x2x4xf32>) -> tensor<1x6x4xf32>",
    ),
    "reduce of one op": (
        "%arg0: tensor<2x3xf32>, %arg1: tensor<f32>",
        "%0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1]"
        " : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>",
    ),
    "reduce with a region": (
        "%arg0: tensor<2x3xf32>, %arg1: tensor<f32>",
        "%0:2 = stablehlo.reduce(%arg0 init: %arg1), (%arg0 init: %arg1) across dimensions = [0, 1]"
        " : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)",
        " reducer(%arg2: tensor<f32>, %arg4: tensor<f32>) (%arg3: tensor<f32>, %arg5: tensor<f32>)  {",
        "  %1 = stablehlo.subtract %arg2, %arg4 : tensor<f32>",
        "  stablehlo.return %1, %arg5 : tensor<f32>, tensor<f32>",
        "}",
    ),
    "while": (
        "%arg0: tensor<i32>, %arg1: tensor<f32>",
        "%0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<i32>, tensor<f32>",
        "cond {",
        "  %1 = stablehlo.compare LT, %iterArg, %arg0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "  stablehlo.return %1 : tensor<i1>",
        "} do {",
        "  %1 = func.call @main(%iterArg_0) : (tensor<f32>) -> tensor<f32>",
        "  stablehlo.return %iterArg, %1 : tensor<i32>, tensor<f32>",
        "}",
    ),
    "if": (
        "%arg0: tensor<i1>, %arg1: tensor<f32>",
        '%0 = "stablehlo.if"(%arg0) ({',
        "  stablehlo.return %arg1 : tensor<f32>",
        "}, {",
        "  %1 = stablehlo.negate %arg1 : tensor<f32>",
        "  stablehlo.return %1 : tensor<f32>",
        "}) : (tensor<i1>) -> tensor<f32>",
    ),
    "sort": (
        "%arg0: tensor<4xf32>",
        '%0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({',
        "^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):",
        "  %1 = stablehlo.compare LT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  stablehlo.return %1 : tensor<i1>",
        "}) : (tensor<4xf32>) -> tensor<4xf32>",
    ),
    "gather": (
        "%arg0: tensor<4x3xf32>, %arg1: tensor<2x1xi32>",
        '%0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],'
        " collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}>"
        " : (tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>",
    ),
    "custom_call": (
        F,
        '%0:2 = stablehlo.custom_call @"my.target-x"(%arg0, %arg1) {api_version = 4 : i32,'
        " backend_config = {n = 1 : i64}, has_side_effect = true}"
        " : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<f32>, tensor<f32>)",
    ),
    "custom_call of nothing": ("", "stablehlo.custom_call @stop() {has_side_effect = true} : () -> ()"),
    "composite": (
        F,
        '%0 = stablehlo.composite "my.op" %arg0, %arg1 {composite_attributes = {k = 3 : i64}, decomposition = @main,'
        " version = 1 : i32} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
    ),
    "tuple": (F, "%0 = stablehlo.tuple %arg0, %arg1 : tuple<tensor<2x3xf32>, tensor<2x3xf32>>"),
    "get_tuple_element": (
        "%arg0: tuple<tensor<f32>, tensor<i32>>",
        "%0 = stablehlo.get_tuple_element %arg0[1] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<i32>",
    ),
    "optimization_barrier": (
        F,
        "%0:2 = stablehlo.optimization_barrier %arg0, %arg1 : tensor<2x3xf32>, tensor<2x3xf32>",
    ),
    "rng_bit_generator": (
        "%arg0: tensor<2xui64>",
        "%output_state, %output = stablehlo.rng_bit_generator %arg0, algorithm = PHILOX"
        " : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)",
    ),
    "chlo unary": ("%arg0: tensor<4xf32>", "%0 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>"),
    "chlo binary": (
        "%arg0: tensor<4xf32>",
        "%0 = chlo.next_after %arg0, %arg0 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>",
    ),
    "top_k": (
        "%arg0: tensor<4xf32>",
        "%values, %indices = chlo.top_k(%arg0, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)",
    ),
    "call": (
        "%arg0: tensor<4xf32>",
        "%0:2 = call @main(%arg0) {mark} : (tensor<4xf32>) -> (tensor<f32>, tensor<f32>)",
        "%1 = stablehlo.add %0#1, %0#0 : tensor<f32>",
    ),
    "transcendental with an accuracy": (
        F,
        "%0 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<ulps = 2,"
        " mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name):
    arguments, *lines = FORMS[name]
    text = function(arguments, *lines)
    module = parse(text)
    assert str(module) == text
    generic = print_module(module, generic=True)
    assert '"func.func"' in generic
    assert difference(parse(generic), module) == ""
    located = print_module(module, locations=True)
    assert str(parse(located)) == text


def test_lines_name_fields_of_their_ops():
    """Every declared op has a form, and the ops that are always generic have no line in the table."""
    assert not GENERIC & set(assembly.FORMS)
    for cls in OPS.values():
        form_of(cls)


def test_functions():
    text = """\
module @"jit f" attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32> {jax.donor = true}, %arg1: tensor<f32>) -> (tensor<4xf32> {a = "b"}) {
    return %arg0 : tensor<4xf32>
  }
  func.func private @declared(tensor<4xf32> {x}, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
  func.func @two() -> (tensor<f32>, tensor<f32>) attributes {a = @main} {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    return %cst, %cst : tensor<f32>, tensor<f32>
  }
}
"""
    module = parse(text)
    assert str(module) == text
    assert difference(parse(print_module(module, generic=True)), module) == ""
    assert module.functions["main"].argument_attributes(0)["jax.donor"] is True
    assert module.functions["declared"].is_declaration


def test_functions_alone_get_a_module():
    module = parse("func.func @f() { return }\nfunc.func @g() { return }")
    assert list(module.functions) == ["f", "g"]


@pytest.mark.parametrize(
    "line",
    [
        '%0 = "stablehlo.dynamic_slice"(%arg0) <{slice_sizes = array<i64>}> : (tensor<f32>) -> tensor<f32>',
        '%0 = "stablehlo.transpose"(%arg0) : (tensor<f32>) -> tensor<f32>',
        '%0 = "stablehlo.add"(%arg0) : (tensor<f32>) -> tensor<f32>',
    ],
)
def test_ops_that_do_not_fit_their_form_are_generic(line):
    text = function("%arg0: tensor<f32>", line)
    assert str(parse(text)) == text


def test_older_spellings():
    """Attributes in a single dictionary, integers as tensors, and spaces and comments anywhere."""
    module = parse(
        function(
            "%arg0 : tensor<2x3xf32>",
            '%0 = "stablehlo.transpose"(%arg0) { // to columns',
            "  permutation = dense<[1,0]> : tensor<2xi64> } : ( tensor<2x3xf32> ) -> (tensor<3x2xf32>)",
            "%1   =   stablehlo.compare   LT , %0,%0  :  (tensor<3x2xf32>,tensor<3x2xf32>) -> tensor<3x2xi1>",
        )
    )
    transpose, compare, _ = module.functions["main"].body.block
    assert transpose.permutation == (1, 0)
    assert str(compare.comparison_direction) == "LT"


def test_comments_alone_are_an_empty_module():
    assert print_module(parse("// A program that does nothing.\n")) == "module {\n}\n"
