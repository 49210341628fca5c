"""Which elements of the values of a program for several sizes are needed."""

from __future__ import annotations

import pytest

import trivium
from trivium.compiler.ends import ends_of, extent_attribute, needed
from trivium.ir.attributes import DenseArray
from trivium.ir.core import BlockArgument
from trivium.ir.types import I64

EXTENTS = "%n: tensor<i64> {trivium.extent = array<i64: 2, 8>}, %m: tensor<i64> {trivium.extent = array<i64: 1, 4>}"
MASK = """
    %i = stablehlo.iota dim = 0 : tensor<8xi32>
    %c = stablehlo.convert %n : (tensor<i64>) -> tensor<i32>
    %l = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<8xi32>
    %mask = stablehlo.compare LT, %i, %l : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>"""


def found(
    body: str, arguments: str, result: str, stated: str = "-1, -1"
) -> dict[str, list[dict[tuple[int, int], str]]]:
    """The ends of the values of a program that have names, by names: for each dimension, those of its digits."""
    text = f"""func.func @main({EXTENTS}, {arguments}) -> (tensor<{result}> {{trivium.ends = array<i64: {stated}>}}) {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>{body}
      return %r : tensor<{result}> }}"""
    ends = needed(trivium.parse(text).main)

    def named(end: BlockArgument | int) -> str:
        return end.name_hint if isinstance(end, BlockArgument) else str(end)

    return {
        value.name_hint: [{(digit.step, digit.count): named(end) for digit, end in each.items()} for each in of_value]
        for value, of_value in ends.items()
        if value.name_hint
    }


def test_attributes_say_where_arguments_and_results_end() -> None:
    assert extent_attribute((3, 5, 2)) == {"trivium.extent": DenseArray(I64, (2, 5))}
    assert ends_of([None, 3]) == {"trivium.ends": DenseArray(I64, (-1, 3))}
    assert ends_of([None, None]) == {}


