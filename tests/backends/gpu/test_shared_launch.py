"""Launches that several kernels share: their blocks are given to kernels of all forms, each of which has its own part
of the workspace and all of the block's memory."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest

import trivium
from tests.backends.gpu.simulator import LeaveOut, needs_simulator
from trivium.backends.gpu import plan as plans
from trivium.backends.gpu.assembler import Assembler
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.dialect import Assembling
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate


def independent(count: int) -> Module:
    """Returns a program of that many independent ops of each form: of one element, elementwise, rows, long sums that
    several blocks share, products whose tiles several blocks share; and copies."""
    kinds = {"n": "i64", "x": "40x70xf32", "r": "3x400xf32", "s": "40000xf32", "a": "64x2048xf32", "b": "2048x64xf32"}
    arguments = [f"%{name}{i}: tensor<{kind}>" for i in range(count) for name, kind in kinds.items()]
    lines, results = ["%zero = stablehlo.constant dense<0.0> : tensor<f32>"], []
    for i in range(count):
        lines += [
            f"%n{i}o = stablehlo.add %n{i}, %n{i} : tensor<i64>",
            f"%x{i}o = stablehlo.tanh %x{i} : tensor<40x70xf32>",
            f"%r{i}o = stablehlo.reduce(%r{i} init: %zero) applies stablehlo.add across dimensions = [1] "
            ": (tensor<3x400xf32>, tensor<f32>) -> tensor<3xf32>",
            f"%s{i}o = stablehlo.reduce(%s{i} init: %zero) applies stablehlo.maximum across dimensions = [0] "
            ": (tensor<40000xf32>, tensor<f32>) -> tensor<f32>",
            f"%a{i}o = stablehlo.dot_general %a{i}, %b{i}, contracting_dims = [1] x [0] "
            ": (tensor<64x2048xf32>, tensor<2048x64xf32>) -> tensor<64x64xf32>",
        ]
        results += [(f"%n{i}o", "i64"), (f"%x{i}o", "40x70xf32"), (f"%r{i}o", "3xf32"), (f"%s{i}o", "f32")]
        results += [(f"%a{i}o", "64x64xf32"), (f"%n{i}", "i64"), (f"%x{i}o", "40x70xf32")]
    returned = ", ".join(name for name, _ in results), ", ".join(f"tensor<{kind}>" for _, kind in results)
    head = f"func.func @main({', '.join(arguments)}) -> ({returned[1]})"
    return trivium.parse("\n".join([head + " {", *lines, f"return {returned[0]} : {returned[1]}", "}"]))


def arguments_of(module: Module) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    kinds = [kind.shape for kind in module.main.function_type.inputs]  # type: ignore[union-attr]
    whole = [draw.integers(-9, 9, shape) for shape in kinds]
    return [array.astype(np.float32 if shape else np.int64) for array, shape in zip(whole, kinds, strict=True)]


@pytest.mark.parametrize("count", [1, 3])
def test_kernels_of_all_forms(client: GpuClient, count: int) -> None:
    """All numbers are whole, so sums are exact in any order."""
    module = independent(count)
    arguments = arguments_of(module)
    executable = client.compile(module)
    for result, value in zip(executable.execute(*arguments), evaluate(module, *arguments), strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6)
    steps = plans.from_bytes(executable.artifact.code)[0].steps  # type: ignore[attr-defined]
    assert len(steps) <= 7
    assert sum(isinstance(step, plans.Copy) for step in steps) <= 1


# What a launch needs in order to be right


NUMBERS = re.compile(r"(icmp ult|icmp eq|udiv|urem) i32 (%\S+), (\d+)")
"""Where the blocks of a group end, which member a block belongs to, and which arguments are that member's."""

OFF = {"icmp ult": -1, "icmp eq": 1, "udiv": 1, "urem": -1}
"""Changes by which no block leaves the memory of its arguments."""


def is_right(device: Cuda) -> bool:
    """Whether rows of two sizes, which need shared memory, and elements share a launch, and all are right."""
    lines = [
        "func.func @main(%a: tensor<3x900xf32>, %b: tensor<3x900xf32>, %c: tensor<2x1000xf32>, %d: tensor<40x70xf32>)",
        "-> (tensor<3x900xf32>, tensor<3x900xf32>, tensor<2x1000xf32>, tensor<40x70xf32>) {",
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>",
    ]
    for name, rows, columns in (("a", 3, 900), ("b", 3, 900), ("c", 2, 1000)):
        whole, folded = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
        lines += [
            f"%{name}m = stablehlo.reduce(%{name} init: %low) applies stablehlo.maximum across dimensions = [1] "
            f": ({whole}, tensor<f32>) -> {folded}",
            f"%{name}n = stablehlo.broadcast_in_dim %{name}m, dims = [0] : ({folded}) -> {whole}",
            f"%{name}o = stablehlo.subtract %{name}, %{name}n : {whole}",
        ]
    kinds = "tensor<3x900xf32>, tensor<3x900xf32>, tensor<2x1000xf32>, tensor<40x70xf32>"
    module = trivium.parse("\n".join([*lines, "%do = stablehlo.negate %d : tensor<40x70xf32>",
                                      f"return %ao, %bo, %co, %do : {kinds}", "}"]))  # fmt: skip
    draw = np.random.default_rng(3)
    shapes = [kind.shape for kind in module.main.function_type.inputs]  # type: ignore[union-attr]
    arguments = [draw.standard_normal(shape).astype(np.float32) for shape in shapes]
    executable = GpuClient(device, 0).compile(module)
    (launch,) = plans.from_bytes(executable.artifact.code)[0].steps  # type: ignore[attr-defined]
    assert isinstance(launch, plans.Launch)
    pairs = zip(executable.execute(*arguments), evaluate(module, *arguments), strict=True)
    return all(np.array_equal(result, value) for result, value in pairs)


@needs_simulator
def test_every_number_is_needed(simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    assemble: Callable[[Assembler, str, Assembling], bytes] = Assembler.compile

    def right(wrong: int) -> tuple[bool, int]:
        """Whether the results are right with that number off by one, and how many numbers there are."""
        places = itertools.count()

        def changed(found: re.Match[str]) -> str:
            off = OFF[found[1]] if next(places) == wrong else 0
            return f"{found[1]} i32 {found[2]}, {int(found[3]) + off}"

        def compile_(self: Assembler, text: str, how: Assembling) -> bytes:
            before, name, after = text.partition("_and_others_0")
            function, end, rest = after.partition("\n}")
            return assemble(self, "".join((before, name, NUMBERS.sub(changed, function), end, rest)), how)

        monkeypatch.setattr(Assembler, "compile", compile_)
        return is_right(simulated_device), next(places)

    unchanged, numbers = right(-1)
    assert unchanged
    assert numbers == 7
    assert not any(right(number)[0] for number in range(numbers))


@needs_simulator
def test_every_barrier_is_needed(
    simulated_device: Cuda, monkeypatch: pytest.MonkeyPatch, leave_out_barrier: LeaveOut
) -> None:
    """Those of each member of the launch."""
    monkeypatch.setenv("TRIVIUM_CACHE", "0")

    def right(left_out: int) -> tuple[bool, int]:
        places = leave_out_barrier(left_out)
        return is_right(simulated_device), next(places)

    unchanged, barriers = right(-1)
    assert unchanged
    assert barriers == 2
    assert not any(right(number)[0] for number in range(barriers))
