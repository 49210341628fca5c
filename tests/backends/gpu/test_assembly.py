"""Programs as artifacts of a GPU: nothing here needs a device, except LLVM's code generator."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.backends.harness import elementwise, program_of
from trivium.backends.artifact import from_bytes, to_bytes
from trivium.backends.gpu import plan
from trivium.backends.gpu.assembly import assemble, assemble_program, assembly, emit_program
from trivium.backends.gpu.spirv import TRIPLE, SpirV, target
from trivium.compiler.artifact import Artifact, ModuleConstant
from trivium.compiler.program import Array, Input, Launch, Output, Program
from trivium.compiler.stages import CompileOptions, Stages
from trivium.ir.text import parse

MAGIC = b"\x03\x02\x23\x07"
WEIGHTS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
TEXT = f"""func.func @main(%x: tensor<100x64xf32> {{jax.buffer_donor = true}}) -> tensor<100x64xf32> {{
  %w = stablehlo.constant dense<"0x{WEIGHTS.tobytes().hex()}"> : tensor<64x64xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<100x64xf32>, tensor<64x64xf32>) -> tensor<100x64xf32>
  return %0 : tensor<100x64xf32>
}}"""


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return assemble(Stages(parse(TEXT), target(), CompileOptions()), SpirV())


def test_the_code_is_a_plan_and_a_binary(artifact: Artifact) -> None:
    steps, binary = plan.from_bytes(artifact.code)
    assert binary[:4] == MAGIC
    (launch,) = (step for step in steps.steps if isinstance(step, plan.Launch))
    assert (launch.blocks, launch.threads) == (200, 256)  # 32 neighbours each, for each of which eight threads sum up
    assert artifact.machine.triple == TRIPLE
    assert artifact.texts["donated"] == "1"
    assert "grid(" in artifact.texts["schedules"]


def test_constants_refer_to_the_module(artifact: Artifact) -> None:
    (constant,) = artifact.constants
    assert isinstance(constant.source, ModuleConstant)
    assert constant.nbytes == WEIGHTS.nbytes
    assert not artifact.is_whole


def test_an_artifact_survives_being_written(artifact: Artifact) -> None:
    again = from_bytes(to_bytes(artifact))
    assert again.code == artifact.code
    assert (again.arena_size, again.arena_alignment) == (artifact.arena_size, target().alignment)


def test_equal_kernels_share_a_function() -> None:
    x, y = Array("x", "f32", (5,), Input(0)), Array("y", "f32", (5,), Output(0))
    launches = [Launch(elementwise("negate", ["f32"], "f32", 5), (x, y)) for _ in range(2)]
    emitted = emit_program(Program("twice", [x], [y], list(launches)), SpirV(), target())
    assert emitted.work[launches[0]] == emitted.work[launches[1]]
    assert emitted.text.count("define spir_kernel") == 1


def test_names_of_kernels_are_plain() -> None:
    kernel = elementwise("negate", ["f32"], "f32", 5)
    kernel.name = "an odd-näme.0"
    assert list(emit_program(program_of(kernel), SpirV(), target()).schedules) == ["k0_an_odd_n_me_0"]


def test_metadata_of_functions_is_as_llvm_reads_it() -> None:
    text = emit_program(program_of(elementwise("negate", ["f32"], "f32", 300)), SpirV(), target()).text
    assert re.search(r"^define .*[^,] !reqd_work_group_size !0", text, re.MULTILINE)
    assert "OpEntryPoint Kernel" in assembly(text, SpirV(), target())


def test_a_program_without_kernels_has_no_binary() -> None:
    code = assemble_program(Program("nothing"), SpirV(), target()).code
    assert plan.from_bytes(code)[1] == b""
