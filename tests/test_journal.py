"""What `trivium.explain` says of the frameworks' programs: what was compiled, why again, and what was left."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import trivium
from trivium import journal

TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.tanh %x : tensor<4xf32> return %0 : tensor<4xf32> }"  # noqa: E501


@pytest.fixture(autouse=True)
def _empty() -> None:
    journal._entries.clear()


def test_nothing() -> None:
    assert trivium.explain().startswith("Nothing has been compiled")


def test_programs_that_are_gone_are_not_explained() -> None:
    run = trivium.compile(trivium.parse(TEXT))
    journal.compiled("f", "f", "4", run.loaded, "Pad.")
    assert trivium.explain().split("\n")[:2] == ["f was compiled for 4.", f"  {run.explain().split(chr(10))[0]}"]
    del run
    gc.collect()
    assert trivium.explain() == "f was compiled for 4."


def test_what_is_said_of_several_ops_of_a_line_is_said_once() -> None:
    for owner, text in (("a.py:1", "Const runs"), ("a.py:1", "Const runs"), ("a.py:1", "Assert runs"), ("a.py:2", "x")):
        journal.left(owner, text)
    assert trivium.explain() == "Const runs\nAssert runs\nx"


@pytest.mark.torch
def test_pytorch() -> None:
    torch = pytest.importorskip("torch")

    @torch.library.custom_op("trivium_journal::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)
    compiled = torch.compile(lambda x: torch.exp(twice(torch.tanh(x)) + 1), backend="trivium", dynamic=True)
    for size in (3, 5):
        x = torch.ones(size, 2)
        torch.testing.assert_close(compiled(x), torch.exp(torch.tanh(x) * 2 + 1))
    text = trivium.explain()
    assert "trivium_journal.twice.default runs in PyTorch, between compiled parts: " in text
    assert f" of torch.compile (inference, {__file__}:" in text
    assert "was compiled for inputs of 3x2." in text
    assert "was compiled again, for inputs of 5x2. Each combination of sizes is compiled once." in text
    assert "add and exponential are one kernel" in text


@pytest.mark.tensorflow
def test_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    import trivium.tensorflow

    @trivium.tensorflow.function
    def scaled(x, by):
        y = tf.strings.to_number(tf.strings.as_string(x))  # has no rule
        return tf.tanh(y) * by + 1

    for by in (2.0, 3.0):
        np.testing.assert_allclose(scaled(tf.ones(3), by), np.tanh(np.ones(3)) * by + 1, rtol=1e-5)
    text = trivium.explain()
    assert "AsString runs in TensorFlow, between compiled parts: it has no rule." in text
    assert "part_of_scaled was compiled for the shapes 3." in text
    assert "scaled was traced again, for " in text
    assert "tensors instead of Python numbers" in text
    assert "tanh, multiply and add are one kernel" in text


@pytest.mark.tensorflow
def test_unknown_sizes_in_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    import trivium.tensorflow

    signature = [tf.TensorSpec([None], tf.float32)]

    @trivium.tensorflow.function(input_signature=signature)
    def wave(x):
        return tf.sin(x) + 1

    for size in (2, 7):
        wave(tf.ones(size))
    text = trivium.explain()
    assert "wave was compiled for the shapes 2." in text
    assert "was compiled again, for the shapes 7. To compile less often, pad inputs to a few sizes." in text


@pytest.mark.jax
def test_jax() -> None:
    jax = pytest.importorskip("jax")

    @trivium.jit
    def wave(x):
        return jax.numpy.sin(x) + 1

    for size in (2, 7):
        wave(jax.numpy.ones(size))
    text = trivium.explain()
    assert "wave at " in text
    assert "was compiled for float32[2]." in text
    assert "was compiled again, for float32[7]. JAX traces a function, and each derivative of it, " in text
    assert "sine and add are one kernel" in text


DEVICE = """
import jax, trivium
@jax.jit
def wave(x):
    return jax.numpy.sin(x) + 1
for size in (2, 7):
    wave(jax.numpy.ones(size))
print(trivium.explain())
"""


@pytest.mark.jax
def test_the_device_of_jax(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    (tmp_path / "wave.py").write_text(DEVICE)
    environment = {**os.environ, "JAX_PLATFORMS": "trivium"}
    done = subprocess.run([sys.executable, tmp_path / "wave.py"], capture_output=True, text=True, env=environment)
    place = f"jit_wave at {tmp_path / 'wave.py'}:5:"
    assert f"{place}11 was compiled for tensor<2xf32>." in done.stdout, done.stderr
    assert f"{place}11 was compiled again, for tensor<7xf32>. JAX traces a function" in done.stdout
    assert "sine and add are one kernel" in done.stdout
