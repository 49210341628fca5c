"""What an artifact says about the arguments that its caller gives away."""

from __future__ import annotations

import pytest

from trivium.backends.cpu.client import CpuClient, CpuLoadedExecutable
from trivium.backends.interface import ALIASES
from trivium.compiler.driver import CompileOptions
from trivium.ir.text import parse

PRODUCT = """func.func @main(%x: tensor<8xf32> {first}, %y: tensor<8xf32> {second}) -> tensor<8xf32> {{
  %r = stablehlo.multiply %x, %y : tensor<8xf32>
  return %r : tensor<8xf32>
}}"""


@pytest.mark.parametrize(
    ("marks", "donated", "aliases"),
    [
        (("", ""), "00", ""),
        (("", "{jax.buffer_donor = true}"), "01", "-1 0"),
        (("{jax.buffer_donor = true}", "{tf.aliasing_output = 0 : i32}"), "11", "-1 0"),
    ],
)
def test_arguments_that_are_given_away(marks: tuple[str, str], donated: str, aliases: str) -> None:
    module = parse(PRODUCT.format(first=marks[0], second=marks[1]))
    executable = CpuClient().compile(module, CompileOptions())
    assert isinstance(executable, CpuLoadedExecutable)
    texts = executable.artifact.texts
    assert (texts["donated"], texts[ALIASES]) == (donated, aliases)
