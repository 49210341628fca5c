"""Which parts of its operands an op needs: each case is a program whose result is divided along rows of the mesh, and
that devices compute in parts, or on wholes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.test_partition import run
from trivium.compiler.passes import own_parts
from trivium.compiler.passes.partition import Partitioned, partition
from trivium.compiler.pipeline import inline
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

GATHER = (
    '"stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], '
    "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}>"
)
CONVOLUTION = (
    "stablehlo.convolution(%c, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
    "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
)
SORT = """"stablehlo.sort"(%x) <{{dimension = {} : i64, is_stable = true}}> ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %r : tensor<i1>
  }})"""
ARGUMENTS = {
    "x": (4, 6), "w": (6, 8), "i": (4, 1), "c": (4, 5, 3), "k": (2, 3, 2), "s": (), "v": (4,), "b": (4, 3, 6),
    "o": (3, 8),
}  # fmt: skip
KINDS = {
    name: f"tensor<{'x'.join([*map(str, shape), 'i32' if name == 'i' else 'f32'])}>"
    for name, shape in ARGUMENTS.items()
}
X, W, S, V, B, UNEVEN = (KINDS[name] for name in "xwsvbo")

PARTS = {
    "negate": (f"stablehlo.negate %x : {X}", "4x6"),
    "clamp": (f"stablehlo.clamp %s, %x, %s : ({S}, {X}, {S}) -> {X}", "4x6"),
    "broadcast": (f"stablehlo.broadcast_in_dim %v, dims = [0] : ({V}) -> tensor<4x6xf32>", "4x6"),
    "transpose": (f"stablehlo.transpose %b, dims = [0, 2, 1] : ({B}) -> tensor<4x6x3xf32>", "4x6x3"),
    "reshape joins": (f"stablehlo.reshape %b : ({B}) -> tensor<12x6xf32>", "12x6"),
    "reshape splits": (f"stablehlo.reshape %x : ({X}) -> tensor<4x2x3xf32>", "4x2x3"),
    "reshape adds": (f"stablehlo.reshape %x : ({X}) -> tensor<4x1x6xf32>", "4x1x6"),
    "reduce": (
        f"stablehlo.reduce(%b init: %s) applies stablehlo.add across dimensions = [1] : ({B}, {S}) -> {X}", "4x6",
    ),
    "reduce before": (
        f"stablehlo.reduce(%x init: %s) applies stablehlo.add across dimensions = [0] : ({X}, {S}) -> tensor<6xf32>",
        "6",
    ),
    "reshape across both": (f"stablehlo.reshape %w : ({W}) -> tensor<4x12xf32>", "4x12"),
    "product": (f"stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({X}, {W}) -> tensor<4x8xf32>", "4x8"),
    "batched product": (
        f"stablehlo.dot_general %x, %b, batching_dims = [0] x [0], contracting_dims = [1] x [2] "
        f": ({X}, {B}) -> tensor<4x3xf32>", "4x3",
    ),
    "convolution": (f"{CONVOLUTION} : ({KINDS['c']}, {KINDS['k']}) -> tensor<4x4x2xf32>", "4x4x2"),
    "concatenate": (f"stablehlo.concatenate %x, %x, dim = 1 : ({X}, {X}) -> tensor<4x12xf32>", "4x12"),
    "slice": (f"stablehlo.slice %x [0:4, 1:5:2] : ({X}) -> tensor<4x2xf32>", "4x2"),
    "dynamic slice": (
        f"stablehlo.dynamic_slice %x, %zero, %two, sizes = [4, 3] : ({X}, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>",
        "4x3",
    ),
    "dynamic update": (
        f"stablehlo.dynamic_update_slice %b, %one, %zero, %two, %zero : ({B}, tensor<4x1x6xf32>, tensor<i32>, "
        f"tensor<i32>, tensor<i32>) -> {B}", "4x3x6",
    ),
    "pad": (
        f"stablehlo.pad %x, %s, low = [0, 1], high = [0, 2], interior = [0, 1] : ({X}, {S}) -> tensor<4x14xf32>",
        "4x14",
    ),
    "reverse": (f"stablehlo.reverse %x, dims = [1] : {X}", "4x6"),
    "gather": (f"{GATHER} : ({X}, {KINDS['i']}) -> {X}", "4x6"),
    "sort": (f"{SORT.format(1)} : ({X}) -> {X}", "4x6"),
    "iota": ("stablehlo.iota dim = 0 : tensor<4x6xf32>", "4x6"),
    "iota of bytes": ("stablehlo.iota dim = 0 : tensor<516x2xi8>", "516x2"),
    "iota of bf16": ("stablehlo.iota dim = 0 : tensor<1028x2xbf16>", "1028x2"),
    "iota along others": ("stablehlo.iota dim = 1 : tensor<4x6xf32>", "4x6"),
    "constant": ("stablehlo.constant dense<2.5> : tensor<4x6xf32>", "4x6"),
    "hint": (f"sdy.sharding_constraint %x <@mesh, [{{\"x\"}}, {{}}]> : {X}", "4x6"),
}  # fmt: skip
"""What follows from parts."""

WHOLES = {
    "reshape across": (f"stablehlo.reshape %o : ({UNEVEN}) -> tensor<4x6xf32>", "4x6"),
    "concatenate along": (f"stablehlo.concatenate %x, %x, dim = 0 : ({X}, {X}) -> tensor<8x6xf32>", "8x6"),
    "slice along": (f"stablehlo.slice %w [0:4, 0:8] : ({W}) -> tensor<4x8xf32>", "4x8"),
    "pad along": (
        f"stablehlo.pad %x, %s, low = [1, 0], high = [1, 0], interior = [0, 0] : ({X}, {S}) -> tensor<6x6xf32>", "6x6",
    ),
    "shifted by padding": (
        f"stablehlo.pad %x, %s, low = [1, 0], high = [-1, 0], interior = [0, 0] : ({X}, {S}) -> {X}", "4x6",
    ),
    "reverse along": (f"stablehlo.reverse %x, dims = [0] : {X}", "4x6"),
    "sort along": (f"{SORT.format(0)} : ({X}) -> {X}", "4x6"),
    "listed constant": ("stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>", "2x2"),
}  # fmt: skip
"""What takes elements of other parts."""


def divided(body: str, shape: str, element: str) -> tuple[Partitioned, list[np.ndarray], list[np.ndarray]]:
    """Returns the program of each device, arguments, and the results for wholes. Rows of results are divided."""
    rank = shape.count("x") + 1
    rows = '#sdy.sharding<@mesh, [{"x"}' + ", {}" * (rank - 1) + "]>"
    signature = ", ".join(f"%{name}: {kind}" for name, kind in KINDS.items())
    module = inline(
        parse(f"""sdy.mesh @mesh = <["x"=2]>
    func.func @main({signature}, %one: tensor<4x1x6xf32>)
        -> (tensor<{shape}x{element}> {{sdy.sharding = {rows}}}) {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %two = stablehlo.constant dense<2> : tensor<i32>
      %y = {body}
      return %y : tensor<{shape}x{element}>
    }}""")
    )
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in (*ARGUMENTS.values(), (4, 1, 6))]
    arrays[2] = np.array([[3], [0], [9], [1]], np.int32)
    wanted = list(evaluate(module, *arrays))
    found = partition(module, 1, 2)
    found.module.verify()
    return found, arrays, wanted


def check(found: Partitioned, arrays: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    if found.is_shared:
        np.testing.assert_allclose(run(found, *arrays)[0][0], wanted[0], rtol=1e-6)
        return
    np.testing.assert_allclose(np.concatenate([one for (one,) in run(found, *arrays)]), wanted[0], rtol=1e-6)


def element_of(body: str) -> str:
    return body.rpartition("x")[2].rstrip(">")


@pytest.mark.parametrize("name", PARTS)
def test_ops_in_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_parts, "MOST_REPEATED", np.inf)
    body, shape = PARTS[name]
    found, arrays, wanted = divided(body, shape, element_of(body))
    assert not found.is_shared
    assert not found.exchanges
    assert not found.results[0].is_whole
    check(found, arrays, wanted)


@pytest.mark.parametrize("name", WHOLES)
def test_ops_on_wholes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_parts, "MOST_REPEATED", np.inf)
    found, arrays, wanted = divided(*WHOLES[name], "f32")
    assert found.is_shared
    assert found.results[0].is_whole
    check(found, arrays, wanted)
