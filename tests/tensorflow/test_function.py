"""`trivium.tensorflow.function` against `tf.function`: signatures, variables, gradients, training."""

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow


def normal(*shape: int, seed: int = 0) -> Any:
    return tf.constant(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def assert_same(got: Any, wanted: Any, tolerance: float = 1e-4) -> None:
    tf.nest.assert_same_structure(got, wanted)
    for mine, theirs in zip(tf.nest.flatten(got), tf.nest.flatten(wanted), strict=True):
        if theirs is not None:
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)


def test_structures_and_keywords() -> None:
    def function(x: Any, pair: Any = None, *, scale: float = 2.0) -> Any:
        y = x * scale
        return {
            "y": y,
            "rest": (None, [x + 1, tf.shape(x)]),
            "flag": y > 0,
            **({} if pair is None else {"p": pair["b"]}),
        }

    compiled, x = trivium.tensorflow.function(function), normal(2, 3)
    assert_same(compiled(x), function(x))
    assert_same(compiled(x, scale=3.0), function(x, scale=3.0))
    assert_same(compiled(x=x, pair={"a": x, "b": x - 1}), function(x, {"a": x, "b": x - 1}))


def test_each_shape_and_dtype_is_compiled_once() -> None:
    compiled = trivium.tensorflow.function(lambda x: x + 1)
    for x in (normal(2), normal(2), normal(3), tf.constant([1, 2]), np.float32([1, 2])):
        assert_same(compiled(x), tf.convert_to_tensor(x) + 1)
    assert len(compiled._compiled) == 3


def test_options_and_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = tf.Variable(normal(3, 3))

        @trivium.tensorflow.function(threads=1)
        def __call__(self, x: Any) -> Any:
            return x @ self.weight

    for model in (Model(), Model()):
        model.weight.assign_add(tf.ones((3, 3)))
        assert_same(model(normal(2, 3)), normal(2, 3) @ model.weight)


def test_variables_are_read_and_written() -> None:
    count, weight = tf.Variable(0), tf.Variable([1.0, 2.0])

    @trivium.tensorflow.function
    def function(x: Any) -> Any:
        count.assign_add(1)
        weight.assign(weight * x)
        return weight.read_value()

    assert_same(function(tf.constant(2.0)), tf.constant([2.0, 4.0]))
    weight.assign([1.0, 1.0])
    assert_same(function(tf.constant(3.0)), tf.constant([3.0, 3.0]))
    assert count.numpy() == 2
    np.testing.assert_array_equal(weight.numpy(), [3.0, 3.0])


def test_variables_as_arguments() -> None:
    one, other = tf.Variable([1.0]), tf.Variable([2.0])

    @trivium.tensorflow.function
    def double(variable: Any) -> Any:
        return variable.assign(variable * 2)

    double(one), double(other), double(one)
    assert (one.numpy(), other.numpy()) == (4.0, 4.0)


WEIGHT = tf.Variable([1.0, 2.0, 3.0])


def product(x: Any) -> Any:
    return {"y": tf.tanh(x) * WEIGHT, "n": tf.shape(x)}


@pytest.mark.parametrize("inside", [False, True], ids=["eager", "in_a_graph"])
def test_gradients_of_inputs_and_variables(inside: bool) -> None:
    def gradients(f: Any, x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum(f(x * x)["y"] ** 2)
            first = tape.gradient(loss, [x, WEIGHT])
            total = tf.reduce_sum(first[0])
        return first, outer.gradient(total, [x, WEIGHT])

    compiled, run = trivium.tensorflow.function(product), tf.function(gradients) if inside else gradients
    assert_same(run(compiled, normal(2, 3)), gradients(product, normal(2, 3)))


def test_gradients_see_the_values_of_the_forward_pass() -> None:
    weight = tf.Variable(2.0)
    compiled = trivium.tensorflow.function(lambda x: x * weight)
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x)
        weight.assign(100.0)
    assert tape.gradient(y, x) == 2.0


def test_in_a_graph() -> None:
    count = tf.Variable(0)

    @trivium.tensorflow.function
    def inner(x: Any) -> Any:
        count.assign_add(1)
        return x * 2

    outer = tf.function(lambda x: inner(x + 1) - 1)
    assert_same(outer(normal(2, 3)), (normal(2, 3) + 1) * 2 - 1)
    assert count.numpy() == 1


