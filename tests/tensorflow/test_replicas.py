"""Functions that each replica of a `tf.distribute.Strategy` calls: with its own variables."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow
from trivium.ir.errors import Error

pytestmark = pytest.mark.tensorflow


def test_a_step_that_synchronizes_replicas_is_refused() -> None:
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.train_step = trivium.tensorflow.function(model.train_step)
    with pytest.raises(Error, match="train_step synchronizes replicas"):
        model.fit(np.ones((4, 3)), np.ones((4, 1)), verbose=0)


def fitted(strategy: Any, is_compiled: bool) -> list[np.ndarray]:
    """Returns the weights of a model after a few steps."""
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        layers = [tf.keras.layers.Dense(4, "tanh"), tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)]
        model = tf.keras.Sequential([tf.keras.Input((3,)), *layers])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    if is_compiled:
        model.call = trivium.tensorflow.function(model.call, fallback=False)
    x = np.linspace(-1, 1, 48, dtype=np.float32).reshape(16, 3)
    model.fit(x, x[:, 1:2], batch_size=8, epochs=2, shuffle=False, verbose=0)
    return model.get_weights()


def compare() -> None:
    """Runs in a process of its own: what devices there are is decided once."""
    device = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for mine, theirs in zip(fitted(strategy, True), fitted(strategy, False), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_each_replica_has_its_own_variables() -> None:
    code = "from tests.tensorflow.test_replicas import compare; compare()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
