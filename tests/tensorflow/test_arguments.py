"""What arguments of a compiled function may be: variables, iterators, generators, what was fixed when the function was
traced; methods; and how many programs are kept."""

import inspect
import logging
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import trivium.tensorflow

pytestmark = pytest.mark.tensorflow

BOTH = (trivium.tensorflow.function, tf.function)
SOME = tf.TensorSpec((None, 3), name="x")


def ones(*shape: int) -> Any:
    return tf.ones(shape)


def assert_same(calculate: Callable[[Any], Any]) -> None:
    """Compares what is calculated with Trivium's functions with what it is with TensorFlow's."""
    got, wanted = (tf.nest.flatten(calculate(function)) for function in BOTH)
    assert [x is None for x in got] == [x is None for x in wanted]
    for mine, theirs in zip(got, wanted, strict=True):
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


def test_a_concrete_function_binds_its_arguments_as_tensorflow_does() -> None:
    for function in BOTH:
        concrete = function(lambda value, by=2.0: value * by).get_concrete_function(SOME)
        for result in (concrete(ones(1, 3)), concrete(x=ones(1, 3)), concrete(ones(1, 3), 2.0)):
            np.testing.assert_array_equal(result, 2 * ones(1, 3))
        with pytest.raises(TypeError):
            concrete(ones(1, 3), 3.0)  # another number than the one it was traced for
        with pytest.raises(TypeError):
            concrete(ones(1, 3), ones(1, 3))


@pytest.mark.parametrize("other", [tf.ones((1, 4)), tf.ones((1, 3), tf.int32)])
def test_a_concrete_function_refuses_other_tensors(other: Any) -> None:
    concrete = trivium.tensorflow.function(lambda value: value * 2).get_concrete_function(SOME)
    with pytest.raises(trivium.Error, match=r"argument x of .* has .*, expected float32\(None, 3\)"):
        concrete(other)


def test_a_concrete_function_of_variables_takes_others() -> None:
    def calculate(function: Any) -> Any:
        one, other, third = tf.Variable(1.0), tf.Variable(10.0), tf.Variable(100.0)

        @function
        def move(x: Any, one: Any, other: Any) -> Any:
            other.assign_add(x)
            return other * x - one

        concrete = move.get_concrete_function(tf.TensorSpec(()), other=other, one=one)
        results = [concrete(tf.constant(2.0), one, other), concrete(tf.constant(2.0), other=one, one=other)]
        with tf.GradientTape() as tape:
            y = concrete(tf.constant(3.0), third, other)
        return results, tape.gradient(y, [one, other, third]), one.numpy(), other.numpy(), third.numpy()

    assert_same(calculate)


def test_variables_by_keyword_are_not_exchanged() -> None:
    def calculate(function: Any) -> Any:
        one, other = tf.Variable(1.0), tf.Variable(10.0)

        @function
        def move(*, second: Any, first: Any) -> Any:
            return first.assign_add(second)

        return [float(move(second=a, first=b)) for a, b in ((one, other), (other, one))], one.numpy(), other.numpy()

    assert_same(calculate)


def test_each_iterator_gives_its_own_elements() -> None:
    def calculate(function: Any) -> Any:
        numbers = tf.data.Dataset.range(3)
        following = function(lambda iterator: next(iterator) * 10)
        first, second = iter(numbers), iter(numbers)
        results = [following(first), following(first), following(second), following(first), following(second)]
        with pytest.raises(tf.errors.OutOfRangeError):
            following(first)
        return results, following(second)

    assert_same(calculate)


def test_generators_as_arguments() -> None:
    def calculate(function: Any) -> Any:
        draw = function(lambda generator: generator.normal((2,)))
        one, other = (tf.random.Generator.from_seed(seed) for seed in (1, 2))
        return [draw(one), draw(other), draw(one), draw(other)]

    assert_same(calculate)


class Model(tf.Module):
    """A model whose methods are compiled."""

    def __init__(self, factor: float) -> None:
        self.factor = tf.Variable(factor)

    @trivium.tensorflow.function
    def scaled(self, x: Any) -> Any:
        return {"y": x * self.factor}


