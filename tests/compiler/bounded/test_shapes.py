"""Ops that move elements, with open sizes."""

import pytest

from tests.compiler.bounded.programs import combinations, require_text
from trivium.compiler.bounded import Unbounded

N = combinations(n=(2, 3, 5))
NM = combinations(n=(2, 3), m=(3, 4, 5))


def size_of(value: str, dimension: int, kind: str, name: str) -> str:
    """The text that computes an extent, as a list with one number."""
    return f"""
    %{name}0 = stablehlo.get_dimension_size {value}, dim = {dimension} : ({kind}) -> tensor<i32>
    %{name} = stablehlo.reshape %{name}0 : (tensor<i32>) -> tensor<1xi32>"""


TWO = f"{size_of('%x', 0, 'tensor<?x?xf32>', 'n')}{size_of('%x', 1, 'tensor<?x?xf32>', 'm')}"


def main(body: str, *kinds: str, result: str) -> str:
    names = [f"%{name}: {kind}" for name, kind in zip("xyz", kinds, strict=False)]
    return f"func.func @main({', '.join(names)}) -> {result} {{ {body} }}"


def flattened(then: str, result: str) -> str:
    """A matrix of open sizes, flattened."""
    body = f"""{TWO}
    %all = stablehlo.multiply %n, %m : tensor<1xi32>
    %flat = stablehlo.dynamic_reshape %x, %all : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>
    {then}"""
    return main(body, "tensor<?x?xf32>", result=result)


def test_rows_that_are_flattened() -> None:
    then = "%r = stablehlo.negate %flat : tensor<?xf32> return %r : tensor<?xf32>"
    require_text(flattened(then, "tensor<?xf32>"), ["n m"], NM, compiled=True)


def test_rows_are_flattened_and_come_back() -> None:
    then = """%r = stablehlo.negate %flat : tensor<?xf32>
    %shape = stablehlo.concatenate %n, %m, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %b = stablehlo.dynamic_reshape %r, %shape : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
    return %t : tensor<?x?xf32>"""
    program = require_text(flattened(then, "tensor<?x?xf32>"), ["n m"], NM, compiled=True)
    assert "gather" not in str(program.module)


def test_a_dimension_is_parted() -> None:
    body = f"""{size_of("%x", 0, "tensor<?xf32>", "n")}{size_of("%y", 0, "tensor<?xf32>", "m")}
    %shape = stablehlo.concatenate %m, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r = stablehlo.dynamic_reshape %x, %shape : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
    return %r : tensor<?x?xf32>"""
    three = "%c = stablehlo.constant dense<3> : tensor<1xi32>"
    kinds = "tensor<?xf32>", "tensor<?xf32>"
    require_text(main(three + body, *kinds, result="tensor<?x?xf32>"), ["3*m", "m"], combinations(m=(1, 2, 4)))
    quotient = "%c = stablehlo.divide %n, %m : tensor<1xi32>"
    swapped = body.replace("%shape", f"{quotient} %shape", 1)
    program = require_text(main(swapped, *kinds, result="tensor<?x?xf32>"), ["n*m", "m"], NM, compiled=True)
    assert "gather" in str(program.module)


def test_elements_of_dimensions_with_space_in_other_places() -> None:
    then = """%i = stablehlo.dynamic_iota %all, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %r = stablehlo.add %i, %flat : tensor<?xf32> return %r : tensor<?xf32>"""
    require_text(flattened(then, "tensor<?xf32>"), ["n m"], NM, compiled=True)


@pytest.mark.parametrize("dimension", [0, 1])
def test_concatenations(dimension: int) -> None:
    kinds = "tensor<?x?xf32>", "tensor<?x?xf32>", "tensor<?x?xf32>"
    body = f"""%r = stablehlo.concatenate %x, %y, %z, dim = {dimension} : ({", ".join(kinds)}) -> tensor<?x?xf32>
    return %r : tensor<?x?xf32>"""
    shapes = ["n 2", "m 2", "n 2"] if dimension == 0 else ["3 n", "3 m", "3 n"]
    require_text(main(body, *kinds, result="tensor<?x?xf32>"), shapes, NM, compiled=True)


def test_pieces_that_fill_up_a_size() -> None:
    kinds = "tensor<?xf32>", "tensor<?xf32>"
    body = f"""%r = stablehlo.concatenate %x, %y, dim = 0 : ({", ".join(kinds)}) -> tensor<?xf32>
    return %r : tensor<?xf32>"""
    require_text(main(body, *kinds, result="tensor<?xf32>"), ["n", "6-n"], N, compiled=True)


