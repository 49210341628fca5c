"""Results in the memory of arguments that the caller gives away. Random programs are run so, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler import targets
from tests.compiler.lowering.running import some
from tests.compiler.targets import TARGET
from trivium.backends.cpu.client import CpuClient
from trivium.compiler.driver import CompileOptions
from trivium.compiler.lower import lower
from trivium.compiler.program import Input, Program
from trivium.compiler.target import Target
from trivium.compiler.verifier import verify
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

GIVING, BATCHING = replace(TARGET, donation=True), replace(targets.BATCHING, donation=True)

F32 = "tensor<256x256xf32>"
ADD = f"%r = stablehlo.add %x, %y : {F32} return %r : {F32}"
TURN = f"%r = stablehlo.transpose %x, dims = [1, 0] : ({F32}) -> {F32} return %r : {F32}"
PRODUCT = f"%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({F32}, {F32}) -> {F32} return %r : {F32}"
WITH_SUM = f"""%0 = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : ({F32}, {F32}) -> {F32}
  %r = stablehlo.add %0, %x : {F32} return %r : {F32}"""
BOTH = f"%r = stablehlo.sine %y : {F32} %s = stablehlo.cosine %x : {F32} return %r, %s : {F32}, {F32}"
SAME = f"return %x : {F32}"
TWICE = f"return %x, %x : {F32}, {F32}"


def function(body: str, first: str, second: str = "") -> str:
    results = ", ".join([F32] * body.rpartition("return")[2].count("%"))
    return f"func.func @main(%x: {F32} {first}, %y: {F32} {second}) -> ({results}) {{ {body} }}"


def planned(program: Program) -> list[int | None]:
    return [value.storage.result for value in program.inputs if isinstance(value.storage, Input)]


DONOR = "{jax.buffer_donor = true}"


def aliasing(result: int) -> str:
    return f"{{tf.aliasing_output = {result} : i32}}"


@pytest.mark.parametrize(
    ("body", "marks", "expected"),
    [
        (ADD, [DONOR], [0, None]),
        (ADD, [aliasing(0)], [0, None]),
        (ADD, ["", DONOR], [None, 0]),
        (ADD, [DONOR, DONOR], [0, None]),  # there is one result
        (ADD, [DONOR, aliasing(0)], [None, 0]),  # a request comes first
        (ADD, ["", ""], [None, None]),
        (TURN, [DONOR], [None, None]),  # an element would be overwritten before it is read
        (TURN, ["", DONOR], [None, 0]),  # it is not read
        (PRODUCT, [DONOR, DONOR], [None, None]),
        (WITH_SUM, [DONOR, DONOR], [0, None]),  # what is added is read element by element
        (BOTH, [DONOR, DONOR], [1, 0]),
        (SAME, [DONOR], [0, None]),
        (TWICE, [DONOR], [1, None]),  # the first result is a copy
    ],
)
def test_results_in_arguments(body: str, marks: list[str], expected: list[int | None]) -> None:
    module = parse(function(body, *marks))
    program = lower(module, GIVING)
    verify(program)
    assert planned(program) == expected
    arguments = [some(256, 256, seed=seed) for seed in range(2)]
    wanted = evaluate(module, *arguments)
    executable = CpuClient().load_program(program, CompileOptions(threads=1))
    results = [np.zeros(array.shape, array.dtype) for array in wanted]
    for argument, number in zip(arguments, expected, strict=True):
        if number is not None:
            results[number] = argument
    executable.execute_at([array.ctypes.data for array in (*arguments, *results)])
    for result, array in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-4, atol=1e-4)


def test_elements_of_another_size_need_another_alignment() -> None:
    text = """func.func @main(%x: tensor<8xf32> {jax.buffer_donor = true}, %y: tensor<4xf32>)
        -> tensor<4xcomplex<f32>> {
      %r = stablehlo.complex %y, %y : tensor<4xcomplex<f32>> return %r : tensor<4xcomplex<f32>> }"""
    assert planned(lower(parse(text), GIVING)) == [None, None]


@pytest.mark.parametrize(("target", "expected"), [(GIVING, [1, None]), (BATCHING, [None, None])])
def test_steps_that_run_at_the_same_time(target: Target, expected: list[int | None]) -> None:
    """The sum is complete before the cosines are written, unless both may run at once."""
    text = f"""func.func @main(%x: {F32} {DONOR}, %y: {F32}) -> (tensor<f32>, {F32}) {{
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : ({F32}, tensor<f32>) -> tensor<f32>
      %s = stablehlo.cosine %y : {F32}
      return %r, %s : tensor<f32>, {F32} }}"""
    assert planned(lower(parse(text), target)) == expected


def test_a_step_of_several_that_run_at_the_same_time_may_work_in_place() -> None:
    module = parse(function(BOTH, DONOR, DONOR))
    assert planned(lower(module, BATCHING)) == [1, 0]
