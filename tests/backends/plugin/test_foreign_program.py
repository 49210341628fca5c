"""Programs as foreign functions, which JAX's CPU platform calls."""

import gc
from typing import Any

import numpy as np
import pytest

import trivium
from trivium.backends.plugin.foreign_program import HANDLER, ForeignProgram
from trivium.ir.errors import ExecutionError

jax = pytest.importorskip("jax")
pytest.importorskip("trivium.jax")  # registers the handlers
pytestmark = pytest.mark.jax

TEXT = """
func.func @main(%x: tensor<4x3xf32>, %y: tensor<3x4xf32>) -> (tensor<4x4xf32>, tensor<f32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<4x4xf32>, tensor<f32>
}
"""
X, Y = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((3, 4), np.float32)


class Elsewhere:
    """An executable of another device: only Python can run it."""

    def __init__(self, loaded: Any, failure: Exception | None = None):
        self.name, self.signature = loaded.name, loaded.signature
        self._loaded, self._failure = loaded, failure

    def execute(self, *arguments: np.ndarray) -> list[np.ndarray]:
        if self._failure is not None:
            raise self._failure
        return self._loaded.execute(*arguments)


def called(program: ForeignProgram) -> Any:
    kinds = jax.ShapeDtypeStruct((4, 4), np.float32), jax.ShapeDtypeStruct((), np.float32)
    return jax.ffi.ffi_call(HANDLER, kinds)(X, Y, **program.attributes)


@pytest.mark.parametrize("kind", [lambda loaded: loaded, Elsewhere])
def test_a_program_runs_on_the_hosts_buffers(kind: Any) -> None:
    program = ForeignProgram(kind(trivium.compile(trivium.parse(TEXT)).loaded))
    gc.collect()
    for product, total in (called(program), program(X, Y)):
        np.testing.assert_array_equal(product, X @ Y)
        assert float(total) == (X @ Y).sum()


def test_an_error_of_a_run_reaches_the_host() -> None:
    loaded: Any = Elsewhere(trivium.compile(trivium.parse(TEXT)).loaded, ExecutionError("the device is on fire"))
    # JAX raises the latter where no Python of its own has called the program.
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match="INTERNAL: the device is on fire"):
        jax.block_until_ready(called(ForeignProgram(loaded)))