def test_gradients_that_are_slices() -> None:
    table = tf.Variable(normal(5, 3))

    def function(places: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, places) ** 2)
        return tape.gradient(loss, table)

    places = tf.constant([3, 0, 3])
    got, wanted = trivium.tensorflow.function(function)(places), function(places)
    assert_same(tf.convert_to_tensor(got), tf.convert_to_tensor(wanted))
    assert isinstance(got, tf.IndexedSlices)


# Randomness


def test_random_numbers_are_fresh_and_seeded() -> None:
    @trivium.tensorflow.function
    def draw(x: Any) -> Any:
        for _ in tf.range(3):
            x = x + tf.random.uniform((4,))
        return (
            x,
            tf.random.normal((1000,)),
            tf.random.truncated_normal((1000,)),
            tf.random.uniform((9,), 0, 5, tf.int32),
        )

    tf.random.set_seed(3)
    first, second = draw(tf.zeros(4)), draw(tf.zeros(4))
    tf.random.set_seed(3)
    assert_same(draw(tf.zeros(4)), first, tolerance=0)
    assert all(np.any(a != b) for a, b in zip(first, second, strict=True))
    for numbers, deviation in ((first[1], 1.0), (first[2], 0.88)):
        assert abs(np.mean(numbers)) < 0.1
        assert abs(np.std(numbers) - deviation) < 0.1
    assert set(first[3].numpy()) <= set(range(5))


def test_dropout_drops_the_same_in_its_gradient() -> None:
    dropout = trivium.tensorflow.function(lambda x: tf.nn.dropout(x, 0.5))
    x = tf.ones(100)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dropout(x)
    np.testing.assert_array_equal(tape.gradient(y, x), y)
    assert 20 < np.count_nonzero(y) < 80


def test_generators_give_what_tensorflow_gives() -> None:
    ours, theirs = (tf.random.Generator.from_seed(5) for _ in range(2))

    def draw(generator: Any) -> Any:
        return generator.uniform((3,)), generator.normal((2,)), generator.uniform((5,), 0, 9, tf.int64)

    compiled = trivium.tensorflow.function(lambda: draw(ours))
    for _ in range(2):
        assert_same(compiled(), draw(theirs), tolerance=1e-6)


# Training


def cnn() -> Any:
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(6, 3, activation="relu", padding="same"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Conv2D(6, 3, activation="relu"),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(12, activation="relu"),
            layers.Dense(10),
        ]
    )


def lstm() -> Any:
    layers = keras.layers
    return keras.Sequential([layers.Input((5,)), layers.Embedding(20, 4), layers.LSTM(6), layers.Dense(10)])


def train(compiler: Any, make: Any, optimizer: Any, inputs: np.ndarray) -> tuple[list[float], list[np.ndarray]]:
    """A few steps, of which the last has a smaller batch: the reported losses, and the weights after training."""
    keras.utils.set_random_seed(0)
    model, optimizer = make(), optimizer()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    accuracy = keras.metrics.SparseCategoricalAccuracy()

    @compiler
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_of(y, logits)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(y, logits)
        return loss, accuracy.result()

    labels = np.random.default_rng(1).integers(0, 10, len(inputs))
    reported = []
    for count in (len(inputs), len(inputs), len(inputs) - 3):
        reported += map(float, step(tf.constant(inputs[:count]), tf.constant(labels[:count])))
    return reported, [variable.numpy() for variable in model.variables]


OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(0.01),
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
}
MODELS = {
    "cnn": (cnn, np.random.default_rng(0).standard_normal((8, 8, 8, 1)).astype(np.float32)),
    "lstm": (lstm, np.random.default_rng(0).integers(0, 20, (8, 5))),
}


@pytest.mark.parametrize(("model", "optimizer"), [("cnn", "adam"), ("cnn", "sgd"), ("lstm", "adam")])
def test_training_step(model: str, optimizer: str) -> None:
    make, inputs = MODELS[model]
    wanted, weights = train(tf.function, make, OPTIMIZERS[optimizer], inputs)
    got, mine = train(trivium.tensorflow.function, make, OPTIMIZERS[optimizer], inputs)
    np.testing.assert_allclose(got, wanted, rtol=1e-4)
    for ours, theirs in zip(mine, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_watched_variables_that_are_not_trainable_have_gradients() -> None:
    scale = tf.Variable(2.0, trainable=False)
    compiled = trivium.tensorflow.function(lambda x: tf.reduce_sum(x * scale))
    with tf.GradientTape() as tape:
        tape.watch(scale)
        y = compiled(tf.constant([1.0, 2.0]))
    assert float(tape.gradient(y, scale)) == 3
