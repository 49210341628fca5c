"""Ops whose extents depend on data: compiled with room for all that there can be, and counted. What uses them is
compiled for each size."""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow
from trivium.ir.errors import Error, UnsupportedOpError

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)
raw = tf.raw_ops


def assert_same(got: Any, wanted: Any) -> None:
    flat = (tf.nest.flatten(x, expand_composites=True) for x in (got, wanted))
    for mine, theirs in zip(*flat, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(
            *(np.asarray(tf.cast(x, tf.complex128)) for x in (mine, theirs)), rtol=1e-5, atol=1e-6
        )


def floats(*shape: int) -> Any:
    return tf.constant(RANDOM.standard_normal(shape).astype(np.float32))


def integers(below: int, *shape: int) -> Any:
    return tf.constant(RANDOM.integers(0, below, shape).astype(np.int32))


def mask(*shape: int, share: float = 0.5) -> Any:
    return tf.constant(RANDOM.random(shape) < share)


def numbers(dtype: Any, shape: tuple[int, ...]) -> Any:
    """Returns a few different numbers, among them zeros of both signs and NaN."""
    values = RANDOM.integers(0, 4, shape).astype(np.float64)
    if dtype.is_floating:
        values = np.where(RANDOM.random(shape) < 0.2, np.where(RANDOM.random(shape) < 0.5, np.nan, -0.0), values)
    return tf.cast(values, dtype)


# Elements of any dtype


def several(x: Any, parts: Any) -> Any:
    return tf.where(x), tf.boolean_mask(x, parts > 0)


def distinct(x: Any) -> Any:
    return tf.unique(x, tf.int64), tf.unique_with_counts(x)


@pytest.mark.parametrize("dtype", [tf.bool, tf.uint64, tf.bfloat16, tf.complex64], ids=lambda dtype: dtype.name)
def test_results_have_the_rows_that_exist(dtype: Any) -> None:
    compiled = trivium.tensorflow.function(several, fallback=False)
    for shape in ((2, 3, 2), (0, 2)):
        x, parts = numbers(dtype, shape), integers(3, *shape)
        assert_same(compiled(x, parts), several(x, parts))


@pytest.mark.parametrize("dtype", [tf.int8, tf.uint64, tf.bfloat16, tf.float64], ids=lambda dtype: dtype.name)
def test_distinct_elements_come_in_their_order(dtype: Any) -> None:
    compiled = trivium.tensorflow.function(distinct, fallback=False)
    for size in (9, 9, 9, 0):
        x = numbers(dtype, (size,))
        assert_same(compiled(x), distinct(x))


def test_a_scalar() -> None:
    for x in (True, False):
        found = trivium.tensorflow.function(tf.where, fallback=False)(tf.constant(x))
        assert found.shape == (int(x), 0)


def test_known_elements_have_known_sizes() -> None:
    def known() -> Any:
        x = tf.constant([2.0, float("nan"), 0.0, -0.0, 2.0])
        return tf.where(x), distinct(x), raw.UniqueV2(x=[[1, 2], [3, 4], [1, 2]], axis=[0]), tf.range(0.9, 0.0, -0.3)

    assert_same(trivium.tensorflow.function(known, fallback=False)(), known())


# Functions, and their arguments one after the other

CASES: dict[str, tuple[Callable[..., Any], Sequence[Sequence[Any]]]] = {}


def case(*calls: Sequence[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        CASES[f.__name__] = (f, calls)
        return f

    return register


def slopes(f: Callable[[Any], Any], x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        found, loss = f(x)
    return found, loss, tf.convert_to_tensor(tape.gradient(loss, x))


@case((floats(6, 2), integers(3, 6)), (floats(4, 2), tf.zeros(4, tf.int32)), (floats(0, 2), tf.zeros(0, tf.int32)))
def partitions(x: Any, which: Any) -> Any:
    def f(x: Any) -> Any:
        parts = tf.dynamic_partition(x, which, 3)
        return parts, tf.add_n([tf.reduce_sum(tf.sin(y) * (i + 1)) for i, y in enumerate(parts)])

    return slopes(f, x)


@case((floats(2, 3, 2), integers(2, 2, 3)))
def put_together(x: Any, which: Any) -> Any:
    places = tf.dynamic_partition(tf.reshape(tf.range(6), (2, 3)), which, 2)
    first, second = tf.dynamic_partition(x, which, 2)
    return tf.dynamic_stitch(places, [first * 2, second * 3])


@case((0.0, 10.0, 0.1), (1.0, 0.9, -0.3), (0.0, 3000.0, 1.0), (2.0, 2.0, 1.0), (0.0, 0.9, 0.3))
def ranges(start: Any, limit: Any, delta: Any) -> Any:
    whole = tf.range(*(tf.cast(tf.round(x * 2), tf.int32) for x in (start, limit)), tf.cast(tf.sign(delta), tf.int32))
    return tf.range(start, limit, delta), whole


@case((floats(3, 2), tf.constant([2.0, 0.0, 3.0])), (floats(3, 2), tf.zeros(3)))
def repeated(x: Any, times: Any) -> Any:
    return tf.repeat(x, tf.cast(times, tf.int32), axis=0) * 2


@case((integers(2, 6, 3),), (integers(2, 3, 1),))
def distinct_rows(x: Any) -> Any:
    return raw.UniqueV2(x=x, axis=[0]), raw.UniqueWithCountsV2(x=tf.cast(x, tf.float32), axis=[1])


@case((integers(6, 9), integers(6, 3)), (integers(6, 0), integers(6, 3)), (integers(6, 4), integers(6, 0)))
def differences(x: Any, y: Any) -> Any:
    return raw.ListDiff(x=x, y=y, out_idx=tf.int64)


@case((floats(3, 5), mask(5)))
def other_dimensions(x: Any, mask: Any) -> Any:
    return tf.boolean_mask(x, mask, axis=1), tf.where(mask)[1:], tf.expand_dims(tf.where(mask), 0)


@case((integers(10, 6), floats(10, 3)), (integers(10, 6), floats(10, 3)))
def rows_of_distinct_numbers(ids: Any, table: Any) -> Any:
    def f(table: Any) -> Any:
        found, places = tf.unique(ids)
        rows = tf.nn.embedding_lookup(table, found)
        sums = tf.math.unsorted_segment_sum(tf.gather(table, ids), places, tf.size(found))
        return sums, tf.reduce_sum(tf.sin(tf.gather(rows, places)))

    return slopes(f, table)


@case(*((floats(6, 3), mask(6, share=share)) for share in (0.5, 0, 1)))
def chosen(x: Any, mask: Any) -> Any:
    """Computes with rows that are chosen, and chooses among them again."""

    def f(x: Any) -> Any:
        rows = tf.boolean_mask(x, mask)
        again = tf.boolean_mask(rows, rows[:, 0] > 0)
        joined = tf.concat([rows @ tf.ones((3, 2)), tf.gather(x, tf.where(mask)[:, 0])[:, :2]], 0)
        return (joined, again, tf.shape(rows)[0]), tf.reduce_sum(tf.sin(joined)) + tf.reduce_mean(x) + tf.norm(
            again + 1
        )

    return slopes(f, x)


@case((floats(5, 2), tf.constant([True, False, True, True, False])), (floats(5, 2), tf.zeros(5, tf.bool)))
def loops(x: Any, mask: Any) -> Any:
    rows = tf.boolean_mask(x, mask)
    total, array = tf.zeros(2), tf.TensorArray(tf.float32, tf.shape(rows)[0], element_shape=(2,))
    for i in tf.range(tf.shape(rows)[0]):
        total += rows[i] * tf.cast(i + 1, tf.float32)
        array = array.write(i, total)
    return total, array.stack()


@case((floats(5, 2), tf.constant([1, 2])))
def computed_bounds(x: Any, n: Any) -> Any:
    k = tf.reduce_sum(n)
    return x[:k] * 2, tf.reshape(x[:k], [k, 1, 2]), tf.fill([k * 2], 3.0), tf.zeros([k, 2])


@pytest.mark.parametrize("name", CASES)
def test_without_fallback(name: str) -> None:
    f, calls = CASES[name]
    compiled = trivium.tensorflow.function(f, fallback=False)
    for args in calls:
        args = [tf.convert_to_tensor(x) for x in args]
        assert_same(compiled(*args), tf.function(f)(*args))


@pytest.mark.parametrize("name", ["chosen", "loops", "ranges"])
def test_in_a_graph_of_unknown_sizes(name: str, caplog: pytest.LogCaptureFixture) -> None:
    f, calls = CASES[name]
    given = [[tf.convert_to_tensor(x) for x in args] for args in calls]
    signature = [tf.TensorSpec((None, *x.shape[1:]) if x.shape.rank else (), x.dtype) for x in given[0]]
    around = tf.function(trivium.tensorflow.function(f), input_signature=signature)
    for args in given:
        assert_same(around(*args), tf.function(f)(*args))
    assert not [record for record in caplog.records if "runs in TensorFlow" in record.getMessage()]


def test_variables_change_in_order() -> None:
    def outcomes(decorate: Callable[..., Any]) -> Any:
        total, count = tf.Variable([0.0, 0.0]), tf.Variable(0)

        @decorate
        def step(x: Any, mask: Any) -> Any:
            rows = tf.boolean_mask(x, mask) + total
            total.assign_add([1.0, 2.0])
            count.assign_add(tf.shape(rows)[0])
            again = tf.boolean_mask(rows, rows[:, 0] > 0) + total
            total.assign(total * 2)
            count.assign_add(tf.shape(again)[0] * 10)
            return rows, again

        found = [step(x, each) for x, each in CASES["chosen"][1] for x in [x[:, :2]]]
        return found, total.read_value(), count.read_value()

    wanted = outcomes(tf.function)
    assert_same(outcomes(lambda f: trivium.tensorflow.function(f, fallback=False)), wanted)
    assert_same(outcomes(lambda f: tf.function(trivium.tensorflow.function(f))), wanted)


@pytest.mark.parametrize("around", [False, True], ids=["eager", "graph"])
def test_a_tape_outside(around: bool) -> None:
    def squares(x: Any, mask: Any) -> Any:
        return tf.reduce_sum(tf.boolean_mask(x, mask) ** 2)

    compiled = trivium.tensorflow.function(squares, fallback=False)
    compiled = tf.function(compiled) if around else compiled
    x = tf.Variable(floats(5, 3))
    for share in (0.5, 0):
        chosen, found = mask(5, share=share), []
        for f in (compiled, squares):
            with tf.GradientTape() as tape:
                loss = f(x, chosen)
            found.append(tf.convert_to_tensor(tape.gradient(loss, x)))
        assert_same(*found)


def test_choosing_is_compiled_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trivium.tensorflow")
    compiled = trivium.tensorflow.function(tf.boolean_mask, fallback=False)
    for share in (0, 0.3, 0.6, 1):
        x, chosen = floats(8, 2), mask(8, share=share)
        assert_same(compiled(x, chosen), tf.boolean_mask(x, chosen))
    assert sum(record.getMessage().startswith("compiling") for record in caplog.records) == 1


def test_programs_for_sizes_are_bounded_and_explained(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivium.tensorflow.compiled.COMPILED_AT_ONCE", 100)

    def sums(mask: Any) -> Any:
        return tf.reduce_sum(tf.where(mask), 0)

    compiled = trivium.tensorflow.function(sums, fallback=False, programs=2)
    for count in (1, 2, 3, 3):
        chosen = tf.range(5) < count
        assert_same(compiled(chosen), sums(chosen))
    assert sum("the option programs" in record.getMessage() for record in caplog.records) == 1
    assert "Where is compiled for each size or value" in trivium.explain()


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: tf.dynamic_partition(x, x, 2), [0, 2], "partitions from 0 to 1"),
        (lambda x: tf.dynamic_stitch([x], [x]), [0, -2], "indices from 0 on"),
        (lambda x: tf.range(x[0] + 1, x[1]), [3, 1], "a delta that leads from start to limit"),
    ],
)
def test_what_tensorflow_rejects_is_rejected(f: Callable[[Any], Any], x: list[int], expected: str) -> None:
    with pytest.raises(Error, match=f"out of range, expected {expected}"):
        trivium.tensorflow.function(f)(tf.constant(x))


def test_in_branches_tensorflow_runs_them() -> None:
    def either(x: Any, mask: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.boolean_mask(x, mask), lambda: x) * 2

    x, chosen = floats(4, 2), mask(4)
    assert_same(trivium.tensorflow.function(either)(x, chosen), either(x, chosen))
    with pytest.raises(UnsupportedOpError, match="If: argument input has a size that depends on data"):
        trivium.tensorflow.function(either, fallback=False)(x, chosen)


def test_a_model_whose_loss_takes_chosen_rows() -> None:
    def fitted(wrap: Callable[..., Any]) -> Any:
        tf.keras.utils.set_random_seed(1)
        inputs = tf.keras.Input((3,))
        model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(tf.keras.layers.Masking()(inputs)))

        def loss(y: Any, found: Any) -> Any:
            return tf.reduce_mean(tf.square(tf.boolean_mask(found - y, y[:, 0] > 0)))

        model.compile("sgd", loss)
        model.train_step = wrap(model.train_step)
        x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
        history = model.fit(x, x[:, 1:2], batch_size=4, epochs=2, shuffle=False, verbose=0).history
        return history["loss"], [np.asarray(x) for x in model.get_weights()]

    got, wanted = fitted(trivium.tensorflow.function), fitted(lambda f: f)
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-5)
    for mine, theirs in zip(got[1], wanted[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
