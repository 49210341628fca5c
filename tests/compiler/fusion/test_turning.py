"""Whether transposes around a convolution are part of its kernel or kernels of their own, and that either computes the
same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.backends.cpu.contraction.tiles import with_tiles
from trivium import compile as compile_program
from trivium.backends.cpu.target import level
from trivium.compiler import pipeline
from trivium.compiler.fusion.turning import turned
from trivium.compiler.lower import lower
from trivium.compiler.program import Launch
from trivium.compiler.target import Target
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, F16, F32, F64, I32, TensorType, Type, tensor

WIDE = level("x86-64-v4")
FIRST = ops.ConvDimensionNumbers(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3))


def network(size: int, inputs: int, outputs: int, taps: int, stride: int = 1, groups: int = 1, **options) -> Module:
    """A convolution with features first, and a bias. `options`: element, constant (weights)."""
    element, constant = options.get("element", F32), options.get("constant", True)
    kind = tensor(outputs, inputs // groups, taps, taps, of=element)
    numbers = np.random.default_rng(0).integers(-3, 4, kind.static_shape).astype(kind.dtype)
    places = -(-size // stride)

    def body(b, x: Value, bias: Value, *weights: Value) -> Value:
        kernel = b.add(ops.Constant(numbers)) if constant else weights[0]
        low, high = (taps - 1) // 2, taps // 2
        y = b.add(
            ops.Convolution(
                x,
                kernel,
                dimension_numbers=FIRST,
                feature_group_count=groups,
                batch_group_count=1,
                window_strides=[stride] * 2,
                padding=[[low, high]] * 2,
            )
        )
        spread = ops.BroadcastInDim(
            bias, broadcast_dimensions=(1,), result=tensor(1, outputs, places, places, of=element)
        )
        return b.add(ops.Add(y, b.add(spread)))

    types = [tensor(1, inputs, size, size, of=element), tensor(outputs, of=element), *([] if constant else [kind])]
    return Module.build(functions=[Function.build("main", types, body)])


def launches(module: Module, target: Target) -> int:
    return sum(isinstance(step, Launch) for step in lower(pipeline.optimize(module, target), target).steps)


@pytest.mark.parametrize(
    ("shape", "separate"),
    [
        pytest.param((56, 64, 64, 3), True, id="windows"),
        pytest.param((7, 512, 512, 3), True, id="few positions leave lanes empty"),
        pytest.param((14, 1024, 2048, 1, 2), True, id="a stride"),
        pytest.param((56, 64, 256, 1), False, id="nothing to pack"),
        pytest.param((14, 64, 5, 3), False, id="few features leave lanes empty"),
        pytest.param((14, 64, 64, 3, 1, 64), False, id="groups"),
        pytest.param((24, 17, 12, 3), False, id="few features, along lines"),
    ],
)
def test_what_is_turned(shape: tuple[int, ...], separate: bool) -> None:
    module = network(*shape)
    assert (launches(module, WIDE) > 1) == separate
    assert launches(module, replace(WIDE, layouts=None)) == 1


@pytest.mark.parametrize("target", [WIDE, with_tiles()], ids=("vectors", "tiles"))
def test_narrow_numbers_in_steps_of_two(target: Target) -> None:
    """Their windows would be packed one by one, and those of pictures are so in any order."""

    def is_turned(*shape: int) -> bool:
        module = pipeline.optimize(network(*shape, element=BF16), target)
        (op,) = (op for op in module.walk() if isinstance(op, ops.Convolution))
        return turned(op, target).image

    assert [is_turned(112, features, 32, 3, 2) for features in (3, 4, 16, 32)] == [False, False, True, True]
    assert not is_turned(224, 3, 64, 7, 2)


@pytest.mark.parametrize("element", [BF16, F16, F32, F64, I32])
def test_only_what_the_template_computes_is_turned(element: Type) -> None:
    assert (launches(network(14, 64, 64, 3, element=element), WIDE) > 1) == (element is not I32)


def test_weights_that_are_not_constant_are_turned_in_each_run() -> None:
    known, given = (network(24, 64, 64, 3, constant=constant) for constant in (True, False))
    assert launches(given, WIDE) == launches(known, WIDE) + 1
    assert launches(given, replace(WIDE, layouts=None)) == 1


CHECKED = (9, 33, 40, 3), (20, 17, 48, 4, 2), (14, 128, 512, 1, 2), (24, 17, 30, 5, 2)


@pytest.mark.parametrize("element", [F32, BF16])
@pytest.mark.parametrize(
    ("shape", "constant"), [*((shape, True) for shape in CHECKED), ((24, 17, 30, 3), False)], ids=str
)
def test_results_are_those_of_the_interpreter(shape: tuple[int, ...], constant: bool, element: Type) -> None:
    """Small whole numbers have exact sums in any order."""
    module, rng = network(*shape, constant=constant, element=element), np.random.default_rng(1)
    assert launches(module, WIDE) > 1 or element is BF16
    kinds = [kind for kind in module.main.function_type.inputs if isinstance(kind, TensorType)]
    arguments = [rng.integers(-3, 4, kind.static_shape).astype(kind.dtype) for kind in kinds]
    (found,) = compile_program(module, threads=1)(*arguments)
    np.testing.assert_array_equal(found, *evaluate(module, *arguments))
