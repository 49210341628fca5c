"""The flow from a module to an executable, with a backend that only records its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from tests.compiler.targets import TARGET
from trivium.compiler.artifact import Artifact, Machine
from trivium.compiler.driver import CompileOptions, DynamicModule, compile
from trivium.compiler.program import Launch, Program
from trivium.compiler.stages import Stages
from trivium.compiler.target import Target
from trivium.ir.errors import CompileError, VerificationError
from trivium.ir.text import parse

ARTIFACT = Artifact("", Machine("", "", ""), 0, 1, "", b"", (), (), 0, 64)


@dataclass
class Executable:
    """A program, or a module that has to wait for its arguments."""

    program: Program | None = None
    dynamic: DynamicModule | None = None

    def stage(self, name: str) -> str:
        return f"the {name}"


@dataclass
class Recorder:
    """A backend without code."""

    options: list[CompileOptions] = field(default_factory=list)
    loaded: list[Artifact] = field(default_factory=list)

    def target(self, options: CompileOptions) -> Target:
        self.options.append(options)
        return TARGET

    def artifact(self, stages: Stages) -> Artifact:
        return replace(ARTIFACT, name=stages.program.name)

    def load(self, artifact: Artifact, stages: Stages) -> Executable:
        assert artifact.name == stages.program.name
        self.loaded.append(artifact)
        return Executable(stages.program)

    def load_dynamic(self, dynamic: DynamicModule[Executable]) -> Executable:
        return Executable(dynamic=dynamic)


STATIC = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.tanh %x : tensor<4xf32> return %0 : tensor<4xf32> }"  # noqa: E501


def test_a_static_module_is_lowered_once_and_stays_as_it_is() -> None:
    module, backend = parse(STATIC), Recorder()
    before, options = str(module), CompileOptions(threads=3)
    program = compile(module, backend, options).program
    assert program is not None
    assert [type(step) for step in program.steps] == [Launch]
    assert str(module) == before
    assert backend.options == [options]


def test_a_dynamic_module_is_compiled_for_each_shape() -> None:
    module = parse(STATIC.replace("4x", "?x"))
    dynamic = compile(module, Recorder(), CompileOptions()).dynamic
    assert dynamic is not None
    assert dynamic.shape_arguments == ()
    for extent in (2, 5):
        program = dynamic.compile([(extent,)], {}).program
        assert program is not None
        assert program.outputs[0].shape == (extent,)


def test_extents_that_follow_from_values_name_their_arguments() -> None:
    module = parse("""func.func @main(%n: tensor<1xi64>, %x: tensor<f32>) -> tensor<?xf32> {
      %0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }""")
    dynamic = compile(module, Recorder(), CompileOptions()).dynamic
    assert dynamic is not None
    assert dynamic.shape_arguments == (0,)
    program = dynamic.compile([(1,), ()], {0: np.array([3])}).program
    assert program is not None
    assert program.outputs[0].shape == (3,)


def test_what_becomes_static_by_itself_is_compiled_at_once() -> None:
    module = parse("""func.func @main(%x: tensor<f32>) -> tensor<?xf32> {
      %n = stablehlo.constant dense<3> : tensor<1xi64>
      %0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }""")
    program = compile(module, Recorder(), CompileOptions()).program
    assert program is not None
    assert program.outputs[0].shape == (3,)


def test_dynamic_values_that_nothing_uses_are_left_out() -> None:
    module = parse("""func.func @main(%n: tensor<1xi64>, %x: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [] : (tensor<f32>, tensor<1xi64>) -> tensor<?xf32>
      %1 = stablehlo.add %x, %x : tensor<f32>
      return %1 : tensor<f32>
    }""")
    program = compile(module, Recorder(), CompileOptions()).program
    assert program is not None
    assert [type(step) for step in program.steps] == [Launch]


def test_wrong_modules_are_refused_before_anything_else() -> None:
    backend = Recorder()
    with pytest.raises(CompileError, match="@main has no body, only a declaration"):
        compile(parse("module { func.func private @main(tensor<f32>) }"), backend, CompileOptions())
    wrong = parse(STATIC)
    wrong.main.body.arguments[0].type = parse(STATIC.replace("4x", "5x")).main.arguments[0].type
    with pytest.raises(VerificationError):
        compile(wrong, backend, CompileOptions())
    assert not backend.loaded


def test_stages_are_dumped(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_DUMP", str(tmp_path))
    compile(parse(STATIC), Recorder(), CompileOptions())
    (folder,) = tmp_path.iterdir()
    names = sorted(path.name for path in folder.iterdir())
    assert names[0] == "00-input.mlir"
    assert (folder / "kernels.txt").read_text() == "the kernels"
