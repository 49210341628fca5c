"""Values that are too large for memory are refused because of their types, before anything is allocated."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.ir.errors import CompileError, ExecutionError
from trivium.ir.memory import exhaustion, memory_limit, size_text, storage_size
from trivium.ir.text import parse
from trivium.ir.types import F32, I1, TensorType

HUGE = "tensor<1000000000000xf32>"
CONSTANT = f"%0 = stablehlo.constant dense<0.5> : {HUGE}"
RETURNED = {
    "constant": f"func.func @main() -> {HUGE} {{ {CONSTANT} return %0 : {HUGE} }}",
    "sum": f"func.func @main() -> {HUGE} {{ {CONSTANT} %1 = stablehlo.add %0, %0 : {HUGE} return %1 : {HUGE} }}",
    "iota": f"func.func @main() -> {HUGE} {{ %0 = stablehlo.iota dim = 0 : {HUGE} return %0 : {HUGE} }}",
    "broadcast": f"""func.func @main() -> {HUGE} {{
      %x = stablehlo.constant dense<0.5> : tensor<f32>
      %0 = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> {HUGE}
      return %0 : {HUGE}
    }}""",
    "pad": f"""func.func @main() -> {HUGE} {{
      %x = stablehlo.constant dense<0.5> : tensor<f32>
      %y = stablehlo.constant dense<[0.5, 1.0]> : tensor<2xf32>
      %0 = stablehlo.pad %y, %x, low = [0], high = [999999999998], interior = [0]
        : (tensor<2xf32>, tensor<f32>) -> {HUGE}
      return %0 : {HUGE}
    }}""",
    "loop": f"""func.func @main() -> {HUGE} {{
      {CONSTANT}
      %1 = stablehlo.while(%i = %0) : {HUGE} cond {{
        %p = stablehlo.constant dense<false> : tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        stablehlo.return %i : {HUGE}
      }}
      return %1 : {HUGE}
    }}""",
}
"""Programs with results of 4 TB."""
USED = f"""func.func @main(%x: tensor<i32>) -> tensor<i32> {{
  {CONSTANT}
  %1 = "stablehlo.sort"(%0) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) : ({HUGE}) -> {HUGE}
  %2 = stablehlo.slice %1 [0:1] : ({HUGE}) -> tensor<1xf32>
  %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
  %4 = stablehlo.convert %3 : (tensor<f32>) -> tensor<i32>
  return %4 : tensor<i32>
}}"""


def test_sizes():
    assert storage_size(TensorType((2, 3), F32)) == 24
    assert storage_size(TensorType((2, None), F32)) == 0
    assert storage_size(TensorType((5,), I1)) == 5
    assert size_text(24) == "24 bytes"
    assert size_text(4 * 10**12) == "4000000000000 bytes (4 TB)"
    assert 1 << 27 < memory_limit() < 4 * 10**12


@pytest.mark.parametrize("text", RETURNED.values(), ids=RETURNED)
def test_returned(text):
    module = parse(text)
    module.verify()
    with pytest.raises(ExecutionError, match=r"its results have 4000000000000 bytes \(4 TB\), expected at most"):
        trivium.evaluate(module)
    with pytest.raises(CompileError, match=r"4000000000000 bytes \(4 TB\); expected at most"):
        trivium.compile(module)


def test_used():
    module = parse(USED)
    with pytest.raises(ExecutionError, match=r"sort: its results have 4000000000000 bytes") as raised:
        trivium.evaluate(module, 1)
    assert raised.value.inside is not None
    assert raised.value.source
    with pytest.raises(CompileError, match=r"4000000000000 bytes \(4 TB\); expected at most"):
        trivium.compile(module)


def test_an_allocation_that_fails():
    """If the operating system refuses an allocation that the types did not predict, the error is a Trivium error."""
    expected = pytest.raises(CompileError, match="compiling needs more memory than there is: 5 bytes")
    with expected, exhaustion("compiling", CompileError):
        raise MemoryError("5 bytes")


def test_many_values_together():
    """Each value fits into memory, but all of them together do not."""
    each = memory_limit() // 8  # its size as f32 is half of the memory
    kind = f"tensor<{each}xf32>"
    lines = [f"%{i} = stablehlo.constant dense<{i}.0> : {kind}" for i in range(3)]
    kinds = ", ".join([kind] * 3)
    text = "\n".join([f"func.func @main() -> ({kinds}) {{", *lines, f"return %0, %1, %2 : {kinds}", "}"])
    with pytest.raises(CompileError, match="for results, expected at most"):
        trivium.compile(parse(text))


def test_a_constant_that_is_only_looked_into(tmp_path):
    """It has a type of 4 TB, but holds one element: it is printed, saved and read, and ops that read parts of it
    run."""
    module = parse(
        f"""func.func @main() -> tensor<2xf32> {{
          {CONSTANT}
          %1 = stablehlo.slice %0 [5:7] : ({HUGE}) -> tensor<2xf32>
          return %1 : tensor<2xf32>
        }}"""
    )
    for suffix in ("mlir", "mlirbc"):
        module.save(tmp_path / f"huge.{suffix}")
        assert (tmp_path / f"huge.{suffix}").stat().st_size < 1000
        again = trivium.load(tmp_path / f"huge.{suffix}")
        np.testing.assert_array_equal(trivium.evaluate(again)[0], [0.5, 0.5])
        np.testing.assert_array_equal(trivium.compile(again)()[0], [0.5, 0.5])
