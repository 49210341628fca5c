"""The CNN in JAX, trained through `trivium.jit` on the value and gradient of the loss."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import trivium
from trivium.commands.demo.contestant import Advance, Contestant
from trivium.commands.demo.data import EPOCHS, LEARNING_RATE, Digits, batches

Parameters = dict[str, dict[str, jax.Array]]
LAYERS = {"conv1": (3, 3, 1, 16), "conv2": (3, 3, 16, 32), "dense1": (128, 64), "dense2": (64, 10)}
DIMENSIONS = ("NHWC", "HWIO", "NHWC")
DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8


def initial() -> Parameters:
    """Initializes all layers by He's method; biases are zero."""
    keys = jax.random.split(jax.random.key(0), len(LAYERS))
    parameters = {}
    for key, (name, shape) in zip(keys, LAYERS.items(), strict=True):
        scale = np.sqrt(2 / np.prod(shape[:-1]))
        parameters[name] = {"w": scale * jax.random.normal(key, shape), "b": jnp.zeros(shape[-1])}
    return parameters


def logits(parameters: Parameters, images: jax.Array) -> jax.Array:
    """Two convolutions with pooling, two dense layers."""
    x = images[..., None]
    for name in ("conv1", "conv2"):
        layer = parameters[name]
        x = jax.lax.conv_general_dilated(x, layer["w"], (1, 1), "SAME", dimension_numbers=DIMENSIONS)
        x = jax.nn.relu(x + layer["b"])
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ parameters["dense1"]["w"] + parameters["dense1"]["b"])
    return x @ parameters["dense2"]["w"] + parameters["dense2"]["b"]


def loss(parameters: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean cross-entropy."""
    scores = jax.nn.log_softmax(logits(parameters, images))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def train(digits: Digits, advance: Advance) -> Parameters:
    """Trains with Adam, and returns the parameters."""

    @trivium.jit
    def step(
        parameters: Parameters, first: Parameters, second: Parameters, count: Any, images: Any, labels: Any
    ) -> tuple[Parameters, Parameters, Parameters]:
        _, gradients = jax.value_and_grad(loss)(parameters, images, labels)
        first = jax.tree.map(lambda m, g: DECAY * m + (1 - DECAY) * g, first, gradients)
        second = jax.tree.map(lambda v, g: SQUARE_DECAY * v + (1 - SQUARE_DECAY) * g * g, second, gradients)
        rate = LEARNING_RATE * jnp.sqrt(1 - SQUARE_DECAY**count) / (1 - DECAY**count)
        moved = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + EPSILON), parameters, first, second)
        return moved, first, second

    parameters = initial()
    first = second = jax.tree.map(jnp.zeros_like, parameters)
    count = 0
    for epoch in range(EPOCHS):
        for images, labels in batches(digits, epoch):
            count += 1
            parameters, first, second = step(
                parameters, first, second, np.float32(count), images, labels.astype(np.int32)
            )
            advance()
    return parameters


def contest(digits: Digits, advance: Advance) -> Contestant:
    """Trains the model, and returns it ready for comparison."""
    parameters = train(digits, advance)
    images = jnp.asarray(digits.test_images)

    def infer(x: jax.Array) -> jax.Array:
        return logits(parameters, x)

    compiled = jax.jit(infer)
    entry = Contestant("JAX", trivium.from_jax(infer, images), lambda: np.asarray(infer(images)), compiler="XLA")
    entry.compiled = lambda: np.asarray(compiled(images))
    return entry
