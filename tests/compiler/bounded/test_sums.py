"""Ops that combine elements, with open sizes: the space does not contribute."""

import numpy as np
import pytest

import trivium
from tests.compiler.bounded.programs import combinations, require_text
from trivium.compiler.bounded import Unbounded, bounded
from trivium.compiler.bounded.sums import neutral
from trivium.ir.ops import Reduce

N = combinations(n=(1, 2, 5))
NM = combinations(n=(2, 3), m=(3, 4, 5))


def reduced(op: str, kind: str, init: str, dimensions: str = "[0]") -> str:
    return f"""func.func @main(%x: tensor<?x3x{kind}>) -> tensor<3x{kind}> {{
    %i = stablehlo.constant dense<{init}> : tensor<{kind}>
    %r = stablehlo.reduce(%x init: %i) applies stablehlo.{op} across dimensions = {dimensions} :
      (tensor<?x3x{kind}>, tensor<{kind}>) -> tensor<3x{kind}>
    return %r : tensor<3x{kind}> }}"""


@pytest.mark.parametrize(
    ("op", "kind", "init"),
    [("add", "f32", "3.0"), ("multiply", "f32", "2.0"), ("maximum", "f32", "-1.0"), ("minimum", "f32", "0.5"),
     ("maximum", "bf16", "0.0"), ("add", "i32", "0"), ("multiply", "i8", "1"), ("maximum", "i16", "0"),
     ("minimum", "ui8", "200"), ("and", "i32", "-1"), ("or", "i1", "false"), ("xor", "ui16", "5"),
     ("and", "i1", "true"), ("maximum", "i1", "false"), ("minimum", "i1", "true")],
)  # fmt: skip
def test_reductions(op: str, kind: str, init: str) -> None:
    require_text(reduced(op, kind, init), ["n 3"], N, compiled=True)


@pytest.mark.parametrize("kind", ["f8E4M3FN", "f8E5M2", "i4", "f16", "complex<f32>"])
@pytest.mark.parametrize("op", ["add", "maximum", "minimum", "multiply"])
def test_what_does_not_change_others(op: str, kind: str) -> None:
    init = "(0.0,0.0)" if "complex" in kind else "0" if kind == "i4" else "0.0"
    main = trivium.parse(reduced(op, kind, init)).main
    (fold,) = (each for each in main.walk() if isinstance(each, Reduce))
    found = neutral(fold.body, 0, main.function_type.inputs[0].element_type)
    if "complex" in kind and op in ("maximum", "minimum"):
        assert found is None
        return
    numbers = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}[op]
    wide = np.complex64 if "complex" in kind else np.float32
    for x in (-2, -1, 0, 1, 3):
        assert numbers(found.astype(wide), wide(x)) == wide(x)


def test_functions_without_a_known_neutral_element_are_refused() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %a = stablehlo.constant dense<3.0> : tensor<f32>
    %r:2 = stablehlo.reduce(%x init: %a), (%x init: %a) across dimensions = [0] :
      (tensor<?x3xf32>, tensor<?x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
      reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<f32>, %t: tensor<f32>) {
        %v = stablehlo.add %p, %q : tensor<f32>
        %w = stablehlo.maximum %s, %t : tensor<f32>
        stablehlo.return %v, %w : tensor<f32>, tensor<f32>
      }
    return %r#0, %r#1 : tensor<3xf32>, tensor<3xf32> }"""
    with pytest.raises(Unbounded, match="reduce: a reduction by a function of which no neutral element is known"):
        require_text(text, ["n 3"], N)


def test_places_of_maxima() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
    %a = stablehlo.constant dense<0xFF800000> : tensor<f32> %b = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.reduce(%x init: %a), (%y init: %b) across dimensions = [0] :
      (tensor<?x3xf32>, tensor<?x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
      reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<i32>, %t: tensor<i32>) {
        %g = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %v = stablehlo.select %g, %p, %q : tensor<i1>, tensor<f32>
        %w = stablehlo.select %g, %s, %t : tensor<i1>, tensor<i32>
        stablehlo.return %v, %w : tensor<f32>, tensor<i32>
      }
    return %r#0, %r#1 : tensor<3xf32>, tensor<3xi32> }"""
    require_text(text, ["n 3", "n 3"], N, compiled=True)


