"""The CNN in TensorFlow, trained through `trivium.tensorflow.function` on the whole step: variables and optimizer."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

import trivium
import trivium.tensorflow
from trivium.commands.demo.contestant import Advance, Contestant
from trivium.commands.demo.data import EPOCHS, LEARNING_RATE, Digits, batches


def make_model() -> keras.Model:
    """Builds two convolutions with pooling, and two dense layers."""
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10),
        ]
    )


def train(digits: Digits, advance: Advance) -> keras.Model:
    """Trains the model, and returns it."""
    keras.utils.set_random_seed(0)
    model = make_model()
    optimizer = keras.optimizers.Adam(LEARNING_RATE)
    optimizer.build(model.trainable_variables)

    @trivium.tensorflow.function
    def step(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(images, training=True))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    for epoch in range(EPOCHS):
        for images, labels in batches(digits, epoch):
            step(tf.constant(images[..., None]), tf.constant(labels))
            advance()
    return model


def contest(digits: Digits, advance: Advance) -> Contestant:
    """Trains the model, and returns it ready for comparison."""
    model = train(digits, advance)
    images = tf.constant(digits.test_images[..., None])

    def infer(x: tf.Tensor) -> tf.Tensor:
        return model(x, training=False)

    module = trivium.from_tensorflow(tf.function(infer), images)
    entry = Contestant("TensorFlow", module, lambda: np.asarray(infer(images)), compiler="XLA")
    compiled = tf.function(infer, jit_compile=True)
    entry.compiled = lambda: np.asarray(compiled(images))
    return entry
