"""Tables of numbers, looked up in functions and in Keras's layers of categories."""

import os
from collections.abc import Callable

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import keras

import trivium
import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)


def table(count: int, keys: "tf.DType", values: "tf.DType") -> "tf.lookup.StaticHashTable":
    """Returns a table of some elements, in no order."""
    given = RANDOM.permutation(np.arange(-count, count) * 7)[:count]
    initial = tf.lookup.KeyValueTensorInitializer(tf.constant(given, keys), tf.cast(given % 5 - 2, values))
    return tf.lookup.StaticHashTable(initial, tf.cast(-9, values))


@pytest.mark.parametrize("count", [1, 20, 300])
@pytest.mark.parametrize(("keys", "values"), [(tf.int64, tf.int64), (tf.int64, tf.float32), (tf.int32, tf.int32)])
def test_lookups(count: int, keys: "tf.DType", values: "tf.DType") -> None:
    held = table(count, keys, values)
    given = RANDOM.integers(-7 * count, 7 * count, (3, 5)).astype(keys.as_numpy_dtype)
    given[0] = held.export()[0][:1].numpy()
    wanted = held.lookup(tf.constant(given))
    for module in (
        trivium.from_tensorflow(tf.function(held.lookup), tf.TensorSpec([None, 5], keys)),
        trivium.from_tensorflow(tf.function(held.lookup), tf.TensorSpec(given.shape, keys)),
    ):
        module.verify()
        np.testing.assert_array_equal(trivium.evaluate(module, given)[0], wanted, strict=True)
        np.testing.assert_array_equal(tf.nest.flatten(trivium.compile(module)(given))[0], wanted, strict=True)


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count"])
def test_integers_are_categories(mode: str) -> None:
    layer = keras.layers.IntegerLookup(vocabulary=[12, 36, 1138, 42], output_mode=mode)
    given = np.array([[12], [42], [7]] if mode == "one_hot" else [[12, 1138, 42], [42, 1000, 36]], np.int64)
    compiled = trivium.tensorflow.function(layer, fallback=False)
    np.testing.assert_array_equal(compiled(tf.constant(given)), layer(given), strict=True)


def changing() -> object:
    """Returns a table to which elements can be added."""
    return tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)


def of_strings() -> object:
    """Returns a table whose values are strings."""
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([1], tf.int64), ["one"]), "")


@pytest.mark.parametrize(
    ("make", "reason"), [(changing, "a table that may change"), (of_strings, "values of type string, expected numbers")]
)
def test_other_tables_are_refused(make: Callable[[], object], reason: str) -> None:
    held = make()
    with pytest.raises(trivium.Error, match=reason):
        trivium.from_tensorflow(tf.function(lambda x: tf.size(held.lookup(x))), np.array([1], np.int64))