@pytest.mark.parametrize(
    ("start", "limit", "stride"),
    [("%zero", "%n", "%one"), ("%one", "%n", "%one"), ("%last", "%n", "%one"), ("%zero", "%n", "%two"),
     ("%one", "%last", "%two"), ("%zero", "%two", "%one"), ("%half", "%n", "%two")],
)  # fmt: skip
def test_slices(start: str, limit: str, stride: str) -> None:
    body = f"""{size_of("%x", 0, "tensor<?x3xf32>", "n")}
    %zero = stablehlo.constant dense<0> : tensor<1xi32> %one = stablehlo.constant dense<1> : tensor<1xi32>
    %two = stablehlo.constant dense<2> : tensor<1xi32> %three = stablehlo.constant dense<3> : tensor<1xi32>
    %last = stablehlo.subtract %n, %one : tensor<1xi32> %half = stablehlo.divide %n, %two : tensor<1xi32>
    %a = stablehlo.concatenate {start}, %zero, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %b = stablehlo.concatenate {limit}, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %c = stablehlo.concatenate {stride}, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %r = stablehlo.real_dynamic_slice %x, %a, %b, %c :
      (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x3xf32>
    return %r : tensor<?x3xf32>"""
    sizes = combinations(n=(2, 3, 5, 6))
    require_text(main(body, "tensor<?x3xf32>", result="tensor<?x3xf32>"), ["n 3"], sizes, compiled=True)


@pytest.mark.parametrize("edges", [(0, 2, 0), (1, 0, 0), (1, 2, 1), (-1, 1, 0), (0, -1, 0), (2, -1, 2)])
def test_paddings(edges: tuple[int, int, int]) -> None:
    low, high, between = edges
    body = f"""%v = stablehlo.constant dense<9.0> : tensor<f32>
    %p = stablehlo.pad %x, %v, low = [{low}, 0], high = [{high}, 0], interior = [{between}, 0] :
      (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32>
    %s = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.reduce(%p init: %s) applies stablehlo.add across dimensions = [0] :
      (tensor<?x3xf32>, tensor<f32>) -> tensor<3xf32>
    return %p, %r : tensor<?x3xf32>, tensor<3xf32>"""
    text = main(body, "tensor<?x3xf32>", result="(tensor<?x3xf32>, tensor<3xf32>)")
    require_text(text, ["n 3"], N, compiled=True)


def test_a_dimension_is_reversed() -> None:
    body = "%r = stablehlo.reverse %x, dims = [0, 1] : tensor<?x3xf32> return %r : tensor<?x3xf32>"
    require_text(main(body, "tensor<?x3xf32>", result="tensor<?x3xf32>"), ["n 3"], N, compiled=True)


def test_boxes_at_places_from_data() -> None:
    body = """%z = stablehlo.constant dense<0> : tensor<i32>
    %r = stablehlo.dynamic_slice %x, %y, %z, sizes = [2, 2] :
      (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %u = stablehlo.dynamic_update_slice %x, %r, %y, %z :
      (tensor<?x3xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<?x3xf32>
    return %r, %u : tensor<2x2xf32>, tensor<?x3xf32>"""
    text = main(body, "tensor<?x3xf32>", "tensor<i32>", result="(tensor<2x2xf32>, tensor<?x3xf32>)")
    for seed in range(5):  # 0 to 4, clamped by the elements that exist
        require_text(text, ["n 3", ""], N, seed=seed)
    require_text(text, ["n 3", ""], N, compiled=True)


def test_bits_and_transforms_of_rows() -> None:
    body = """%b = stablehlo.bitcast_convert %x : (tensor<?x4xf32>) -> tensor<?x4xi32>
    %w = stablehlo.bitcast_convert %x : (tensor<?x4xf32>) -> tensor<?x4x2xi16>
    %f = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<?x4xf32>) -> tensor<?x3xcomplex<f32>>
    %r = stablehlo.real %f : (tensor<?x3xcomplex<f32>>) -> tensor<?x3xf32>
    return %b, %w, %r : tensor<?x4xi32>, tensor<?x4x2xi16>, tensor<?x3xf32>"""
    result = "(tensor<?x4xi32>, tensor<?x4x2xi16>, tensor<?x3xf32>)"
    require_text(main(body, "tensor<?x4xf32>", result=result), ["n 4"], N, compiled=True)


def test_what_differs_in_kind_is_refused() -> None:
    body = f"""{size_of("%x", 0, "tensor<?xf32>", "n")}{size_of("%y", 0, "tensor<?xf32>", "m")}
    %r = stablehlo.dynamic_broadcast_in_dim %x, %m, dims = [0] : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
    return %r : tensor<?xf32>"""
    text = main(body, "tensor<?xf32>", "tensor<?xf32>", result="tensor<?xf32>")
    with pytest.raises(Unbounded, match="dynamic_broadcast_in_dim: a dimension is repeated in some combinations"):
        require_text(text, ["n", "m"], [{"n": 1, "m": 3}, {"n": 3, "m": 3}])
    require_text(text, ["n", "m"], [{"n": 1, "m": 3}, {"n": 1, "m": 4}])
