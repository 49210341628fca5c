"""Matrices out of a stack that products read where they are, and slices that stay copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.compiler.lowering.running import some
from tests.compiler.targets import TARGET
from trivium.backends.cpu.client import CpuClient
from trivium.compiler.driver import CompileOptions
from trivium.compiler.interpreter import interpret
from trivium.compiler.lower import lower
from trivium.compiler.program import Array, Constant, Launch, Program, Section, walk
from trivium.compiler.verifier import verify
from trivium.ir.errors import CompileError
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse

SECTIONS = replace(TARGET, sections=True)

STACK, MATRIX = "tensor<5x6x8xf32>", "tensor<6x8xf32>"


def program_of(text: str) -> Program:
    program = lower(parse(text), SECTIONS)
    verify(program)
    return program


PRODUCT = "tensor<4x6xf32>"


def sliced(kind: str = "i64", body: str = f"return %p : {PRODUCT}", result: str = PRODUCT) -> str:
    taken = "tensor<1x6x8xf32>"
    return f"""func.func @main(%w: {STACK}, %x: tensor<4x8xf32>, %n: tensor<{kind}>) -> {result} {{
      %z = stablehlo.constant dense<0> : tensor<{kind}>
      %s = stablehlo.dynamic_slice %w, %n, %z, %z, sizes = [1, 6, 8]
        : ({STACK}, tensor<{kind}>, tensor<{kind}>, tensor<{kind}>) -> {taken}
      %m = stablehlo.reshape %s : ({taken}) -> {MATRIX}
      %p = stablehlo.dot_general %x, %m, contracting_dims = [1] x [1]
        : (tensor<4x8xf32>, {MATRIX}) -> tensor<4x6xf32>
      {body} }}"""


def check(text: str, *arguments: np.ndarray) -> None:
    """The program computes the same interpreted and compiled, on one thread and on two."""
    module = parse(text)
    expected = evaluate(module, *arguments)
    program = program_of(text)
    compiled = [CpuClient().load_program(program, CompileOptions(threads=n)).execute(*arguments) for n in (1, 2)]
    for results in (interpret(program, *arguments), *compiled):
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["i64", "i32"])
@pytest.mark.parametrize("place", [-9, 0, 3, 4, 70])
def test_a_product_reads_a_matrix_of_a_stack(kind: str, place: int) -> None:
    """The place is clamped, so that the matrix is inside of the stack."""
    text = sliced(kind)
    (section,) = program_of(text).sections()
    assert section.shape == (1, 6, 8)
    assert len(program_of(text).steps) == 1
    check(text, some(5, 6, 8), some(4, 8), np.array(place, {"i64": np.int64, "i32": np.int32}[kind]))


def test_in_a_loop_that_carries_the_place_and_the_stack() -> None:
    """The stack changes in each iteration, after the product has read it."""
    text = f"""func.func @main(%w: {STACK}, %x: tensor<6x8xf32>) -> (tensor<6x8xf32>, {STACK}) {{
      %zero = stablehlo.constant dense<0> : tensor<i64>
      %one = stablehlo.constant dense<1> : tensor<i64>
      %r:3 = stablehlo.while(%i = %zero, %c = %x, %v = %w) : tensor<i64>, tensor<6x8xf32>, {STACK}
       cond {{
        %end = stablehlo.constant dense<5> : tensor<i64>
        %more = stablehlo.compare LT, %i, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      }} do {{
        %s = stablehlo.dynamic_slice %v, %i, %zero, %zero, sizes = [1, 6, 8]
          : ({STACK}, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x6x8xf32>
        %m = stablehlo.reshape %s : (tensor<1x6x8xf32>) -> {MATRIX}
        %p = stablehlo.dot_general %c, %m, contracting_dims = [1] x [1]
          : (tensor<6x8xf32>, {MATRIX}) -> tensor<6x6xf32>
        %q = stablehlo.dot_general %p, %m, contracting_dims = [1] x [0]
          : (tensor<6x6xf32>, {MATRIX}) -> tensor<6x8xf32>
        %t = stablehlo.tanh %q : tensor<6x8xf32>
        %row = stablehlo.reshape %t : (tensor<6x8xf32>) -> tensor<1x6x8xf32>
        %next = stablehlo.add %i, %one : tensor<i64>
        %u = stablehlo.dynamic_update_slice %v, %row, %next, %zero, %zero
          : ({STACK}, tensor<1x6x8xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> {STACK}
        stablehlo.return %next, %t, %u : tensor<i64>, tensor<6x8xf32>, {STACK}
      }}
      return %r#1, %r#2 : tensor<6x8xf32>, {STACK} }}"""
    assert len(program_of(text).sections()) == 1
    check(text, some(5, 6, 8), some(6, 8, seed=1))


@pytest.mark.parametrize(
    "text",
    [
        sliced(body="return %m : tensor<6x8xf32>", result=MATRIX),  # the result must be in the caller's memory
        sliced(body=f"%a = stablehlo.add %m, %m : {MATRIX} return %p, %a : tensor<4x6xf32>, {MATRIX}",
               result=f"(tensor<4x6xf32>, {MATRIX})"),  # not only multiplied
        sliced("ui64"),
        sliced().replace(STACK, "tensor<5x7x8xf32>"),  # the last dimensions are not whole
    ],
)  # fmt: skip
def test_other_slices_are_copies(text: str) -> None:
    assert not program_of(text).sections()


def test_a_section_outside_of_its_array_is_refused() -> None:
    program = program_of(sliced())
    (section,) = program.sections()
    assert isinstance(section.storage, Section)
    section.storage = replace(section.storage, last=5)
    with pytest.raises(CompileError, match=r"section0.*is not inside of arg0"):
        verify(program)


def test_nothing_writes_a_section() -> None:
    program = program_of(sliced())
    (launch,) = (step for step in walk(program.steps) if isinstance(step, Launch))
    whole = Array("whole", "f32", (5, 4, 6), Constant(np.zeros((5, 4, 6), np.float32)))
    place = program.inputs[2]
    written = Array("written", "f32", (4, 6), Section(whole, place, 24, 4))
    launch.arguments = tuple(written if value is program.outputs[0] else value for value in launch.arguments)
    with pytest.raises(CompileError, match="a step writes written"):
        verify(program)
