"""Models whose sizes are unknown: without example inputs, their programs have dynamic sizes, and are equal to
TensorFlow for any."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

import keras

import trivium
from tests.compiler.bounded import programs as bounded_programs
from tests.importers.tensorflow.cases import Case
from tests.importers.tensorflow.test_rules import ALL_CASES, require_equal
from trivium.compiler.bounded import Unbounded

pytestmark = pytest.mark.tensorflow

REASONS = {
    "library functions take matrices of known sizes": "BandedTriangularSolve Cholesky Eig LogMatrixDeterminant "
    "Lu MatrixDeterminant MatrixInverse MatrixLogarithm MatrixSolve MatrixSolveLs MatrixSquareRoot "
    "MatrixTriangularSolve Qr SelfAdjointEigV2 Svd TridiagonalMatMul TridiagonalSolve",
    "the size is that of a kernel, or of another operand of a gradient": "AvgPoolGrad "
    "Conv2DBackpropFilter Conv2DBackpropInput Conv3DBackpropFilterV2 Conv3DBackpropInputV2 "
    "DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput FakeQuantWithMinMaxArgsGradient "
    "MaxPool3DGradGrad MaxPoolGradGrad MaxPoolGradGradV2",
    "a loop takes the steps of all sequences": "CTCGreedyDecoder CTCLoss",
    "tables of places follow from the size": "ApproxTopK CumulativeLogsumexp DataFormatVecPermute "
    "TensorStridedSliceUpdate",
    "lists of places in sparse tensors, or of rows, have that length": "DynamicPartition RaggedTensorToSparse "
    "RaggedTensorToTensor SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseReduceMax SparseReduceSum "
    "SparseTensorDenseMatMul",
    "the rank of the result follows from the size": "Bitcast Squeeze XlaBroadcastHelper XlaSplitND",
    "quantized tensors, draws and searches count their elements": "LowerBound "
    "StatelessRandomBinomial StatelessShuffle UniformDequantize UniformQuantize "
    "UniformQuantizedConvolution UniformQuantizedDot UniformRequantize UpperBound",
}
OF_KNOWN_SIZES = {op for names in REASONS.values() for op in names.split()}
"""Ops of which some cases need to know the first size of their first operand."""

RANDOM = np.random.default_rng(3)
RAW = tf.raw_ops


def opened(x: np.ndarray) -> "tf.TensorSpec":
    """Returns the type of an array whose first size may be any."""
    return tf.TensorSpec([None, *x.shape[1:]] if x.ndim else [], x.dtype)


def traced(case: Case) -> object:
    """Returns the function of a case for any first size of its first input; `None` where TensorFlow refuses that."""
    specs = [opened(x) if x is case.inputs[0] else tf.TensorSpec(x.shape, x.dtype) for x in case.inputs]
    # A `tf.function` would use what it has traced here for known sizes, too.
    function = getattr(case.function, "python_function", case.function)
    try:
        return tf.function(function, autograph=False).get_concrete_function(*specs)
    except (TypeError, ValueError):
        return None


@functools.cache
def imported(number: int) -> trivium.Module | trivium.Error | None:
    """Returns the program of a case, by its number, or the error with which it is refused; `None` where TensorFlow
    refuses it."""
    concrete = traced(ALL_CASES[number])
    try:
        return None if concrete is None else trivium.from_tensorflow(concrete)
    except trivium.Error as error:
        return error


CASES = pytest.mark.parametrize(
    "number", range(len(ALL_CASES)), ids=[f"{number}-{case.op}" for number, case in enumerate(ALL_CASES)]
)


@CASES
def test_rule(number: int) -> None:
    case, module = ALL_CASES[number], imported(number)
    if module is None:
        pytest.skip("TensorFlow needs to know the size")
    if isinstance(module, trivium.Error):
        assert case.op in OF_KNOWN_SIZES, module
        assert "example inputs: the program then has their sizes" in str(module)
        return
    require_equal(module, case)


OF_SEVERAL_PROGRAMS = {
    *("CombinedNonMaxSuppression", "MirrorPadGrad", "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3"),
    *("NonMaxSuppressionV4", "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps", "Reshape", "StridedSlice"),
    *("SparseFillEmptyRows", "XlaKeyValueSort", "XlaReduceWindow", "XlaRngBitGenerator", "XlaSelectAndScatter"),
    *(f"Segment{word}" for word in ("Max", "Mean", "Min", "Prod", "Sum")),
    *(f"SparseSegment{word}{of}" for word in ("Mean", "SqrtN", "Sum") for of in ("", "GradV2")),
    *("DenseToDenseSetOperation", "DenseToSparseSetOperation", "SparseToDense", "StatelessRandomGammaV2", "XlaSort"),
}
"""Ops of which some cases cannot compute with several sizes at once: sizes that depend on data, mostly."""


@CASES
def test_one_program_for_several_sizes(number: int) -> None:
    """The same ops with a few first sizes at once."""
    case, module = ALL_CASES[number], imported(number)
    if module is None or isinstance(module, trivium.Error) or not case.inputs:
        pytest.skip("TensorFlow or its op needs to know the size, or the op has no inputs: see test_rule")
    known = []
    for more in (0, 1, 3):
        if (arguments := longer(case, more)) and (expected := results(module, arguments)) is not None:
            known.append((arguments, expected))
    if len(known) < 2 or all(kind.is_static for kind in module.main.function_type.inputs):
        pytest.skip("the op does not accept inputs with more rows, so that there is one size only")
    given, expected = zip(*known, strict=True)
    try:
        bounded_programs.require_equal(module, given, expected=expected)
    except Unbounded:
        assert case.op in OF_SEVERAL_PROGRAMS


def longer(case: Case, more: int) -> list[np.ndarray]:
    """The inputs of a case, with `more` rows added to the first one."""
    first = case.inputs[0]
    rows = np.concatenate([first] * 4)[: len(first) + more] if first.ndim and first.size else first
    return [rows if x is first else x for x in case.inputs]


def results(module: trivium.Module, arguments: list[np.ndarray]) -> Any:
    """Returns the results for other inputs, or `None` where their sizes do not fit."""
    try:
        return trivium.evaluate(module, *arguments)
    except trivium.Error:
        return None


def as_list(results: object) -> list[object]:
    return list(results) if isinstance(results, list | tuple) else [results]


def pictures() -> "keras.Model":
    """Returns a model that takes images of any size, in batches of any number."""
    x = given = keras.Input((None, None, 3))
    x = keras.layers.Conv2D(8, 3, 2, "same", activation="relu")(x)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.AveragePooling2D(2, padding="same")(x)
    x = keras.layers.Conv2DTranspose(4, 3, 2, "same")(x)
    return keras.Model(given, keras.layers.Dense(5, "softmax")(keras.layers.GlobalAveragePooling2D()(x)))


def sequences() -> "keras.Model":
    """Returns a model that takes sequences of any length."""
    x = given = keras.Input((None, 4))
    x = keras.layers.Bidirectional(keras.layers.LSTM(6, return_sequences=True))(x)
    x = keras.layers.MultiHeadAttention(2, 3)(x, x)
    return keras.Model(given, [keras.layers.GRU(5)(keras.layers.LayerNormalization()(x)), x])


def lists() -> "keras.Model":
    """Returns a model that flattens, splits and joins."""
    x = given = keras.Input((4, 6))
    left, right = keras.ops.split(keras.layers.Flatten()(x), 2, axis=1)
    both = keras.layers.Concatenate()([right, left[:, ::-1]])
    return keras.Model(given, keras.layers.Reshape((6, -1))(keras.layers.Dense(12)(both)))


MODELS = {
    "pictures": (pictures, [(2, 9, 8, 3), (1, 12, 12, 3), (3, 7, 10, 3)]),
    "sequences": (sequences, [(2, 5, 4), (1, 9, 4), (3, 1, 4)]),
    "lists": (lists, [(2, 4, 6), (5, 4, 6)]),
}


@pytest.mark.parametrize("form", ["model", "SavedModel", ".keras"])
@pytest.mark.parametrize("name", MODELS)
def test_models_take_any_size(name: str, form: str, tmp_path: Path) -> None:
    make, shapes = MODELS[name]
    keras.utils.set_random_seed(1)
    source = model = make()
    if form == "SavedModel":
        source = tmp_path / "model"
        model.export(source, verbose=False)
    elif form == ".keras":
        source = tmp_path / "model.keras"
        model.save(source)
    module = trivium.from_tensorflow(source)
    assert not module.main.body.blocks[0].arguments[0].type.is_static
    run = trivium.compile(module)
    for shape in shapes:
        x = RANDOM.standard_normal(shape).astype(np.float32)
        expected = tf.nest.flatten(model(x))
        for got, wanted in zip(as_list(run(x)), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def drawn_slice() -> tuple[object, ...]:
    """Returns an index into three dimensions: numbers, slices, an ellipsis, or new dimensions."""

    def bound() -> int | None:
        return None if RANDOM.integers(3) == 0 else int(RANDOM.integers(-7, 8))

    def entry() -> object:
        kind = RANDOM.integers(6)
        if kind == 0:
            return int(RANDOM.integers(-2, 2))
        return None if kind == 1 else slice(bound(), bound(), int(RANDOM.choice([1, 1, 1, 2, 3, -1, -2])))

    entries = [entry() for _ in range(RANDOM.integers(1, 4))]
    if RANDOM.integers(3) == 0:
        entries.insert(int(RANDOM.integers(len(entries) + 1)), Ellipsis)
    return tuple(entries)


def test_random_slices() -> None:
    x = RANDOM.standard_normal((4, 5, 3)).astype(np.float32)
    for _ in range(150):
        index = drawn_slice()
        function = tf.function(lambda x: x[index], input_signature=[tf.TensorSpec([None] * 3)])  # noqa: B023
        (got,) = trivium.evaluate(trivium.from_tensorflow(function.get_concrete_function()), x)
        np.testing.assert_array_equal(got, x[tuple(np.newaxis if i is None else i for i in index)], str(index))


def test_gradients_of_random_slices() -> None:
    x = RANDOM.standard_normal((4, 5, 3)).astype(np.float32)
    for _ in range(60):
        index = drawn_slice()

        def slope(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                total = tf.reduce_sum(x[index] ** 2)  # noqa: B023
            return tape.gradient(total, x)

        function = tf.function(slope, input_signature=[tf.TensorSpec([None] * 3)])
        (got,) = trivium.evaluate(trivium.from_tensorflow(function.get_concrete_function()), x)
        np.testing.assert_allclose(got, slope(tf.constant(x)), 1e-5, err_msg=str(index))


RESIZED = [(RAW.ResizeBicubic, 5e-6), (RAW.ResizeBilinear, 1e-6), (RAW.ResizeNearestNeighbor, 1e-6)]
ALIGNED = [{}, {"align_corners": True}]
RESIZES = [(*kind, options) for kind in RESIZED for options in (*ALIGNED, {"half_pixel_centers": True})]
RESIZES += [(RAW.ResizeArea, 1e-6, options) for options in ALIGNED]


@pytest.mark.parametrize(("op", "error", "options"), RESIZES)
def test_images_of_any_size_are_resized_to_any(
    op: Callable[..., "tf.Tensor"], error: float, options: dict[str, bool]
) -> None:
    function = tf.function(lambda images, size: op(images=images, size=size, **options))
    specs = tf.TensorSpec([None, None, None, 3]), tf.TensorSpec([2], tf.int32)
    module = trivium.from_tensorflow(function.get_concrete_function(*specs))
    run = trivium.compile(module)
    for have, wanted in (((7, 5), [3, 11]), ((1, 4), [5, 1]), ((6, 6), [6, 6]), ((9, 2), [1, 1])):
        images, size = RANDOM.standard_normal((2, *have, 3)).astype(np.float32), np.array(wanted, np.int32)
        for got in (*trivium.evaluate(module, images, size), *as_list(run(images, size))):
            np.testing.assert_allclose(got, function(images, size), rtol=1e-5, atol=error)


@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_largest_elements_of_which_the_program_computes_how_many(kind: type) -> None:
    def function(x):
        most = tf.minimum(tf.shape(x)[1], 4)
        half = RAW.TopKV2(input=x, k=tf.shape(x)[1] // 2, index_type=tf.int64)
        return [*tf.math.top_k(x, most), *half, *tf.math.top_k(x, 2, index_type=tf.int16)]

    module = trivium.from_tensorflow(tf.function(function), tf.TensorSpec([None, None], kind))
    module.verify()
    run = trivium.compile(module)
    for shape in ((3, 7), (0, 4), (2, 2), (4, 3)):
        x = RANDOM.integers(-2, 3, shape).astype(kind)
        for results in (trivium.evaluate(module, x), run(x)):
            for got, wanted in zip(results, function(x), strict=True):
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(got, wanted)


def test_sizes_from_data_are_dynamic() -> None:
    def function(x, n):
        return tf.reshape(x, n), tf.boolean_mask(x, x > 0), tf.range(n[0], dtype=tf.int32)

    x, n = np.arange(-3, 5, dtype=np.float32), np.array([4, 2], np.int32)
    run = trivium.compile(trivium.from_tensorflow(tf.function(function), x, n))
    for given in (n, n[::-1].copy()):
        for got, wanted in zip(run(x, given), function(x, given), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_specs_of_example_inputs_may_leave_sizes_open() -> None:
    module = trivium.from_tensorflow(
        tf.function(lambda x, y: x @ y), tf.TensorSpec([None, 3]), np.ones((3, 2), np.float32)
    )
    assert [x.type.shape for x in module.main.body.blocks[0].arguments] == [(None, 3), (3, 2)]


def test_an_unknown_rank_asks_for_examples() -> None:
    function = tf.function(lambda x: x + 1, input_signature=[tf.TensorSpec(None)]).get_concrete_function()
    with pytest.raises(trivium.Error, match="x:0 has an unknown number of dimensions: give example inputs"):
        trivium.from_tensorflow(function)


def test_the_number_of_examples_is_checked() -> None:
    signature = [tf.TensorSpec([None]), tf.TensorSpec([None])]
    function = tf.function(lambda x, y: x + y, input_signature=signature).get_concrete_function()
    with pytest.raises(trivium.Error, match=r"1 example inputs for inputs of dynamic shapes .*, expected one for each"):
        trivium.from_tensorflow(function, np.ones(3, np.float32))


def squares_of(model: "keras.Model", x: "tf.Tensor") -> list["tf.Tensor"]:
    """Returns a loss of a model, and its gradients by the inputs and the weights."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_mean(model(x, training=True) ** 2)
    return [loss, *map(tf.convert_to_tensor, tape.gradient(loss, [x, *model.trainable_variables]))]


