"""Ops whose sizes are operands become ops of known sizes as soon as types and sizes are known, and not before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.lowering.running import program_of
from tests.compiler.passes.patterns.running import names, rewritten
from trivium.compiler.passes.patterns.dynamic import DYNAMIC, moving_box, size_operand
from trivium.compiler.passes.rewriting import rewrite_to_fixpoint
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse
from trivium.ir.types import TensorType, tensor

X = np.arange(12, dtype=np.float32).reshape(3, 4)
LIST = tensor(2, of=np.dtype(np.int64))


def listed(b: Builder, *numbers: int) -> Value:
    return b.add(ops.Constant(np.array(numbers, np.int64)))


def scalar(b: Builder, number: float) -> Value:
    return b.add(ops.Constant(np.float32(number)))


KNOWN: dict[str, tuple[Callable[[Builder, Value], Value], str]] = {
    "iota": (lambda b, x: b.add(ops.DynamicIota(listed(b, 2, 3), 1, result=tensor(2, 3))), "iota"),
    "reshape": (lambda b, x: b.add(ops.DynamicReshape(x, listed(b, 2, 6), result=tensor(2, 6))), "reshape"),
    "broadcast": (
        lambda b, x: b.add(ops.DynamicBroadcastInDim(x, listed(b, 3, 5, 4), (0, 2), result=tensor(3, 5, 4))),
        "broadcast_in_dim",
    ),
    "size": (lambda b, x: b.add(ops.GetDimensionSize(x, 1)), ""),
    "prefix": (
        lambda b, x: b.add(ops.SetDimensionSize(x, b.add(ops.Constant(np.int32(2))), 0, result=tensor(2, 4))), "slice",
    ),
    "pad": (
        lambda b, x: b.add(
            ops.DynamicPad(x, scalar(b, 7), listed(b, 1, -1), listed(b, 0, 2), listed(b, 2, 0), result=tensor(8, 5))
        ), "pad",
    ),
    "slice": (
        lambda b, x: b.add(
            ops.RealDynamicSlice(x, listed(b, 0, 1), listed(b, 3, 4), listed(b, 2, 3), result=tensor(2, 1))
        ), "slice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_sizes_that_are_known(name: str) -> None:
    build, wanted = KNOWN[name]
    assert names(rewritten(program_of([tensor(3, 4)], build), DYNAMIC, [X])) == [wanted] * bool(wanted)


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in ("iota", "size")])
def test_operands_of_unknown_extents_wait(name: str) -> None:
    """Although the type of the result is known."""
    before = program_of([tensor(None, None)], KNOWN[name][0])
    after = rewritten(before, DYNAMIC, [X])
    # The result alone determines a reshape.
    assert names(after) == (["reshape"] if name == "reshape" else names(before))


def test_a_size_that_is_not_known_waits() -> None:
    before = program_of(
        [tensor(3, None)], lambda b, x: (b.add(ops.GetDimensionSize(x, 0)), b.add(ops.GetDimensionSize(x, 1)))
    )
    assert names(rewritten(before, DYNAMIC, [X])) == ["get_dimension_size"]


def slicing(build: Callable[[Builder, Value, Value], Value], kind: TensorType = LIST) -> Module:
    """A slice of x that starts where another argument says."""
    return program_of([tensor(3, 4), kind], build)


def box(b: Builder, x: Value, start: Value, limit: Value, strides: tuple[int, ...] = (1, 1), size=(2, 3)) -> Value:
    return b.add(ops.RealDynamicSlice(x, start, limit, listed(b, *strides), result=tensor(*size)))


@pytest.mark.parametrize("start", [(0, 0), (1, 1), (0, 1)])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_moving_box_of_constant_size(start: tuple[int, int], swapped: bool) -> None:
    def build(b, x, start):
        terms = (listed(b, 2, 3), start) if swapped else (start, listed(b, 2, 3))
        return box(b, x, start, b.add(ops.Add(*terms)))

    after = rewritten(slicing(build), DYNAMIC, [X, np.array(start, np.int64)])
    assert names(after)[-1] == "dynamic_slice"
    assert "real_dynamic_slice" not in names(after)


STAYING: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "strides": lambda b, x, at: box(b, x, at, b.add(ops.Add(at, listed(b, 2, 3))), (1, 2), (2, 2)),
    "another start": lambda b, x, at: box(b, x, at, b.add(ops.Add(listed(b, 2, 3), b.add(ops.Abs(at))))),
    "a difference": lambda b, x, at: box(b, x, at, b.add(ops.Subtract(at, listed(b, -2, -3)))),
    "a limit": lambda b, x, at: box(b, x, at, listed(b, 2, 3)),
    "twice the start": lambda b, x, at: box(b, x, at, b.add(ops.Add(at, at)), size=(1, 1)),
}


@pytest.mark.parametrize("name", STAYING)
def test_boxes_of_unknown_size_stay(name: str) -> None:
    start = np.ones(2, np.int64) if name == "twice the start" else np.zeros(2, np.int64)
    after = rewritten(slicing(STAYING[name]), DYNAMIC, [X, start])
    assert "real_dynamic_slice" in names(after)


def test_what_a_box_knows_of_itself() -> None:
    def build(b, x, start):
        size = listed(b, 2, 3)
        value = box(b, x, start, b.add(ops.Add(size, start)))
        assert size_operand(value.defining_op) is size
        assert moving_box(value.defining_op).tolist() == [2, 3]
        here = listed(b, 0, 1)
        fixed = box(b, x, here, b.add(ops.Add(here, size)))
        assert size_operand(fixed.defining_op) is size
        assert moving_box(fixed.defining_op) is None
        return value

    slicing(build).verify()


def test_a_box_that_does_not_fit_its_operand_is_refused() -> None:
    """The error says what is wrong, and where."""
    module = program_of(
        [tensor(3, 4)],
        lambda b, x: b.add(
            ops.RealDynamicSlice(x, listed(b, 2, 0), listed(b, 4, 4), listed(b, 1, 1), result=tensor(2, 4))
        ),
    )
    with pytest.raises(Error, match=r"the box 2:4:1 is not within an extent of 3"):
        evaluate(module, X)
    with pytest.raises(Error, match=r"slice: \[C3\] limit_indices\[0\] has 4, expected at most 3"):
        rewrite_to_fixpoint(module, DYNAMIC)


def test_attributes_of_windows_come_along() -> None:
    module = parse("""
      func.func @main(%x: tensor<4x5xf32>, %at: tensor<2x1xi32>, %i: tensor<2x3x8xf32>, %k: tensor<4x1x3xf32>)
          -> (tensor<2x2xf32>, tensor<2x4x4xf32>) {
        %sizes = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
        %pad = stablehlo.constant dense<[[2, 0]]> : tensor<1x2xi32>
        %part = stablehlo.slice %i [0:2, 0:2, 0:8] : (tensor<2x3x8xf32>) -> tensor<2x2x8xf32>
        %0 = "stablehlo.dynamic_gather"(%x, %at, %sizes) {dimension_numbers = #stablehlo.gather<
          offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
          indices_are_sorted = true} : (tensor<4x5xf32>, tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x2xf32>
        %1 = "stablehlo.dynamic_conv"(%part, %k, %pad) {window_strides = array<i64: 2>,
          rhs_dilation = array<i64: 1>, window_reversal = array<i1: true>,
          dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 2 : i64,
          batch_group_count = 1 : i64,
          precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}
          : (tensor<2x2x8xf32>, tensor<4x1x3xf32>, tensor<1x2xi32>) -> tensor<2x4x4xf32>
        return %0, %1 : tensor<2x2xf32>, tensor<2x4x4xf32>
      }""")
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, kind.static_shape).astype(np.float32) for kind in module.main.function_type.inputs]
    arrays[1] = np.array([[0], [3]], np.int32)
    after = rewritten(module, DYNAMIC, arrays)
    assert names(after) == ["slice", "gather", "convolution"]
    (gather,) = (op for op in after.walk() if isinstance(op, ops.Gather))
    assert gather.indices_are_sorted
    (convolution,) = (op for op in after.walk() if isinstance(op, ops.Convolution))
    assert convolution.window_reversal == (True,)
    assert [str(each.value) for each in convolution.precision_config] == ["HIGHEST", "DEFAULT"]
