"""Instructions name the lines of the kernels that they come from, and are the same instructions as without."""

import re

import llvmlite.binding as llvm
import llvmlite.ir as ll
import pytest

import trivium
from tests.page.programs import LOOP, TEXT
from trivium.backends import client
from trivium.backends.cpu.client import CpuClient
from trivium.backends.llvm.lines import LinedModule, at_line
from trivium.compiler.kernel import Constant, Instruction, Register, walk
from trivium.compiler.stages import DEFAULT, Stages

SORTED = """
func.func @main(%x: tensor<64x300xf32>) -> tensor<64x300xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<64x300xf32>) -> tensor<64x300xf32>
  return %0 : tensor<64x300xf32>
}
"""
SPLIT = """
func.func @main(%x: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %0 = stablehlo.tanh %x : tensor<512x1024xf32>
  %1 = stablehlo.sine %0 : tensor<512x1024xf32>
  return %1 : tensor<512x1024xf32>
}
"""


def stages_of(text: str) -> tuple[CpuClient, Stages, Stages]:
    """Returns the stages of a program without lines, and with them."""
    backend = client("cpu")
    assert isinstance(backend, CpuClient)
    plain = Stages(trivium.parse(text), backend.target(DEFAULT), DEFAULT)
    every: list[Instruction] = [i for kernel in plain.program.kernels() for b in kernel.blocks() for i in walk(b)]
    lined = Stages.of_program(plain.program, plain.target, plain.options)
    lined.lines = {instruction: number + 1 for number, instruction in enumerate(every)}
    return backend, plain, lined


def code(text: str) -> list[str]:
    """Returns the instructions of assembly, whose labels may have other numbers."""
    lines = [line for line in text.split("\n") if line.startswith("\t") and not line.startswith("\t.")]
    return [re.sub(r"\.L\w+", ".L", line) for line in lines]


@pytest.mark.parametrize("text", [TEXT, LOOP, SORTED, SPLIT], ids=["product", "loop", "sort", "threads"])
def test_instructions_are_the_same(text: str) -> None:
    backend, plain, lined = stages_of(text)
    llvm.parse_assembly(backend.stage(lined, "llvm")).verify()
    assert code(backend.stage(lined, "asm")) == code(backend.stage(plain, "asm"))


@pytest.mark.parametrize("text", [TEXT, LOOP, SORTED, SPLIT], ids=["product", "loop", "sort", "threads"])
def test_instructions_name_lines_of_kernels(text: str) -> None:
    backend, _, lined = stages_of(text)
    assert lined.lines is not None
    named = {int(line) for line in re.findall(r"\.loc\t\d+ (\d+)", backend.stage(lined, "asm"))} - {0}
    assert named <= set(lined.lines.values())
    origins = {op.NAME for i, line in lined.lines.items() if line in named for op in i.origins}  # type: ignore[attr-defined]
    assert origins & {"stablehlo.tanh", "stablehlo.sine", "stablehlo.sort", "stablehlo.add"}


@pytest.mark.parametrize(("of", "line"), [("itself", 3), ("original", 4), ("neither", None)])
def test_copies_name_their_own_line_or_that_of_the_original(of: str, line: int | None) -> None:
    original, copy = (Constant(1.0, Register("f32")) for _ in range(2))
    copy.copied = original
    module = LinedModule("m", {"itself": {copy: 3}, "original": {original: 4}, "neither": {}}[of])
    function = ll.Function(module, ll.FunctionType(ll.VoidType(), []), "f")
    builder = ll.IRBuilder(function.append_basic_block())
    with at_line(builder, copy):
        found = builder.debug_metadata
    assert found is (None if line is None else module.place(function, line))


def test_programs_that_are_not_shown_have_no_lines() -> None:
    backend, plain, _ = stages_of(SPLIT)
    assert "!dbg" not in backend.stage(plain, "llvm")
