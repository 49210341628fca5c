"""`trivium.tensorflow.function` in place of `tf.function`: its options, unknown sizes, nesting, data sets, and Keras's
own training."""

import logging
import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

SOME = tf.TensorSpec((None, 3), tf.float32)


def numbers(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def assert_close(got: Any, wanted: Any) -> None:
    tf.nest.assert_same_structure(got, wanted, expand_composites=True)
    flat = (tf.nest.flatten(x, expand_composites=True) for x in (got, wanted))
    for mine, theirs in zip(*flat, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def total(x: Any) -> Any:
    return tf.reduce_sum(tf.nn.softmax(x), axis=0) + tf.cast(tf.shape(x)[0], x.dtype)


def compilations(caplog: pytest.LogCaptureFixture, what: str = "compiling") -> int:
    return sum(record.getMessage().startswith(what) for record in caplog.records)


def test_an_input_signature_of_unknown_size(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trivium.tensorflow")
    compiled = trivium.tensorflow.function(total, input_signature=[SOME])
    for size in (2, 5, 2):
        assert_close(compiled(numbers(size, 3)), total(numbers(size, 3)))
    assert_close(compiled([[1, 2, 3]]), total(tf.constant([[1.0, 2.0, 3.0]])))
    assert compilations(caplog) == 3
    with pytest.raises(TypeError):
        compiled(numbers(2, 4))


def test_numbers_become_tensors_where_the_signature_has_them() -> None:
    signature = [SOME, tf.TensorSpec((), tf.float32)]
    compiled = trivium.tensorflow.function(lambda x, by: x * by, input_signature=signature)
    assert_close(compiled(numbers(2, 3), 2), numbers(2, 3) * 2)
    assert_close(compiled(numbers(2, 3), 3.5), numbers(2, 3) * 3.5)
    assert len(compiled._compiled) == 1


def test_reduced_retracing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trivium.tensorflow")
    compiled = trivium.tensorflow.function(total, reduce_retracing=True, jit_compile=True)
    for size in (2, 3, 4, 5):
        assert_close(compiled(numbers(size, 3)), total(numbers(size, 3)))
    assert compilations(caplog, "tracing") == 2


def test_without_autograph() -> None:
    @trivium.tensorflow.function(autograph=False)
    def function(x: Any) -> Any:
        return x + 1 if x > 0 else x

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        function(tf.constant(1.0))


def test_options_of_a_function_that_has_been_made() -> None:
    with pytest.raises(trivium.Error, match="given with the options autograph"):
        trivium.tensorflow.function(tf.function(total), autograph=False)


def test_concrete_functions() -> None:
    compiled = trivium.tensorflow.function(total)
    concrete = compiled.get_concrete_function(SOME)
    for size in (2, 4):
        assert_close(concrete(numbers(size, 3)), total(numbers(size, 3)))
    assert concrete.structured_input_signature[0][0].shape == (None, 3)
    assert_close(
        trivium.evaluate(trivium.from_tensorflow(compiled, numbers(2, 3)), numbers(2, 3))[0], total(numbers(2, 3))
    )


def test_one_inside_another_is_a_part_of_its_program() -> None:
    count = tf.Variable(0.0)

    @trivium.tensorflow.function
    def inner(x: Any, by: float) -> Any:
        count.assign_add(1)
        return {"y": x * by + count}

    outer = trivium.tensorflow.function(lambda x: inner(x, 2.0)["y"] - inner(x, 3.0)["y"])
    x = numbers(2, 3)
    assert_close(outer(x), x * 2 + 1 - x * 3 - 2)
    concrete = outer.get_concrete_function(x)
    assert not any("PyFunc" in node.type for node in concrete.graph.get_operations())


def test_in_a_function_of_unknown_size() -> None:
    weight = tf.Variable(numbers(3, 2))
    layer = trivium.tensorflow.function(lambda x: tf.tanh(x @ weight))

    def gradients(layer: Any, x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x) ** 2)
        return loss, tape.gradient(loss, [x, weight])

    outer = tf.function(lambda x: gradients(layer, x), input_signature=[SOME])
    assert outer.get_concrete_function().graph.get_operations()
    for size in (1, 4):
        x = numbers(size, 3)
        assert_close(outer(x), gradients(lambda x: tf.tanh(x @ weight), x))


@pytest.mark.parametrize("unknown", [False, True])
def test_gradients_that_are_not_connected(unknown: bool) -> None:
    weight, unused = tf.Variable(2.0), tf.Variable(1.0)
    signature = [SOME, SOME] if unknown else None

    @trivium.tensorflow.function(input_signature=signature)
    def function(x: Any, y: Any) -> Any:
        return tf.reduce_sum(x * weight), tf.reduce_sum(y) + unused

    x, y = numbers(2, 3), numbers(3, 3)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        first, _ = function(x, y)
    found = tape.gradient(first, [x, y, weight, unused])
    assert found[1] is None or not np.any(found[1])  # zeros, for another result, which has no upstream gradient
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        first = trivium.tensorflow.function(lambda x, y: (x * weight, unused + 0))(x, y)
    found = tape.gradient(first[0], [x, y, weight])
    assert found[1] is None
    assert_close(found[0], tf.fill((2, 3), 2.0))


def test_tensors_that_a_function_captures_have_gradients() -> None:
    captured = numbers(3)
    compiled = trivium.tensorflow.function(lambda x: x * captured)
    with tf.GradientTape() as tape:
        tape.watch(captured)
        y = compiled(numbers(2, 3))
    assert_close(tape.gradient(y, captured), tf.reduce_sum(numbers(2, 3), 0))


def test_the_same_variable_twice() -> None:
    variable = tf.Variable([1.0, 2.0])

    @trivium.tensorflow.function
    def move(one: Any, other: Any) -> Any:
        one.assign_add([1.0, 1.0])
        return other + 0

    assert_close(move(variable, variable), tf.constant([2.0, 3.0]))


def test_a_variable_that_is_only_assigned() -> None:
    variable = tf.Variable([1.0, 2.0])
    trivium.tensorflow.function(lambda x: variable.assign(x))(tf.constant([3.0, 4.0]))
    assert_close(variable.value(), tf.constant([3.0, 4.0]))


@pytest.mark.parametrize(
    "tensor",
    [tf.ragged.constant([[1.0], [2.0, 3.0]]), tf.sparse.from_dense([[0.0, 1.0], [2.0, 0.0]])],
    ids=["ragged", "sparse"],
)
def test_tensors_of_several_parts(tensor: Any) -> None:
    def double(x: Any) -> Any:
        return tf.nest.map_structure(
            lambda part: part * 2 if part.dtype.is_floating else part, x, expand_composites=True
        )

    assert_close(trivium.tensorflow.function(double)(tensor), double(tensor))


# Data sets, Keras


def test_a_data_set() -> None:
    compiled = trivium.tensorflow.function(lambda x: total(x) * 2)
    numbers_of = tf.data.Dataset.from_tensor_slices(numbers(5, 3)).batch(2)
    for got, x in zip(numbers_of.map(compiled), numbers_of, strict=True):
        assert_close(got, total(x) * 2)


def model_of() -> Any:
    keras.utils.set_random_seed(0)
    layers = keras.layers
    return keras.Sequential([layers.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(1)])


def test_keras_trains_a_model_with_a_compiled_step() -> None:
    x, y = numbers(10, 3).numpy(), numbers(10, 1).numpy()

    def trained(compiler: Any) -> Any:
        model = model_of()
        model.train_step = compiler(model.train_step)
        model.compile("adam", "mse", jit_compile=False)
        losses = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0).history["loss"]
        return losses, model.get_weights()

    assert_close(trained(trivium.tensorflow.function), trained(lambda step: step))


def test_xla_compiles_what_is_inside_its_own_functions(caplog: pytest.LogCaptureFixture) -> None:
    compiled = trivium.tensorflow.function(total)
    outer = tf.function(lambda x: compiled(x) + 1, jit_compile=True)
    assert_close(outer(numbers(2, 3)), total(numbers(2, 3)) + 1)
    assert "XLA compiles total" in caplog.text


def test_keras_takes_a_compiled_loss() -> None:
    @trivium.tensorflow.function
    def loss(wanted: Any, given: Any) -> Any:
        return tf.reduce_mean(tf.abs(wanted - given), axis=-1)

    x, y = numbers(10, 3).numpy(), numbers(10, 1).numpy()
    ours, theirs = model_of(), model_of()
    for model, criterion in ((ours, loss), (theirs, "mae")):
        model.compile("sgd", criterion, jit_compile=False)
        model.fit(x, y, batch_size=4, shuffle=False, verbose=0)
    assert_close(ours.get_weights(), theirs.get_weights())


def test_it_may_replace_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that libraries that call `tf.function` use it, as Keras's training does."""
    x, y = numbers(12, 3), numbers(12, 1)

    def losses() -> list[float]:
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(0.1), "mse")
        return model.fit(x, y, epochs=3, batch_size=4, shuffle=False, verbose=0).history["loss"]

    wanted = losses()
    monkeypatch.setattr(tf, "function", trivium.tensorflow.function)
    np.testing.assert_allclose(losses(), wanted, rtol=1e-4)
    assert_close(tf.function(total)(numbers(4, 3)), total(numbers(4, 3)))
