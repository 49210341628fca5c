"""Sets in dense and sparse tensors, against TensorFlow: of any sizes, without elements, without sets, and operands that
it rejects."""

import functools
import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium
import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)
RAW = tf.raw_ops
OPERATIONS = {
    "a-b": tf.sets.difference,
    "b-a": functools.partial(tf.sets.difference, aminusb=False),
    "intersection": tf.sets.intersection,
    "union": tf.sets.union,
}


def dense(*shape: int, dtype: Any = np.int32) -> Any:
    low = 0 if np.dtype(dtype).kind == "u" else -3
    return tf.constant(RANDOM.integers(low, 4, shape).astype(dtype))


def sparse(*shape: int, count: int, dtype: Any = np.int32) -> Any:
    places = np.sort(RANDOM.permutation(np.prod(shape, dtype=int))[:count])
    indices = np.stack(np.unravel_index(places, shape), 1) if count else np.zeros((0, len(shape)))
    return tf.SparseTensor(indices.astype(np.int64), dense(count, dtype=dtype), shape)


def parts(x: Any) -> list[Any]:
    return tf.nest.flatten(x, expand_composites=True)


PAIRS = {
    "dense": (dense(3, 4), dense(3, 2)),
    "dense and empty": (dense(2, 0, dtype=np.int64), dense(2, 3, dtype=np.int64)),
    "both empty": (dense(2, 0, dtype=np.int8), dense(2, 0, dtype=np.int8)),
    "no sets": (dense(0, 3), dense(0, 2)),
    "of two dimensions": (dense(2, 2, 3, dtype=np.uint8), dense(2, 2, 4, dtype=np.uint8)),
    "dense and sparse": (dense(3, 4, dtype=np.uint16), sparse(3, 5, count=7, dtype=np.uint16)),
    "sparse and empty": (sparse(3, 4, count=6), sparse(3, 5, count=0)),
    "both sparse and empty": (sparse(3, 4, count=0), sparse(3, 5, count=0)),
    "sparse of two dimensions": (
        sparse(2, 3, 4, count=9, dtype=np.int16),
        sparse(2, 3, 3, count=8, dtype=np.int16),
    ),
    "large numbers": tuple(tf.constant([[2**63 - 1, x, -(2**63), 0]]) for x in (5, -(2**62))),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(operation: str, name: str) -> None:
    f, given = OPERATIONS[operation], PAIRS[name]
    expected = parts(f(*given))
    require_same(parts(trivium.tensorflow.function(f, fallback=False)(*given)), expected)

    def flat(*arrays: Any) -> list[Any]:
        return parts(f(*tf.nest.pack_sequence_as(given, arrays, expand_composites=True)))

    arrays = [x.numpy() for x in parts(given)]
    opened = [tf.TensorSpec([None, *x.shape[1:]] if x.ndim > 1 else x.shape, x.dtype) for x in arrays]
    for specs in (arrays, opened if all(x.ndim > 1 for x in arrays) else arrays):
        module = trivium.from_tensorflow(tf.function(flat), *specs)
        module.verify()
        require_same(trivium.evaluate(module, *arrays), expected)


def require_same(got: Any, expected: list[Any]) -> None:
    for mine, theirs in zip(got, expected, strict=True):
        assert (mine.dtype, tuple(mine.shape)) == (theirs.dtype, tuple(theirs.shape))
        np.testing.assert_array_equal(mine, theirs)


SIZED = [sparse(3, 4, count=8), sparse(2, 3, 4, count=15, dtype=np.int64), sparse(2, 3, count=0), sparse(2, 0, count=0)]
SIZED.append(sparse(0, 4, count=0))


@pytest.mark.parametrize("place", range(len(SIZED)))
def test_sizes(place: int) -> None:
    x = SIZED[place]
    expected = [tf.sets.size(x)]
    require_same([trivium.tensorflow.function(tf.sets.size, fallback=False)(x)], expected)
    indices, values, shape = (each.numpy() for each in parts(x))
    module = trivium.from_tensorflow(
        tf.function(lambda *given: tf.sets.size(tf.SparseTensor(*given))),
        tf.TensorSpec([None, len(shape)], tf.int64),
        tf.TensorSpec([None], values.dtype),
        tf.TensorSpec([len(shape)], tf.int64),
    )
    module.verify()
    require_same(trivium.evaluate(module, indices, values, shape), expected)


A = sparse(3, 4, count=6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (A, sparse(2, 4, count=4)),
        (tf.SparseTensor(A.indices[::-1], A.values, A.dense_shape), A),
        (A, tf.SparseTensor(tf.gather(A.indices, [0, 1, 1, 2, 3, 4]), A.values, A.dense_shape)),
        (A, tf.SparseTensor(A.indices, A.values, [3, 1])),
        (A, tf.SparseTensor(A.indices - [0, 4], A.values, [3, 4])),
        (dense(3, 4), sparse(2, 4, count=4)),
        (dense(3, 4), tf.SparseTensor(A.indices[::-1], A.values, A.dense_shape)),
    ],
)
def test_operands_that_tensorflow_rejects(one: Any, other: Any) -> None:
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        tf.sets.union(one, other)
    with pytest.raises(trivium.Error, match="expected tensors of sets whose shapes are alike, with indices in order"):
        trivium.tensorflow.function(tf.sets.union, fallback=False)(one, other)


def test_indices_that_are_not_validated() -> None:
    """An element whose index is repeated is one more element of its set."""
    indices, values = np.array([[0, 0], [0, 0], [2, 1]]), np.int32([4, 1, 2])

    def sizes(indices: Any, values: Any) -> Any:
        return RAW.SetSize(set_indices=indices, set_values=values, set_shape=[3, 2], validate_indices=False)

    def union(indices: Any, values: Any) -> Any:
        return RAW.DenseToSparseSetOperation(
            set1=[[1, 1], [2, 3], [0, 0]], set2_indices=indices, set2_values=values, set2_shape=[3, 2],
            set_operation="UNION", validate_indices=False,
        )  # fmt: skip

    for f in (sizes, union):
        found = trivium.tensorflow.function(f, fallback=False)(tf.constant(indices), tf.constant(values))
        require_same(parts(found), parts(f(indices, values)))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (
            lambda x: RAW.DenseToDenseSetOperation(set1=x, set2=x, set_operation="xor"),
            "set_operation has xor, expected",
        ),
        (lambda x: tf.sets.union(x, x[1:]), r"set2 has sets in a tensor of \[2\], expected sets in a tensor of \[3\]"),
        (
            lambda x: RAW.SetSize(set_indices=[[0], [1]], set_values=x[0], set_shape=[2]),
            "set_indices has sets in a tensor of rank 1, expected rank 2 or higher",
        ),
    ],
)
def test_arguments_that_do_not_fit(f: Any, message: str) -> None:
    with pytest.raises(trivium.Error, match=message):
        trivium.from_tensorflow(tf.function(f, [tf.TensorSpec([None, 2], tf.int32)]), np.zeros((3, 2), np.int32))
