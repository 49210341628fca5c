"""How devices hold results for which the program specifies no sharding: like the values that they are computed from."""

import pytest

from trivium.compiler.passes.partition import partition
from trivium.compiler.pipeline import inline
from trivium.ir.text import parse

ADDED = """({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %s = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""

CASES = {
    "elementwise": ("%y = stablehlo.add %x, %x : tensor<4x6xf32>", "4x6", (2, 3)),
    "transposed": ("%y = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>", "6x4", (3, 2)),
    "broadcast": (
        "%y = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<4x6xf32>) -> tensor<4x5x6xf32>",
        "4x5x6",
        (2, 5, 3),
    ),
    "reduced": (
        '%zero = stablehlo.constant dense<0.0> : tensor<f32>\n  %y = "stablehlo.reduce"(%x, %zero) '
        f"<{{dimensions = array<i64: 0>}}> {ADDED} : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>",
        "6",
        (3,),
    ),
    "reshaped": ("%y = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<4x1x6xf32>", "4x1x6", (2, 1, 3)),
    "sliced": ("%y = stablehlo.slice %x [1:3, 0:6] : (tensor<4x6xf32>) -> tensor<2x6xf32>", "2x6", (2, 3)),
    "gathered": (
        '%i = stablehlo.constant dense<1> : tensor<3x1xi32>\n  %y = "stablehlo.gather"(%x, %i) <{dimension_numbers = '
        "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
        ", slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<3x1xi32>) -> tensor<3x6xf32>",
        "3x6",
        (3, 3),
    ),
    "gathered windows": (
        '%i = stablehlo.constant dense<0> : tensor<2xi32>\n  %y = "stablehlo.gather"(%x, %i) <{dimension_numbers = '
        "#stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1]>, "
        "slice_sizes = array<i64: 4, 3>}> : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<4x3xf32>",
        "4x3",
        (2, 3),
    ),
    "gathered at divided indices": (
        "%i = stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xi32>\n"
        '  %y = "stablehlo.gather"(%w, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 8>}> : "
        "(tensor<6x8xf32>, tensor<4x6xi32>) -> tensor<4x8x6xf32>",
        "4x8x6",
        (2, 8, 3),
    ),
    "reversed": ("%y = stablehlo.reverse %x, dims = [0] : tensor<4x6xf32>", "4x6", (2, 3)),
    "sorted": (
        '%y = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        "    %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "    stablehlo.return %less : tensor<i1>\n  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>",
        "4x6",
        (2, 6),
    ),
    "convolved": (
        "%k = stablehlo.constant dense<1.0> : tensor<6x3xf32>\n"
        "  %y = stablehlo.convolution(%x, %k) dim_numbers = [b, f]x[i, o]->[b, f], window = {} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        ": (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>",
        "4x3",
        (2, 3),
    ),
    "in a layout": (
        "%y = stablehlo.custom_call @LayoutConstraint(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>",
        "4x6",
        (2, 3),
    ),
    "regrouped": ("%y = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>", "24", (24,)),
    "product": (
        "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : "
        "(tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>",
        "4x8",
        (2, 8),
    ),
    # The devices that hold its columns are those that hold its rows, so only the rows can be divided.
    "square": (
        "%y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : "
        "(tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>",
        "4x4",
        (2, 4),
    ),
    "constrained": (
        '%y = sdy.sharding_constraint %w <@mesh, [{}, {"y", "x"}]> : tensor<6x8xf32>',
        "6x8",
        (6, 2),
    ),
    # Dimensions that a constraint leaves open are divided as before, the others are not.
    "undecided": (
        "%y = sdy.sharding_constraint %x <@mesh, [{?}, {}]> : tensor<4x6xf32>",
        "4x6",
        (2, 6),
    ),
    "divided further": (
        '%y = sdy.sharding_constraint %x <@mesh, [{?}, {"y", ?}]> : tensor<4x6xf32>',
        "4x6",
        (2, 3),
    ),
    # The devices that the constraint names for one dimension cannot divide the other.
    "divided otherwise": (
        '%y = sdy.sharding_constraint %x <@mesh, [{?}, {"x", ?}]> : tensor<4x6xf32>',
        "4x6",
        (4, 3),
    ),
    "replicated": (
        '%y = sdy.sharding_constraint %x <@mesh, [{?}, {?}], replicated={"x"}> : tensor<4x6xf32>',
        "4x6",
        (4, 3),
    ),
    "constant": (
        """%c = stablehlo.constant dense<0.0> : tensor<4x6xf32>
      %y = sdy.sharding_constraint %c <@mesh, [{"x"}, {}]> : tensor<4x6xf32>""",
        "4x6",
        (2, 6),
    ),
    "in a group": (
        """%y = stablehlo.constant dense<0.0> : tensor<4x6xf32>
      sdy.sharding_group %y group_id=3 : tensor<4x6xf32>
      sdy.sharding_group %x group_id=3 : tensor<4x6xf32>""",
        "4x6",
        (2, 3),
    ),
    "in another group": (
        """%y = stablehlo.constant dense<0.0> : tensor<4x6xf32>
      sdy.sharding_group %x group_id=3 : tensor<4x6xf32>
      sdy.sharding_group %y group_id=4 : tensor<4x6xf32>""",
        "4x6",
        (4, 6),
    ),
    "in a loop": (
        """%last = stablehlo.constant dense<false> : tensor<i1>
      %go, %y = stablehlo.while(%i = %last, %v = %w) : tensor<i1>, tensor<6x8xf32>
        cond { stablehlo.return %i : tensor<i1> }
        do {
          %held = sdy.sharding_constraint %v <@mesh, [{"x"}, {}]> : tensor<6x8xf32>
          stablehlo.return %i, %held : tensor<i1>, tensor<6x8xf32>
        }""",
        "6x8",
        (3, 8),
    ),
    "unrelated": ("%y = stablehlo.constant dense<0.0> : tensor<4x6xf32>", "4x6", (4, 6)),
}


@pytest.mark.parametrize("name", CASES)
def test_result(name: str) -> None:
    body, shape, expected = CASES[name]
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%x: tensor<4x6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}},
                    %w: tensor<6x8xf32>) -> tensor<{shape}xf32> {{
      {body}
      return %y : tensor<{shape}xf32>
    }}"""
    divided = partition(inline(parse(text)), 1, 4)
    assert divided.results[0].part.shape == expected


def test_a_result_that_is_left_open() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
        -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}]>}) {
      return %x : tensor<4x6xf32>
    }"""
    assert partition(inline(parse(text)), 1, 4).results[0].part.shape == (4, 3)
