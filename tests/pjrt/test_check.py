"""The conformance kit passes our plugin, states why it fails others, and compares programs with the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from trivium.pjrt.check import FAILED, PASSED, check_plugin

PROGRAM = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.exponential %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""


NARROW = """func.func @main(%x: tensor<4xi64>) -> tensor<4xi4> {
  %0 = stablehlo.convert %x : (tensor<4xi64>) -> tensor<4xi4>
  return %0 : tensor<4xi4>
}"""

RANDOM = """func.func @main() -> tensor<8xf32> {
  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.constant dense<1.0> : tensor<f32>
  %s = stablehlo.constant dense<8> : tensor<1xi64>
  %0 = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


def test_our_plugin_passes_whole(tmp_path: Path) -> None:
    """A program of random numbers, which are different each time, shows that differences are found."""
    for name, text in {"first": PROGRAM, "second": PROGRAM, "narrow": NARROW, "random": RANDOM}.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    np.savez(tmp_path / "second.npz", allow_pickle=False, **{"0": np.array([0, 1, -np.inf], np.float32)})
    np.savez(tmp_path / "narrow.npz", allow_pickle=False, **{"0": np.array([-5, -1, 7, 63])})
    outcomes = list(check_plugin("trivium", tmp_path))
    (failed,) = [outcome for outcome in outcomes if outcome.kind != PASSED]
    assert (failed.name, failed.kind) == ("random.mlir", FAILED)
    assert "result 0 is" in failed.reason
    assert len(outcomes) > 40
    programs = [outcome.name for outcome in outcomes if outcome.subject == "program"]
    assert programs == ["first.mlir", "narrow.mlir", "random.mlir", "second.mlir"]


def test_a_file_that_is_not_a_plugin() -> None:
    library = next(Path(np.__file__).parent.rglob("*.so"))
    command = [sys.executable, "-m", "trivium.pjrt.check", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert "has no function GetPjrtApi" in done.stderr
