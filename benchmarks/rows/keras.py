"""Inference of Keras' own models: our TensorFlow compiler compared with TensorFlow's graphs and its XLA."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

import trivium.tensorflow
from benchmarks.row import OURS, Call, Row


def row(name: str, build: Any) -> Row:
    def make(threads: int) -> dict[str, Call]:
        if tf.config.threading.get_intra_op_parallelism_threads() != threads:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(1)
        keras.utils.set_random_seed(0)
        model = build(weights=None)
        x = tf.constant(np.random.default_rng(0).standard_normal((1, 224, 224, 3), np.float32))

        def forward(x: tf.Tensor) -> tf.Tensor:
            return model(x, training=False)

        calls = {
            OURS: trivium.tensorflow.function(forward),
            "graph": tf.function(forward),
            "xla": tf.function(forward, jit_compile=True),
        }
        return {name: lambda call=call: call(x).numpy() for name, call in calls.items()}

    return Row(f"{name} b1", make)


APPLICATIONS = keras.applications
ROWS = (
    row("ResNet50", APPLICATIONS.ResNet50),
    row("MobileNetV2", APPLICATIONS.MobileNetV2),
    row("EfficientNetB0", APPLICATIONS.EfficientNetB0),
)
