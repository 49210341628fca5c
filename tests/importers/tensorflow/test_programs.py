"""StableHLO inside TensorFlow's graphs: JAX functions converted to TensorFlow's, and our own artifacts."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax.experimental import jax2tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

import trivium

pytestmark = [pytest.mark.tensorflow, pytest.mark.jax]

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
W = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
SINE = "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{ {} return %y : tensor<2x3xf32> }}"
SINE = SINE.format("%y = stablehlo.sine %x : tensor<2x3xf32>")


def program(x: Any, w: Any) -> Any:
    """A function with calls, composites, a loop, and branches by platform."""
    carry, rows = jax.lax.scan(lambda c, row: (c * 0.5 + row, jnp.sin(c)), jnp.zeros(4), jax.nn.softmax(x @ w))
    return carry, jax.lax.top_k(rows, 2)[0], jax.lax.platform_dependent(carry, cpu=jnp.sin, tpu=jnp.cos)


def converted(function: Any, **options: Any) -> Any:
    return tf.function(jax2tf.convert(function, **options), autograph=False)


def holding(module: bytes, **attributes: Any) -> Any:
    """Returns a TensorFlow function around the op that contains a program of one argument."""
    given = {"version": 9, "Sout": [(2, 3)], "Tout": [tf.float32], "platforms": ["CPU"]} | attributes
    return tf.function(lambda x: gen_xla_ops.xla_call_module([x], module=module, **given), autograph=False)


def assert_close(found: Any, expected: Any) -> None:
    for mine, theirs in zip(found, jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("platforms", [("cpu",), ("cpu", "tpu"), ("tpu", "cpu")])
def test_functions_of_jax(platforms: tuple[str, ...]) -> None:
    module = trivium.from_tensorflow(converted(program, native_serialization_platforms=platforms), X, W)
    module.verify()
    assert list(module.functions) == ["main"]
    assert_close(trivium.evaluate(module, X, W), program(X, W))
    assert_close(trivium.compile(module)(X, W), program(X, W))


def test_a_saved_model(tmp_path: Path) -> None:
    saved = tf.Module()
    saved.call = tf.function(jax2tf.convert(program), [tf.TensorSpec((2, 3)), tf.TensorSpec((3, 4))], autograph=False)
    tf.saved_model.save(saved, tmp_path, signatures=saved.call)
    assert_close(trivium.evaluate(trivium.load(tmp_path), X, W), program(X, W))


def test_a_gradient() -> None:
    @tf.function(autograph=False)
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax2tf.convert(lambda x: jnp.tanh(x @ W).sum())(x)
        return tape.gradient(y, x)

    assert_close(trivium.evaluate(trivium.from_tensorflow(gradient, X), X), gradient(X).numpy())


@pytest.mark.parametrize("suffix", ["mlir", "mlirbc"])
def test_our_own_files(suffix: str, tmp_path: Path) -> None:
    trivium.parse(SINE).save(tmp_path / f"sine.{suffix}")
    function = holding((tmp_path / f"sine.{suffix}").read_bytes())
    assert_close(trivium.evaluate(trivium.from_tensorflow(function, X), X), function(X)[0].numpy())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (converted(jnp.sin, polymorphic_shapes=["b, _"]), "module has dynamic shapes inside, expected static ones"),
        (holding(SINE.replace("2x3", "3x2").encode()), "module has arguments .*3x2xf32.*, expected those given"),
        (holding(SINE.encode(), platforms=["TPU"]), r"platforms has .*TPU.*, expected the CPU among them"),
        (holding(SINE.encode(), disabled_checks=["shape_assertions"]), "disabled_checks has .*, expected none but"),
        (holding(b"ML\xefR\x0dStableHLO"), "XlaCallModule"),
        (holding(b"\xff\xfe"), "module is neither an artifact nor text"),
        (holding(SINE[:60].encode()), "expected"),
        (holding(SINE.replace("sine", "sinus").encode()), "stablehlo.sinus"),
        (holding(b"module {}"), "no function main"),
    ],
)
def test_what_is_refused(function: Any, message: str) -> None:
    with pytest.raises(trivium.Error, match=f"(?s){message}") as caught:
        trivium.from_tensorflow(function, X)
    assert "importing 'main'" in str(caught.value)