def test_products_along_open_sizes() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
    %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] :
      (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
    %s = stablehlo.dot_general %x, %y, batching_dims = [1] x [1], contracting_dims = [0] x [0] :
      (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?xf32>
    return %r, %s : tensor<?x?xf32>, tensor<?xf32> }"""
    text = text.replace("-> (tensor<?x?xf32>, tensor<?x?xf32>)", "-> (tensor<?x?xf32>, tensor<?xf32>)", 1)
    require_text(text, ["n m", "n m"], NM, compiled=True)


@pytest.mark.parametrize("lhs", ["3 3 n 4", "n 3 6 4", "2 3 n 4"])
@pytest.mark.parametrize(
    "window", ["stride = [2, 1], pad = [[1, 2], [0, 0]]", "lhs_dilate = [2, 1], pad = [[0, 1], [1, 1]]"]
)
def test_convolutions(lhs: str, window: str) -> None:
    kind = "x".join(e if e.isdigit() else "?" for e in lhs.split()) + "xf32"
    result = "tensor<?x2x?x?xf32>"
    text = f"""func.func @main(%x: tensor<{kind}>, %w: tensor<2x3x3x2xf32>) -> {result} {{
    %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {{{window}}}
      {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} :
      (tensor<{kind}>, tensor<2x3x3x2xf32>) -> {result}
    return %r : {result} }}"""
    require_text(text, [lhs, "2 3 3 2"], combinations(n=(4, 5, 7)), compiled=True)


@pytest.mark.parametrize("groups", [1, 3])
def test_gradients_of_kernels_along_a_batch(groups: int) -> None:
    kinds, result = ("tensor<3x?x6xf32>", "tensor<6x?x4xf32>"), f"tensor<{3 // groups}x6x3xf32>"
    text = f"""func.func @main(%x: {kinds[0]}, %y: {kinds[1]}) -> {result} {{
    %r = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {{}}
      {{batch_group_count = {groups} : i64, feature_group_count = 1 : i64}} : ({", ".join(kinds)}) -> {result}
    return %r : {result} }}"""
    require_text(text, ["3 n 6", "6 n 4"], N, compiled=True)


@pytest.mark.parametrize(
    "counts",
    ["batch_group_count = 2 : i64, feature_group_count = 1", "batch_group_count = 1 : i64, feature_group_count = 2"],
)
def test_groups_have_known_sizes(counts: str) -> None:
    kinds = "tensor<?x?x6xf32>", "tensor<4x?x4xf32>"
    text = f"""func.func @main(%x: {kinds[0]}, %y: {kinds[1]}) -> tensor<?x4x3xf32> {{
    %r = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {{}}
      {{{counts} : i64}} : ({", ".join(kinds)}) -> tensor<?x4x3xf32>
    return %r : tensor<?x4x3xf32> }}"""
    shapes = [[(4 * n, 2 * n, 6), (4, n if "feature_group_count = 2" in counts else 2 * n, 4)] for n in (1, 2)]
    with pytest.raises(Unbounded, match="a convolution has groups whose sizes differ between combinations of sizes"):
        bounded(trivium.parse(text), shapes, {})


def windows(init: str) -> str:
    return f"""func.func @main(%x: tensor<?x5xf32>) -> tensor<?x5xf32> {{
    %i = stablehlo.constant dense<{init}> : tensor<f32>
    %r = "stablehlo.reduce_window"(%x, %i) <{{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 2, 1>,
      padding = dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %m = stablehlo.maximum %a, %b : tensor<f32> stablehlo.return %m : tensor<f32>
      }}) : (tensor<?x5xf32>, tensor<f32>) -> tensor<?x5xf32>
    return %r : tensor<?x5xf32> }}"""


def test_windows() -> None:
    require_text(windows("0xFF800000"), ["n 5"], combinations(n=(2, 3, 4, 7)), compiled=True)
    with pytest.raises(Unbounded, match="initial value that is not known to be neutral"):
        require_text(windows("0.0"), ["n 5"], N)