def test_methods_have_concrete_functions() -> None:
    models = [Model(2.0), Model(3.0)]
    concrete = [model.scaled.get_concrete_function(SOME) for model in models]
    for model, function in zip(models, concrete, strict=True):
        wanted = ones(1, 3) * model.factor
        np.testing.assert_array_equal(model.scaled(ones(1, 3))["y"], wanted)
        np.testing.assert_array_equal(function(ones(1, 3))["y"], wanted)


def test_a_saved_model_of_compiled_functions(tmp_path: Path) -> None:
    model = Model(2.0)
    concrete = model.scaled.get_concrete_function(SOME)
    tf.saved_model.save(model, str(tmp_path), signatures={"scaled": concrete})
    loaded = tf.saved_model.load(str(tmp_path)).signatures["scaled"]
    np.testing.assert_array_equal(loaded(x=ones(2, 3))["y"], ones(2, 3) * 2)
    assert not any("PyFunc" in node.type for node in loaded.graph.get_operations())


def test_a_saved_model_cannot_contain_compiled_nodes(tmp_path: Path) -> None:
    model, double = tf.Module(), trivium.tensorflow.function(lambda x: x * 2)
    model.quadruple = tf.function(lambda x: double(double(x)), input_signature=[SOME])
    with pytest.raises(ValueError, match="gradients for SavedModel") as caught:
        tf.saved_model.save(model, str(tmp_path))
    assert "expected TensorFlow's own functions there" in str(caught.value.__context__)


def test_autograph_does_not_convert_how_functions_are_called() -> None:
    frames = []

    @trivium.tensorflow.function(autograph=False)
    def double(x: Any) -> Any:
        frames.extend((frame.filename, frame.name) for frame in traceback.extract_stack())
        return x * 2

    np.testing.assert_array_equal(tf.function(lambda x: double(x))(ones(3)), 2 * ones(3))
    assert (inspect.getfile(trivium.tensorflow.Function), "__call__") in frames


# How many programs are kept


def test_the_last_programs_are_kept(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trivium.tensorflow.compiled.COMPILED_AT_ONCE", 100)
    caplog.set_level(logging.INFO, "trivium.tensorflow")
    compiled = trivium.tensorflow.function(tf.reduce_sum, input_signature=[tf.TensorSpec((None,))], programs=2)
    for size in (1, 2, 1, 3, 1, 2, 4):
        assert compiled(ones(size)) == size
    messages = [record.getMessage() for record in caplog.records]
    # 2 goes when 3 comes, 3 when 2 comes again, and 1 when 4 comes.
    assert sum(message.startswith("compiling") for message in messages) == 5
    told = [message for message in messages if "the option programs" in message]
    assert len(told) == 1
    assert "has programs for 2 combinations of sizes or values" in told[0]


def test_programs_for_values_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "trivium.tensorflow")

    @trivium.tensorflow.function(fallback=False, programs=2)
    def steps(x: Any, count: Any) -> Any:
        rows = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=())
        for index in tf.range(count):
            rows = rows.write(index, x)
        return rows.stack()

    for count in (1, 2, 3, 4, 4):
        np.testing.assert_array_equal(steps(tf.constant(2.0), tf.constant(count)), [2.0] * count)
    (code,) = [trace.compiled.run._code for trace in steps._compiled.values()]
    assert len(code) == 2
    assert sum("the option programs" in record.getMessage() for record in caplog.records) == 1


def test_the_number_of_programs_is_checked() -> None:
    with pytest.raises(trivium.Error, match="the option programs has 0, expected a positive number"):
        trivium.tensorflow.function(lambda x: x, programs=0)


def test_many_traces_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    compiled = trivium.tensorflow.function(lambda x, by: x + by)
    for number in range(11):
        assert compiled(tf.constant(1), number) == 1 + number
    told = [x.getMessage() for x in caplog.records if "has been traced" in x.getMessage()]
    assert len(told) == 1
    assert "tensors instead of Python numbers" in told[0]
