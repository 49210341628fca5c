"""Stages are made when they are asked for, and only of the module that was compiled."""

import pytest

import trivium
from trivium.backends.cpu.target import host
from trivium.compiler.stages import DEFAULT, Stages
from trivium.ir.errors import Error

TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.tanh %x : tensor<4xf32> return %0 : tensor<4xf32> }"  # noqa: E501


def test_stages_are_made_once() -> None:
    stages = Stages(trivium.parse(TEXT), host(), DEFAULT)
    assert stages.graph is stages.graph
    assert stages.program is stages.program
    assert stages.program.graph is stages.graph
    assert stages.lines is None


def test_a_program_that_exists_is_not_lowered_again() -> None:
    stages = Stages(trivium.parse(TEXT), host(), DEFAULT)
    again = Stages.of_program(stages.program, stages.target, stages.options)
    assert again.program is stages.program
    assert again.graph is stages.graph


def test_another_module_is_refused() -> None:
    stages = Stages(trivium.parse(TEXT), host(), DEFAULT)
    stages.require_structure(b"that of another")
    with pytest.raises(Error, match="was changed after it was compiled"):
        _ = stages.program
