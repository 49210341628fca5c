"""What all executables report about the compilation that they came from."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from tests.backends.harness import CLIENT, elementwise, load
from trivium.backends.artifact import from_bytes, to_bytes
from trivium.backends.pjrt import STAGES
from trivium.ir.errors import Error

TEXT = """func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %0 = stablehlo.negate %x : tensor<5xf32>
  return %0 : tensor<5xf32>
}"""


def test_without_its_module_an_executable_has_a_signature_and_no_stages() -> None:
    whole = CLIENT.compile(trivium.parse(TEXT)).whole()
    again = CLIENT.load(from_bytes(to_bytes(whole)))
    assert again.signature.function_type.inputs[0].shape == (5,)
    assert again.cost_analysis()["flops"] == 5
    np.testing.assert_array_equal(again.execute(np.ones(5, np.float32))[0], -1)
    for stage in STAGES:
        with pytest.raises(Error, match="main was loaded without the module"):
            again.stage(stage)


def test_without_a_module_an_executable_has_stages_and_no_signature() -> None:
    loaded = load(elementwise("negate", ["f32"], "f32", 5))
    assert "negate" in loaded.stage("kernels")
    with pytest.raises(Error, match="was made of kernels, and has no signature"):
        _ = loaded.signature


def test_unknown_stages() -> None:
    with pytest.raises(Error, match="there is no stage 'ptx', expected one of graph, kernels, llvm, asm"):
        CLIENT.compile(trivium.parse(TEXT)).stage("ptx")
