"""Bad input: each raises one clear error, with TensorFlow's own message if TensorFlow rejects it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

import trivium
import trivium.tensorflow

pytestmark = pytest.mark.tensorflow


def test_all_unsupported_ops_are_listed_at_once() -> None:
    @tf.function
    def exotic(x: Any) -> Any:
        return tf.strings.as_string(x), tf.io.serialize_tensor(x), tf.strings.as_string(x + 1)

    with pytest.raises(trivium.UnsupportedOpError) as caught:
        trivium.from_tensorflow(exotic, tf.ones((3, 3), tf.complex64))
    assert {op.name: op.count for op in caught.value.ops} == {"AsString": 2, "SerializeTensor": 1}
    assert "test_errors.py:" in caught.value.ops[0].first


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (3, (), "cannot import a int, expected a tf.function"),
        (tf.function(lambda x: x), (), "TensorFlow cannot trace .*missing a required argument"),
        (tf.function(lambda x: x @ x), (np.ones(3, np.float32),), "TensorFlow cannot trace .*must be rank"),
        ("nowhere", (), "cannot read nowhere as a SavedModel: No such file"),
    ],
)
def test_errors_of_tensorflow_are_reported(function: Any, args: tuple, message: str) -> None:
    with pytest.raises(trivium.Error, match=f"(?s){message}"):
        trivium.from_tensorflow(function, *args)


def test_a_damaged_saved_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"junk")
    with pytest.raises(trivium.Error, match="is not a SavedModel, or is damaged"):
        trivium.load(tmp_path)


def test_parameters_are_constants_or_arguments() -> None:
    with pytest.raises(trivium.Error, match="parameters has 'weights', expected 'constants' or 'arguments'"):
        trivium.from_tensorflow(tf.function(lambda x: x), tf.ones(3), parameters="weights")


RAW = tf.raw_ops


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        (
            lambda x, dy: RAW.DepthwiseConv2dNativeBackpropFilter(
                input=x, filter_sizes=[2, 2, 3, 1], out_backprop=dy, strides=[1, 1, 1, 1], padding="VALID"
            ),
            [(2, 5, 5), (2, 4, 4)],
            "argument input has rank 3, expected rank 4",
        ),
        (
            lambda x, dy: RAW.DepthwiseConv2dNativeBackpropFilter(
                input=x, filter_sizes=[2, 2, 3, 1], out_backprop=dy, strides=[1, 1, 1, 1], padding="VALID"
            ),
            [(2, 5, 5, 3), (2, 4, 4)],
            "argument out_backprop has rank 3, expected rank 4",
        ),
        (
            lambda x, dy: RAW.Conv2DBackpropFilter(
                input=x, filter_sizes=[2, 2, 0, 1], out_backprop=dy, strides=[1, 1, 1, 1], padding="VALID"
            ),
            [(2, 5, 5, 3), (2, 4, 4, 1)],
            "argument filter has no input channels, expected at least one",
        ),
    ],
)
def test_convolutions_of_wrong_shapes_that_tensorflow_traces(function: Any, shapes: list, message: str) -> None:
    with pytest.raises(trivium.UnsupportedOpError, match=message):
        trivium.from_tensorflow(tf.function(function), *[tf.TensorSpec(x) for x in shapes])


def graph_without_shapes(function: Any, count: int) -> Any:
    """Returns a graph whose inputs may have any shape, as a file can declare them."""
    graph = tf.Graph()
    with graph.as_default():
        function(*[tf.compat.v1.placeholder(tf.float32) for _ in range(count)])
    return graph.as_graph_def()


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        (lambda x: RAW.SpaceToDepth(input=x, block_size=2), [(4, 4)], "must be rank 4 but is rank 2"),
        (lambda x: RAW.ResizeBilinear(images=x, size=[2, 2]), [()], "must be rank 4 but is rank 0"),
        (lambda x: RAW.MatrixInverse(input=x), [(6,)], "must be at least rank 2 but is rank 1"),
        (lambda x: RAW.Transpose(x=x, perm=[1, 0]), [()], "Dimension must be 0 but is 2"),
        (lambda x, y: x + y, [(3,), (4,)], "Dimensions must be equal, but are 3 and 4"),
        (lambda x: RAW.Cross(a=x, b=x), [(3, 4)], "Dimension must be 3 but is 4"),
    ],
)
def test_shapes_that_tensorflow_rejects_once_they_are_known(function: Any, shapes: list, message: str) -> None:
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    with pytest.raises(trivium.Error, match=f"TensorFlow rejects the operands of .*{message}"):
        trivium.from_tensorflow(graph_without_shapes(function, len(shapes)), *arrays)


BOUNDS = {"begin": [1, 0], "end": [2, 1], "strides": [1, 1]}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: tf.cumsum(x, axis=5), "axis has 5, expected a number from -2 to 1"),
        (lambda x: RAW.Cumsum(x=x, axis=[0, 1]), r"axis has rank 1, expected rank 0"),
        (lambda x: RAW.Cumprod(x=tf.reduce_sum(x), axis=0), r"x has rank 0, expected rank 1 or higher"),
        (lambda x: RAW.Sum(input=x, axis=[0, -2]), r"reduction_indices has \[0, -2\], expected different dimensions"),
        (lambda x: tf.argmax(x, axis=4), "dimension has 4, expected a number from -2 to 1"),
        (lambda x: tf.split(x, 2, axis=3), "split_dim has 3"),
        (lambda x: tf.gather(x, [0], axis=4), "axis has 4"),
        (lambda x: tf.concat([x, x], axis=4), "axis has 4"),
        (lambda x: tf.reverse(x, axis=[4]), "axis has 4"),
        (lambda x: tf.roll(x, 1, axis=4), "axis has 4"),
        (lambda x: tf.expand_dims(x, 7), "dim has 7, expected a number from -3 to 2"),
        (lambda x: tf.one_hot(tf.cast(x, tf.int32), 3, axis=5), "axis has 5, expected a number from -3 to 2"),
        (lambda x: x[9], "begin has 9, expected a number from -3 to 2"),
        (lambda x: RAW.StridedSliceGrad(shape=[3, 3], dy=x, **BOUNDS | {"strides": [1, 0]}), "not zero"),
        (
            lambda x: RAW.StridedSliceGrad(shape=[3, 3], dy=x, **BOUNDS | {"end": [2]}),
            "as many as begin, 2, and end, 1",
        ),
        (
            lambda x: RAW.StridedSliceGrad(shape=[3], dy=x, **BOUNDS),
            "has 2 entries, expected at most one for each of 1",
        ),
        (lambda x: RAW.MatrixBandPart(input=x, num_lower=9, num_upper=0), "a negative number, or at most 3"),
        (lambda x: tf.linalg.diag_part(x, k=9), r"k has \[9, 9\], expected numbers from -2 to 3"),
        (lambda x: tf.linalg.set_diag(x, x[0]), r"diagonal has shape \[4\], expected shape \[3\]"),
        (lambda x: RAW.ResizeBilinear(images=x[None, :, :, None], size=[0, 2]), "expected positive numbers"),
        (lambda x: RAW.ClipByValue(t=x, clip_value_min=x[0], clip_value_max=2), r"one number, or shape \[3, 4\]"),
        (lambda x: x + RAW.RandomUniform(shape=[-1, 4], dtype=tf.float32), "none of them negative"),
    ],
)
def test_arguments_that_only_kernels_of_tensorflow_reject(function: Any, message: str) -> None:
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(trivium.UnsupportedOpError, match=message):
        trivium.from_tensorflow(graph_without_shapes(function, 1), x)


@pytest.mark.parametrize("op", ["AssignAddVariableOp", "AssignSubVariableOp"])
@pytest.mark.parametrize("dtype", [tf.bool, tf.qint8])
def test_variables_of_dtypes_without_arithmetic(op: str, dtype: Any) -> None:
    quantized = RAW.QuantizeV2(input=[1.0, 2.0], min_range=-2.0, max_range=2.0, T=tf.qint8)[0]
    variable = tf.Variable([True, False] if dtype == tf.bool else quantized)

    @tf.function
    def change() -> Any:
        getattr(RAW, op)(resource=variable.handle, value=variable.read_value())
        return tf.constant(1)

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"No OpKernel was registered to support Op '{op}'"):
        change()
    with pytest.raises(trivium.UnsupportedOpError, match=f"{op}: argument value has dtype {dtype.name}, expected"):
        trivium.from_tensorflow(change)


def test_where_tensorflow_runs_such_an_op_its_own_error_is_raised() -> None:
    function = trivium.tensorflow.function(lambda x: tf.cumsum(x, axis=5) + 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected scan axis in the range \[-2, 2\)"):
        function(tf.zeros((3, 4)))


def test_dimensions_that_only_the_examples_give() -> None:
    function = tf.function(lambda x, y: x + y, input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    with pytest.raises(trivium.Error, match=r"TensorFlow rejects the operands of Add.*equal, but are 3 and 4"):
        trivium.from_tensorflow(function.get_concrete_function(), np.ones(3, np.float32), np.ones(4, np.float32))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: RAW.Qr(input=x),
        lambda x: RAW.Svd(input=x),
        lambda x: RAW.TopKV2(input=x, k=2),
    ],
)
def test_ops_of_several_results_on_inputs_without_a_shape(function: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    # The rules' own tests compare these results with TensorFlow's.
    mine = trivium.evaluate(trivium.from_tensorflow(graph_without_shapes(function, 1), x), x)
    expected = trivium.evaluate(trivium.from_tensorflow(tf.function(function), x), x)
    for got, wanted in zip(mine, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