def test_a_program_of_one_size_needs_everything() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32> {trivium.ends = array<i64: 0>}) {
      return %x : tensor<4xf32> }"""
    assert needed(trivium.parse(text).main) == {}


def test_results_end_where_their_attributes_say() -> None:
    body = """
      %e = stablehlo.exponential %x : tensor<8x4xf32>
      %b = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
      %s = stablehlo.add %e, %b : tensor<8x4xf32>
      %r = stablehlo.transpose %s, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>"""
    ends = found(body, "%x: tensor<8x4xf32>, %y: tensor<4xf32>", "4x8xf32", "1, 0")
    both = [{(1, 8): "n"}, {(1, 4): "m"}]
    assert ends == {"r": both[::-1], "s": both, "e": both, "b": both, "x": both, "y": [{(1, 4): "m"}]}


def test_rows_that_are_flattened_end_twice() -> None:
    body = """
      %f = stablehlo.reshape %x : (tensor<4x8x6xf32>) -> tensor<32x6xf32>
      %p = stablehlo.dot_general %f, %w, contracting_dims = [1] x [0]
        : (tensor<32x6xf32>, tensor<6x5xf32>) -> tensor<32x5xf32>
      %t = stablehlo.reshape %p : (tensor<32x5xf32>) -> tensor<4x8x5xf32>
      %r = stablehlo.reshape %t : (tensor<4x8x5xf32>) -> tensor<4x8x5x1xf32>"""
    ends = found(body, "%x: tensor<4x8x6xf32>, %w: tensor<6x5xf32>", "4x8x5x1xf32", "1, 0, -1, -1")
    assert ends["p"] == [{(8, 4): "m", (1, 8): "n"}, {}]
    assert ends["f"] == ends["p"]
    assert ends["x"] == [{(1, 4): "m"}, {(1, 8): "n"}, {}]
    assert "w" not in ends


@pytest.mark.parametrize(
    "wide",
    [
        "%wide = stablehlo.broadcast_in_dim %mask, dims = [1] : (tensor<8xi1>) -> tensor<4x8xi1>",
        """%tall = stablehlo.broadcast_in_dim %mask, dims = [0] : (tensor<8xi1>) -> tensor<8x9xi1>
      %part = stablehlo.slice %tall [0:8, 2:6] : (tensor<8x9xi1>) -> tensor<8x4xi1>
      %wide = stablehlo.transpose %part, dims = [1, 0] : (tensor<8x4xi1>) -> tensor<4x8xi1>""",
    ],
)
def test_what_a_mask_leaves_out_of_a_sum_is_not_needed(wide: str) -> None:
    body = f"""{MASK}
      {wide}
      %none = stablehlo.constant dense<0.0> : tensor<4x8xf32>
      %e = stablehlo.exponential %x : tensor<4x8xf32>
      %s = stablehlo.select %wide, %e, %none : tensor<4x8xi1>, tensor<4x8xf32>
      %r = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>"""
    ends = found(body, "%x: tensor<4x8xf32>", "4xf32", "-1")
    assert {name: ends[name] for name in ("e", "x")} == {"e": [{}, {(1, 8): "n"}], "x": [{}, {(1, 8): "n"}]}
    assert "s" not in ends


def test_a_mask_of_the_rows_of_a_batch_is_known_by_its_remainders() -> None:
    body = """
      %i = stablehlo.iota dim = 0 : tensor<32xi32>
      %eight = stablehlo.constant dense<8> : tensor<32xi32>
      %place = stablehlo.remainder %i, %eight : tensor<32xi32>
      %row = stablehlo.divide %i, %eight : tensor<32xi32>
      %cn = stablehlo.convert %n : (tensor<i64>) -> tensor<i32>
      %ln = stablehlo.broadcast_in_dim %cn, dims = [] : (tensor<i32>) -> tensor<32xi32>
      %cm = stablehlo.convert %m : (tensor<i64>) -> tensor<i32>
      %lm = stablehlo.broadcast_in_dim %cm, dims = [] : (tensor<i32>) -> tensor<32xi32>
      %a = stablehlo.compare LT, %place, %ln : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
      %b = stablehlo.compare LT, %row, %lm : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
      %both = stablehlo.and %a, %b : tensor<32xi1>
      %none = stablehlo.constant dense<0.0> : tensor<32xf32>
      %r = stablehlo.select %both, %x, %none : tensor<32xi1>, tensor<32xf32>"""
    assert found(body, "%x: tensor<32xf32>", "32xf32", "-1") == {"x": [{(1, 8): "n", (8, 4): "m"}]}


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        (
            "%mask = stablehlo.compare LT, %l, %i : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>",
            "the other way round",
        ),
        ("%mask = stablehlo.compare LE, %i, %l : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>", "one more"),
    ],
)
def test_other_masks_are_not_ends(mask: str, why: str) -> None:
    body = f"""{MASK.rpartition("%mask")[0]}{mask}
      %none = stablehlo.constant dense<0.0> : tensor<8xf32>
      %r = stablehlo.select %mask, %x, %none : tensor<8xi1>, tensor<8xf32>"""
    assert found(body, "%x: tensor<8xf32>", "8xf32", "-1") == {}, why


def test_places_that_wrap_around_are_not_ends() -> None:
    body = """
      %i = stablehlo.iota dim = 0 : tensor<300xi8>
      %c = stablehlo.convert %n : (tensor<i64>) -> tensor<i8>
      %l = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i8>) -> tensor<300xi8>
      %mask = stablehlo.compare LT, %i, %l : (tensor<300xi8>, tensor<300xi8>) -> tensor<300xi1>
      %none = stablehlo.constant dense<0.0> : tensor<300xf32>
      %r = stablehlo.select %mask, %x, %none : tensor<300xi1>, tensor<300xf32>"""
    assert found(body, "%x: tensor<300xf32>", "300xf32", "-1") == {}


def test_all_uses_of_a_value_count() -> None:
    body = """
      %e = stablehlo.exponential %x : tensor<8xf32>
      %p = stablehlo.negate %e : tensor<8xf32>
      %q = stablehlo.slice %e [0:{limit}] : (tensor<8xf32>) -> tensor<{limit}xf32>
      %sum = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<{limit}xf32>, tensor<f32>) -> tensor<f32>
      %wide = stablehlo.broadcast_in_dim %sum, dims = [] : (tensor<f32>) -> tensor<8xf32>
      %r = stablehlo.add %p, %wide : tensor<8xf32>"""
    ends = found(body.replace("{limit}", "2"), "%x: tensor<8xf32>", "8xf32", "0")
    assert ends["p"] == ends["e"] == [{(1, 8): "n"}], "every size has the two elements of the slice"
    ends = found(body.replace("{limit}", "3"), "%x: tensor<8xf32>", "8xf32", "0")
    assert ends["p"] == [{(1, 8): "n"}]
    assert "e" not in ends


def test_gathers_and_scatters_of_some_rows() -> None:
    body = f"""{MASK}
      %column = stablehlo.reshape %mask : (tensor<8xi1>) -> tensor<8x1xi1>
      %minus = stablehlo.constant dense<-1> : tensor<8x1xi32>
      %places = stablehlo.select %column, %rows, %minus : tensor<8x1xi1>, tensor<8x1xi32>
      %taken = "stablehlo.gather"(%x, %rows) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 5>}}>
        {{trivium.read = array<i64: 0, 1, 4, 1>}} : (tensor<4x5xf32>, tensor<8x1xi32>) -> tensor<8x5xf32>
      %empty = stablehlo.constant dense<0.0> : tensor<6x5xf32>
      %r = "stablehlo.scatter"(%empty, %places, %taken) ({{
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %s = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
        : (tensor<6x5xf32>, tensor<8x1xi32>, tensor<8x5xf32>) -> tensor<6x5xf32>"""
    ends = found(body, "%x: tensor<4x5xf32>, %rows: tensor<8x1xi32>", "6x5xf32")
    assert ends["taken"] == [{(1, 8): "n"}, {}]
    assert ends["rows"] == [{(1, 8): "n"}, {}]
    assert ends["x"] == [{(1, 4): "m"}, {}]


def test_an_op_that_is_not_known_needs_everything() -> None:
    body = """
      %e = stablehlo.exponential %x : tensor<8xf32>
      %s = "stablehlo.sort"(%e) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %t = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %t : tensor<i1>
        }) {dimension = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
      %r = stablehlo.negate %s : tensor<8xf32>"""
    assert found(body, "%x: tensor<8xf32>", "8xf32", "0") == {"s": [{(1, 8): "n"}], "r": [{(1, 8): "n"}]}


LOOP = """
      %start = stablehlo.constant dense<0> : tensor<i32>
      %r, %count = stablehlo.while(%y = %x, %i = %start) : tensor<8x5xf32>, tensor<i32>
      cond {
        %three = stablehlo.constant dense<3> : tensor<i32>
        %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        %step = stablehlo.STEP
        %sum = stablehlo.add %step, %w : tensor<8x5xf32>
        stablehlo.return %sum, %next : tensor<8x5xf32>, tensor<i32>
      }"""


def test_what_a_loop_carries_ends_if_its_turns_do() -> None:
    body = LOOP.replace("STEP", "exponential %y : tensor<8x5xf32>")
    ends = found(body, "%x: tensor<8x5xf32>, %w: tensor<8x5xf32>", "8x5xf32", "0, -1")
    assert ends == {key: [{(1, 8): "n"}, {}] for key in ["r", "x", "w", "y", "step", "sum"]}


def test_what_the_turns_of_a_loop_mix_is_needed_as_a_whole() -> None:
    body = LOOP.replace("STEP", "reverse %y, dims = [0] : tensor<8x5xf32>")
    assert "x" not in found(body, "%x: tensor<8x5xf32>, %w: tensor<8x5xf32>", "8x5xf32", "0, -1")
    ends = found(body, "%x: tensor<8x5xf32>, %w: tensor<8x5xf32>", "8x5xf32", "-1, 1")
    assert ends["x"] == ends["w"] == [{}, {(1, 5): "m"}]


def test_both_branches_of_a_condition_are_needed_as_far_as_its_results() -> None:
    body = """
      %r = "stablehlo.if"(%p) ({
        %a = stablehlo.exponential %x : tensor<8x5xf32>
        stablehlo.return %a : tensor<8x5xf32>
      }, {
        stablehlo.return %x : tensor<8x5xf32>
      }) : (tensor<i1>) -> tensor<8x5xf32>"""
    ends = found(body, "%x: tensor<8x5xf32>, %p: tensor<i1>", "8x5xf32", "0, -1")
    assert ends == {key: [{(1, 8): "n"}, {}] for key in ["r", "x", "a"]}


def test_slices_that_are_written_end_along_the_other_dimensions() -> None:
    body = """
      %zeros = stablehlo.constant dense<0> : tensor<i32>
      %u = stablehlo.exponential %w : tensor<2x5xf32>
      %r = stablehlo.dynamic_update_slice %x, %u, %at, %zeros
        : (tensor<8x5xf32>, tensor<2x5xf32>, tensor<i32>, tensor<i32>) -> tensor<8x5xf32>"""
    ends = found(body, "%x: tensor<8x5xf32>, %w: tensor<2x5xf32>, %at: tensor<i32>", "8x5xf32", "0, 1")
    assert ends["x"] == [{(1, 8): "n"}, {(1, 5): "m"}]
    assert ends["w"] == ends["u"] == [{}, {(1, 5): "m"}]


def test_what_has_effects_needs_its_operands_even_if_nothing_uses_its_results() -> None:
    body = """
      %e = stablehlo.exponential %x : tensor<8xf32>
      %u = stablehlo.CALL : tensor<8xf32>
      %r = stablehlo.negate %e : tensor<8xf32>"""
    call = body.replace("stablehlo.CALL", "stablehlo.custom_call @shown(%e) {has_side_effect = true}").replace(
        ": tensor<8xf32>\n      %r", ": (tensor<8xf32>) -> tensor<8xf32>\n      %r"
    )
    assert "e" not in found(call, "%x: tensor<8xf32>", "8xf32", "0")
    assert found(body.replace("CALL", "tanh %e"), "%x: tensor<8xf32>", "8xf32", "0")["e"] == [{(1, 8): "n"}]
