"""Sparse tensors as arguments: sorted, joined, added, cut and normalized, with gradients."""

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)


def sparse(shape: tuple[int, ...], count: int, dtype: Any = np.float32) -> Any:
    """Returns a sparse tensor of small numbers, none of them zero."""
    dense = np.zeros(shape, dtype)
    dense.ravel()[RANDOM.permutation(dense.size)[:count]] = RANDOM.choice([-2, -1, 1, 2], count)
    return tf.sparse.from_dense(dense)


def shuffled(x: Any) -> Any:
    order = RANDOM.permutation(len(x.values))
    return tf.SparseTensor(tf.gather(x.indices, order), tf.gather(x.values, order), x.dense_shape)


A, B = sparse((3, 4), 7), sparse((3, 4), 6)
WHOLE, NONE = sparse((3, 4), 12, np.int64), sparse((3, 4), 0, np.int64)
WITHOUT_GRADIENTS: dict[str, tuple[Callable[..., Any], list[list[Any]]]] = {
    "maximum": (tf.sparse.maximum, [[A, B], [WHOLE, NONE], [A, sparse((3, 4), 1)]]),
    "minimum": (tf.sparse.minimum, [[A, B], [NONE, WHOLE], [A, sparse((3, 4), 1)]]),
}
CASES: dict[str, tuple[Callable[..., Any], list[list[Any]]]] = {
    "reorder": (tf.sparse.reorder, [[shuffled(sparse((2, 3, 4), 9))]]),
    "add": (lambda a, b: tf.sparse.add(a, b, threshold=2.5), [[A, B], [A, sparse((3, 4), 0)]]),
    "sum": (tf.sparse.add, [[A, A]]),
    "concat": (lambda a, b: tf.sparse.concat(-1, [a, b, a]), [[A, B], [sparse((3, 4), 0), A]]),
    "concat rows": (lambda a, b: tf.sparse.concat(0, [a, b]), [[A, sparse((2, 4), 5)]]),
    "slice": (lambda a: tf.sparse.slice(a, [1, 1], [2, 9]), [[A], [sparse((3, 4), 1)]]),
    "slice of nothing": (lambda a: tf.sparse.slice(a, [9, 0], [2, 2]), [[A]]),
    "softmax": (tf.sparse.softmax, [[A], [sparse((2, 3, 4), 9, np.float64)], [sparse((2, 3), 0)]]),
}
for name, f in (("sum", tf.sparse.reduce_sum), ("maximum", tf.sparse.reduce_max)):
    for axis in (0, -1, [0, 1], []):
        for keep in (False, True):
            given = [[A], [shuffled(sparse((3, 4), 9))], [sparse((2, 3, 4), 9, np.float64)], [sparse((3, 4), 0)]]
            reduced = functools.partial(f, axis=axis, keepdims=keep, output_is_sparse=True)
            WITHOUT_GRADIENTS[f"{name} along {axis}{', kept' * keep}"] = reduced, given


def with_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    def calculate(*args: Any) -> Any:
        values = [x.values for x in args]
        with tf.GradientTape() as tape:
            tape.watch(values)
            found = f(*(tf.SparseTensor(x.indices, y, x.dense_shape) for x, y in zip(args, values, strict=True)))
            weights = tf.cast(tf.range(1, tf.size(found.values) + 1), found.values.dtype)
            loss = tf.reduce_sum(tf.sin(found.values) * weights)
        slopes = tape.gradient(loss, values, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return found, [tf.convert_to_tensor(x) for x in slopes]

    return calculate


@pytest.mark.parametrize("name", [*CASES, *WITHOUT_GRADIENTS])
def test_as_tensorflow(name: str) -> None:
    f, calls = CASES.get(name) or WITHOUT_GRADIENTS[name]
    calculate = with_gradients(f) if name in CASES else f
    compiled = trivium.tensorflow.function(calculate, fallback=False)
    for args in calls:
        flat = (tf.nest.flatten(f(*args), expand_composites=True) for f in (compiled, tf.function(calculate)))
        for mine, theirs in zip(*flat, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fallback", [True, False])
@pytest.mark.parametrize("name", ["add", "slice"])
def test_of_constants(name: str, fallback: bool) -> None:
    """Where all operands are known, only some rows of what is computed from them exist."""
    f, ((*given,), *_) = CASES[name]
    constants = [tf.SparseTensor(*(np.asarray(x) for x in (y.indices, y.values, y.dense_shape))) for y in given]
    found = trivium.tensorflow.function(lambda: f(*constants), fallback=fallback)()
    for got, wanted in zip(tf.nest.flatten(found, True), tf.nest.flatten(f(*given), True), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("count", "axis"), [(2, 1), (3, 1), (3, 0), (6, -1), (1, 0)])
def test_parts(count: int, axis: int) -> None:
    def split(x: Any) -> Any:
        return tf.sparse.split(sp_input=x, num_split=count, axis=axis)

    compiled = trivium.tensorflow.function(split, fallback=False)
    for x in (A, B, sparse((4, 7), 9), sparse((3, 6), 0)):
        if count <= x.shape[axis]:
            flat = (tf.nest.flatten(f(x), expand_composites=True) for f in (compiled, split))
            for mine, theirs in zip(*flat, strict=True):
                assert mine.dtype == theirs.dtype
                np.testing.assert_array_equal(mine, theirs)
