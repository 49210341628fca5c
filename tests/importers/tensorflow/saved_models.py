"""The model for the tests of SavedModels, and the helpers that these share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import trivium
from tests.limits import bounded

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
Edit = Callable[[Any], None]


class Model(tf.Module):
    """A model with variables of the same name, one that is written, a constant, a branch and an inner function."""

    def __init__(self) -> None:
        self.layers = [tf.Variable(np.eye(4, dtype=np.float32) * n, name="w") for n in (2, 3)]
        self.count = tf.Variable(5, trainable=False, name="count")
        self.offset = tf.constant(np.arange(4, dtype=np.float32))

    @tf.function
    def inner(self, x):
        return x @ self.layers[0] + self.offset

    @tf.function(input_signature=[tf.TensorSpec((None, 4), name="x")])
    def __call__(self, x):
        self.count.assign_add(1)
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: self.inner(x), lambda: -x @ self.layers[1])
        return {"y": tf.reshape(y, tf.shape(x)), "n": self.count.read_value()}


def edit(folder: Path, change: Edit) -> None:
    """Changes the only graph of a SavedModel."""
    path = folder / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    change(saved.meta_graphs[0])
    path.write_bytes(saved.SerializeToString())


def load(folder: Path, **options: Any) -> trivium.Module:
    return trivium.from_tensorflow(folder, X, **options)


def refuse(folder: Path, message: str) -> None:
    """Asserts that a SavedModel raises an error, at little cost."""
    with bounded(), pytest.raises(trivium.Error, match=f"(?s){message}"):
        load(folder)


def roles(module: trivium.Module) -> list[tuple[str, str]]:
    return [(x["trivium.role"], x["trivium.name"]) for x in (*module.main.arg_attrs, *module.main.res_attrs)]
