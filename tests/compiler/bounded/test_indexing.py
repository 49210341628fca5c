"""Gathers and scatters with open sizes: indices end where the elements do."""

import pytest

from tests.compiler.bounded.programs import combinations, require_text
from trivium.compiler.bounded import Unbounded

N = combinations(n=(2, 3, 5))
NM = combinations(n=(2, 4), m=(1, 3))


def gather(operand: str, indices: str, result: str, numbers: str, sizes: str) -> str:
    return f"""func.func @main(%x: {operand}, %i: {indices}) -> {result} {{
    %r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{numbers}>,
      slice_sizes = array<i64: {sizes}>}}> : ({operand}, {indices}) -> {result}
    return %r : {result} }}"""


ROWS = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
BOXES = "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1"


@pytest.mark.parametrize("seed", range(4))
def test_indices_are_clamped_by_the_elements(seed: int) -> None:
    # Indices are from 0 to 4, and there are fewer rows.
    text = gather("tensor<?x3xf32>", "tensor<?xi32>", "tensor<?x3xf32>", ROWS, "1, 3")
    require_text(text, ["n 3", "m"], NM, compiled=not seed, seed=seed)
    text = gather("tensor<?x?xf32>", "tensor<4x2xui8>", "tensor<4x2x1xf32>", BOXES, "2, 1")
    require_text(text, ["n m", "4 2"], NM, compiled=not seed, seed=seed)


def test_indices_of_several_dimensions() -> None:
    numbers = "offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2"
    text = gather("tensor<?x3xf32>", "tensor<?x2xi64>", "tensor<?x2x3xf32>", numbers, "1, 3")
    require_text(text, ["n 3", "m 2"], NM, compiled=True)


def test_batches_of_indices() -> None:
    numbers = """offset_dims = [], collapsed_slice_dims = [1], operand_batching_dims = [0],
      start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"""
    text = gather("tensor<?x4xf32>", "tensor<?x?xi32>", "tensor<?x?xf32>", numbers, "1, 1")
    require_text(text, ["n 4", "n m"], NM, compiled=True)


def scatter(operand: str, indices: str, updates: str, numbers: str) -> str:
    return f"""func.func @main(%x: {operand}, %i: {indices}, %u: {updates}) -> {operand} {{
    %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32>
      }}) : ({operand}, {indices}, {updates}) -> {operand}
    return %r : {operand} }}"""


INTO_ROWS = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
)


@pytest.mark.parametrize("seed", range(4))
def test_updates(seed: int) -> None:
    text = scatter("tensor<?x3xf32>", "tensor<?xi32>", "tensor<?x3xf32>", INTO_ROWS)
    require_text(text, ["n 3", "m", "m 3"], NM, compiled=not seed, seed=seed)
    text = scatter("tensor<4x?xf32>", "tensor<?xui8>", "tensor<?x?xf32>", INTO_ROWS)
    require_text(text, ["4 n", "m", "m n"], NM, compiled=not seed, seed=seed)


def test_windows_of_other_sizes_are_refused() -> None:
    text = scatter("tensor<?x6xf32>", "tensor<2xi32>", "tensor<2x?xf32>", INTO_ROWS)
    with pytest.raises(Unbounded, match="windows of a scatter differ in size"):
        require_text(text, ["3 6", "2", "2 n"], N)
