"""Programs of every importer, saved and given to other readers of StableHLO: XLA, as JAX ships it, and TensorFlow. They
compute what our interpreter computes."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trivium

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


Program = tuple[trivium.Module, list[np.ndarray]]

CHLO = """func.func @main(%a: tensor<3x4xf32>, %b: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x2xf32>) {
  %0 = chlo.broadcast_add %a, %b : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = chlo.erf %0 : tensor<3x4xf32> -> tensor<3x4xf32>
  %2, %3 = chlo.top_k(%0, k = 2) : tensor<3x4xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return %1, %2 : tensor<3x4xf32>, tensor<3x2xf32>
}"""

DYNAMIC = """module attributes {jax.uses_shape_polymorphism = true} {
  func.func @main(%a: tensor<?x4xf32>) -> tensor<?xf32> {
    %0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.constant dense<2.0> : tensor<f32>
    %3 = stablehlo.dynamic_broadcast_in_dim %2, %1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %4 = stablehlo.reduce(%a init: %2) applies stablehlo.add across dimensions = [1]
      : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
    %5 = stablehlo.multiply %3, %4 : tensor<?xf32>
    return %5 : tensor<?xf32>
  }
}"""
"""The attribute tells TensorFlow that shapes follow from those of the arguments."""


def from_torch() -> Program:
    import torch
    from torch import nn

    torch.manual_seed(0)
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 5)
    images = normal(2, 3, 6, 6)
    model = nn.Sequential(*layers, nn.Softmax(-1)).eval()
    module = trivium.from_torch(model, (torch.from_numpy(images),), parameters="arguments")
    state = [value.detach().numpy() for value in (*model.parameters(), *model.buffers())]
    return module, [*state, images]


def from_tensorflow() -> Program:
    import tensorflow as tf

    x = normal(2, 4)

    def step(i: Any, x: Any) -> Any:
        return i + 1, tf.sort(x * 1.5 + tf.cast(i, x.dtype))

    return trivium.from_tensorflow(tf.function(lambda x: tf.while_loop(lambda i, x: i < 5, step, (0, x))[1]), x), [x]


def from_jax() -> Program:
    import jax
    import jax.numpy as jnp

    def program(x: Any) -> Any:
        carry, rows = jax.lax.scan(lambda c, row: (c * 0.5 + row, jnp.sin(c)), jnp.zeros(4), x)
        return jax.scipy.special.erf(carry), rows[jnp.argsort(rows[:, 0])].astype(jnp.bfloat16)

    x = normal(6, 4)
    return trivium.from_jax(program, x), [x]


def from_onnx() -> Program:
    from onnx import TensorProto, helper, numpy_helper

    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 6, 6])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(normal(4, 3, 3, 3), "k"), numpy_helper.from_array(normal(4, 5), "w")]
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["y"]),
    ]
    opset = helper.make_opsetid("", 21)
    model = helper.make_model(helper.make_graph(nodes, "g", [given], [made], weights), opset_imports=[opset])
    return trivium.from_onnx(model), [normal(2, 3, 6, 6)]


def from_text() -> Program:
    return trivium.parse(CHLO), [normal(3, 4), normal(4)]


def from_dynamic_text() -> Program:
    return trivium.parse(DYNAMIC), [normal(3, 4)]


def xla(program: str | bytes, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what XLA computes after it reads the program itself."""
    import jax
    from jax._src.lib import _jax
    from jax.extend import backend

    client = backend.get_backend("cpu")
    device = client.local_devices()[0]
    run = client.compile_and_load(program, _jax.DeviceList((device,)), _jax.CompileOptions())
    with jax.enable_x64(True):
        return [np.asarray(result) for result in run.execute([jax.device_put(array, device) for array in arrays])]


def tensorflow(artifact: bytes, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what TensorFlow computes with an op that contains the artifact, given the types and shapes of the
    results.
    """
    import tensorflow as tf
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    dtypes, shapes = [tf.as_dtype(result.dtype) for result in expected], [result.shape for result in expected]

    @tf.function(autograph=False)
    def call(*given: Any) -> Any:
        return gen_xla_ops.xla_call_module(
            given, version=9, module=artifact, Sout=shapes, Tout=dtypes, platforms=["CPU"]
        )

    return [result.numpy() for result in call(*map(tf.constant, arrays))]


def assert_close(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=1e-5, atol=1e-5)


SOURCES = [
    pytest.param(from_torch, marks=pytest.mark.torch),
    pytest.param(from_tensorflow, marks=pytest.mark.tensorflow),
    from_jax,
    pytest.param(from_onnx, marks=pytest.mark.onnx),
    from_text,
]


@pytest.mark.jax
@pytest.mark.parametrize("source", SOURCES)
def test_xla(source: Callable[[], Program], tmp_path: Path) -> None:
    """Both the text and the artifact, as they are saved, with locations, names and roles."""
    module, arrays = source()
    expected = trivium.evaluate(module, *arrays)
    assert_close(trivium.compile(module)(*arrays), expected)
    module.save(tmp_path / "program.mlir")
    module.save(tmp_path / "program.mlirbc")
    assert_close(xla((tmp_path / "program.mlir").read_text(), arrays), expected)
    assert_close(xla((tmp_path / "program.mlirbc").read_bytes(), arrays), expected)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "source", [pytest.param(from_jax, marks=pytest.mark.jax), from_tensorflow, from_text, from_dynamic_text]
)
@pytest.mark.parametrize("version", [None, "0.20.0", "1.9.0"])
def test_tensorflow(source: Callable[[], Program], version: str | None, tmp_path: Path) -> None:
    module, arrays = source()
    expected = trivium.evaluate(module, *arrays)
    module.save(tmp_path / "program.mlirbc", version=version)
    assert_close(tensorflow((tmp_path / "program.mlirbc").read_bytes(), arrays, expected), expected)