def test_gradients_for_batches_of_any_size() -> None:
    keras.utils.set_random_seed(1)
    x = given = keras.Input((5, 4))
    x = keras.layers.LayerNormalization()(keras.layers.MultiHeadAttention(2, 3)(x, x))
    model = keras.Model(given, keras.layers.Dense(3, "softmax")(keras.layers.Concatenate()([x, x * 2])))
    function = tf.function(lambda x: squares_of(model, x))
    run = trivium.compile(trivium.from_tensorflow(function, tf.TensorSpec([None, 5, 4])))
    for count in (1, 3, 4):
        x = RANDOM.standard_normal((count, 5, 4)).astype(np.float32)
        for got, wanted in zip(run(x), squares_of(model, tf.constant(x)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5)


def test_gradients_of_sums_of_unrelated_sizes_are_refused() -> None:
    def function(x, y):
        with tf.GradientTape() as tape:
            tape.watch(x)
            product = x * y
        return tape.gradient(product, x)

    with pytest.raises(trivium.Error, match="extents that are computed at run time, expected sizes that are known, or"):
        trivium.from_tensorflow(tf.function(function), tf.TensorSpec([None]), tf.TensorSpec([None]))


def gradient_of_choice(index: "tf.Tensor", x: "tf.Tensor", size: Callable[["tf.Tensor"], "tf.Tensor"]) -> "tf.Tensor":
    """Returns the gradient of a choice of branches, each of which keeps values that the others do not have."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.switch_case(index, [lambda: tf.reduce_sum(tf.sin(size(x))), lambda: tf.reduce_sum(x * x) * 2])
    return tape.gradient(y, x)


@pytest.mark.parametrize("index", [0, 1, 5])
def test_gradients_of_choices_are_zeros_of_any_size_where_another_branch_ran(index: int) -> None:
    function = tf.function(lambda i, x: gradient_of_choice(i, x, tf.identity))
    module = trivium.from_tensorflow(function, tf.TensorSpec([], tf.int32), tf.TensorSpec([None, 3]))
    module.verify()
    for count in (1, 4):
        x = RANDOM.standard_normal((count, 3)).astype(np.float32)
        (got,) = trivium.evaluate(module, np.int32(index), x)
        np.testing.assert_allclose(got, function(tf.constant(index), tf.constant(x)), rtol=1e-5)


def test_gradients_of_choices_whose_sizes_only_another_branch_has_are_refused() -> None:
    def function(index, x):
        return gradient_of_choice(index, x, lambda x: x[1:])

    with pytest.raises(trivium.Error, match=r"a value of type tensor<\?xf32> that its gradient needs, expected sizes"):
        trivium.from_tensorflow(tf.function(function), tf.TensorSpec([], tf.int32), tf.TensorSpec([None]))
    x = RANDOM.standard_normal(4).astype(np.float32)
    module = trivium.from_tensorflow(tf.function(function), np.int32(0), x)
    for index in (0, 1):
        (got,) = trivium.evaluate(module, np.int32(index), x)
        np.testing.assert_allclose(got, function(tf.constant(index), tf.constant(x)), rtol=1e-5)


def test_rows_of_which_there_are_any_number_are_mapped() -> None:
    function = tf.function(lambda x: tf.map_fn(lambda row: row * 2 + 1, x))
    module = trivium.from_tensorflow(function, tf.TensorSpec([None, 4]))
    module.verify()
    for count in (0, 3):
        x = RANDOM.standard_normal((count, 4)).astype(np.float32)
        (got,) = trivium.evaluate(module, x)
        np.testing.assert_allclose(got, function(x), rtol=1e-6)


def test_rows_of_any_size_and_number_are_mapped() -> None:
    function = tf.function(lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(row), x))
    module = trivium.from_tensorflow(function, ANY_MATRIX)
    module.verify()
    run = trivium.compile(module)
    for shape in ((0, 3), (2, 3), (3, 0), (4, 1)):
        x = RANDOM.standard_normal(shape).astype(np.float32)
        # TensorFlow does not know the size of a row where there is none.
        wanted = function(x) if len(x) else x
        for got in (*trivium.evaluate(module, x), *as_list(run(x))):
            np.testing.assert_allclose(got, wanted, rtol=1e-6)


ANY_MATRIX = tf.TensorSpec([None, None])
DIAGONALS = {
    "diag": lambda x: tf.linalg.diag(x),
    "diag above": lambda x: tf.linalg.diag(x, k=2),
    "diag below in rows": lambda x: tf.linalg.diag(x, k=-1, num_rows=tf.shape(x)[1] + 3, num_cols=tf.shape(x)[1]),
    "diag in columns": lambda x: tf.linalg.diag(x, k=1, num_cols=tf.shape(x)[1] + 1, padding_value=9),
    "diag_part": lambda x: tf.linalg.diag_part(x),
    "diag_part above": lambda x: tf.linalg.diag_part(x, k=1),
    **{
        f"bands {align}": lambda x, align=align: tf.linalg.diag_part(x, k=(-1, 1), align=align, padding_value=9)
        for align in ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")
    },
    "set_diag": lambda x: tf.linalg.set_diag(x, tf.linalg.diag_part(x) * 2),
    "set_diag above": lambda x: tf.linalg.set_diag(x, tf.linalg.diag_part(x, k=1) * 2, k=1),
    "eye": lambda x: tf.eye(tf.shape(x)[0], tf.shape(x)[1]),
    "trace": lambda x: tf.linalg.trace(x),
    "tensor_diag": lambda x: tf.linalg.tensor_diag(x),
    "tensor_diag_part": lambda x: tf.linalg.tensor_diag_part(x[:2, :2]),
}


@pytest.mark.parametrize("name", DIAGONALS)
def test_diagonals_of_matrices_of_any_size(name: str) -> None:
    concrete = tf.function(DIAGONALS[name], input_signature=[ANY_MATRIX]).get_concrete_function()
    module = trivium.from_tensorflow(concrete)
    module.verify()
    run = trivium.compile(module)
    for shape in ((2, 5), (4, 3), (3, 3)):
        x = RANDOM.standard_normal(shape).astype(np.float32)
        for got in (*trivium.evaluate(module, x), *as_list(run(x))):
            np.testing.assert_allclose(got, concrete(tf.constant(x)), rtol=1e-6)


def test_diagonals_that_do_not_fit_their_matrix_are_refused() -> None:
    def function(x):
        return tf.raw_ops.MatrixDiagV3(diagonal=x, k=0, num_rows=tf.shape(x)[0], num_cols=5, padding_value=0.0)

    concrete = tf.function(function, input_signature=[ANY_MATRIX]).get_concrete_function()
    with pytest.raises(trivium.Error, match="diagonal has the length 3, expected 2, as for 2 rows, 5 columns"):
        trivium.from_tensorflow(concrete, np.ones((2, 3), np.float32))
