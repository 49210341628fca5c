"""Cases of XLA's own ops, as in `cases`: XLA tells what must come out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.tf2xla.python import xla
from tensorflow.compiler.xla import xla_data_pb2

from tests.importers.tensorflow.cases import Case, case, ints, normal
from tests.importers.tensorflow.more_cases import by_xla


def scalars(function: Callable[..., Any], count: int = 2, dtype: tf.DType = tf.float32) -> Any:
    """A function of 0-d tensors, as an attribute."""
    return tf.function(function, autograph=False).get_concrete_function(*[tf.TensorSpec((), dtype)] * count)


def convolved(x: Any, y: Any, **options: Any) -> Any:
    numbers = xla_data_pb2.ConvolutionDimensionNumbers(
        input_batch_dimension=0, input_feature_dimension=1, input_spatial_dimensions=[2, 3],
        kernel_output_feature_dimension=3, kernel_input_feature_dimension=2, kernel_spatial_dimensions=[0, 1],
        output_batch_dimension=0, output_feature_dimension=3, output_spatial_dimensions=[1, 2],
    )  # fmt: skip
    return xla.conv(x, y, (1, 2), [[1, 0], [2, 1]], (2, 1), (1, 2), numbers, **options)


def multiplied(x: Any, y: Any, **options: Any) -> Any:
    numbers = xla_data_pb2.DotDimensionNumbers(
        lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[2], lhs_batch_dimensions=[0],
        rhs_batch_dimensions=[0],
    )  # fmt: skip
    return xla.dot_general(x, y, numbers, **options)


def gathered(x: Any, indices: Any) -> Any:
    numbers = xla_data_pb2.GatherDimensionNumbers(
        offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1
    )
    return xla.gather(x, indices, numbers, [1, 3])


def scattered(x: Any, indices: Any, updates: Any) -> Any:
    numbers = xla_data_pb2.ScatterDimensionNumbers(
        update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1
    )
    return xla.scatter(x, indices, updates, ADD, numbers)


ADD, LARGER, MULTIPLY = scalars(tf.add), scalars(tf.maximum), scalars(lambda x, y: x * y + 0.5)
AT_LEAST, BELOW = scalars(tf.greater_equal), scalars(lambda a, b, c, d: a < b, 4)


def largest(value: Any, index: Any, x: Any, i: Any) -> Any:
    return tf.where(value >= x, value, x), tf.where(value >= x, index, i)


INDEXED = [tf.TensorSpec((), tf.float32), tf.TensorSpec((), tf.int32)] * 2
LARGEST = tf.function(largest, autograph=False).get_concrete_function(*INDEXED)
STATE = [tf.TensorSpec((), tf.int32), tf.TensorSpec((3,), tf.float32)]
IS_SHORT = tf.function(lambda i, x: i < 4, autograph=False).get_concrete_function(*STATE)
STEP = tf.function(lambda i, x: (i + 1, x * 1.5 - 0.25), autograph=False).get_concrete_function(*STATE)
ROWS = tf.TensorSpec((3,), tf.float32)
BRANCHES = [tf.function(f, autograph=False).get_concrete_function(ROWS) for f in (tf.sin, tf.cos)]


def chosen(condition: Any, x: Any) -> Any:
    """XLA's own kernel asks for an attribute that its op does not have, so that nothing can run it."""
    if tf.executing_eagerly():
        return BRANCHES[not condition](x)
    return gen_xla_ops.xla_if(condition, [x], *BRANCHES, [tf.float32])[0]


COMPUTATIONS = [
    case("XlaReduce", by_xla(lambda x: xla.reduce(x, 0.5, [0, 2], ADD)), normal(3, 4, 2)),
    case(
        "XlaVariadicReduce", by_xla(lambda x: gen_xla_ops.xla_variadic_reduce([x], [0.5], [1], MULTIPLY)), normal(3, 4)
    ),
    case(
        "XlaVariadicReduceV2",
        by_xla(lambda x, i: xla.variadic_reduce((x, i), (-9.0, -1), [1], LARGEST)),
        normal(2, 3),
        ints(0, 1, 2, 3, 4, 5).reshape(2, 3),
    ),
    case(
        "XlaReduceWindow",
        by_xla(lambda x: xla.reduce_window(x, -9.0, LARGER, (2, 3), (1, 2), (2, 1), (1, 2), [[1, 0], [0, 3]])),
        normal(4, 6),
    ),
    case(
        "XlaSelectAndScatter",
        by_xla(lambda x, y: xla.select_and_scatter(x, (2, 2), (2, 2), [[0, 0], [1, 1]], y, 0.5, AT_LEAST, ADD)),
        normal(4, 4),
        normal(2, 3),
    ),
    case("XlaScatter", by_xla(scattered), normal(4, 3), ints(1, 3, 1).reshape(3, 1), normal(3, 3)),
    case("XlaVariadicSort", by_xla(lambda x, y: xla.variadic_sort((x, y), 0, BELOW, True)), normal(5, 2), normal(5, 2)),
    case("XlaWhile", by_xla(lambda x: xla.while_loop((tf.constant(1), x), IS_SHORT, STEP)), normal(3)),
    *(case("XlaIf", chosen, np.array(c), normal(3)) for c in (True, False)),
]
PRODUCTS = [
    case("XlaConv", by_xla(convolved), normal(2, 4, 5, 6), normal(3, 2, 4, 5)),
    case(
        "XlaConv", by_xla(lambda x, y: convolved(x, y, feature_group_count=2)), normal(2, 4, 5, 6), normal(3, 2, 2, 6)
    ),
    case(
        "XlaConvV2", by_xla(lambda x, y: convolved(x, y, batch_group_count=2)), normal(4, 2, 5, 6), normal(3, 2, 2, 4)
    ),
    case(
        "XlaConvV2",
        by_xla(lambda x, y: convolved(x, y, preferred_element_type=tf.int32)),
        (normal(2, 4, 5, 6) * 9).astype(np.int8),
        (normal(3, 2, 4, 5) * 9).astype(np.int8),
    ),
    case("XlaDot", by_xla(lambda x, y: multiplied(x, y, use_v2=False)), normal(2, 4, 3), normal(2, 5, 4)),
    case(
        "XlaDotV2",
        by_xla(lambda x, y: multiplied(x, y, preferred_element_type=tf.int32)),
        (normal(2, 4, 3) * 50).astype(np.int8),
        (normal(2, 5, 4) * 50).astype(np.int8),
    ),
    case("XlaGather", by_xla(gathered), normal(4, 5), ints(1, 3, 9).reshape(3, 1)),
]
TILES = [
    case(
        "XlaSplitND",
        by_xla(lambda x: tf.raw_ops.XlaSplitND(input=x, N=6, num_splits=[2, 3], paddings=[1, 0])),
        normal(3, 6),
    ),
    case(
        "XlaConcatND",
        by_xla(lambda x, y: tf.raw_ops.XlaConcatND(inputs=[x, y, y, x], num_concats=[2, 2], paddings=[1, 0])),
        normal(2, 3),
        normal(2, 3),
    ),
    case(
        "XlaBroadcastHelper",
        by_xla(lambda x, y: gen_xla_ops.xla_broadcast_helper(x, y, [1])),
        normal(2, 3, 4),
        normal(3),
    ),
    *(
        case(
            "XlaRngBitGenerator",
            by_xla(lambda s, a=a, dtype=dtype: xla.rng_bit_generator(a, s, [5, 3], dtype)),
            np.array([7, 9], np.uint64),
        )
        for a in (1, 2)
        for dtype in (tf.uint32, tf.uint64)
    ),
    case(
        "XlaSpmdFullToShardShape",
        by_xla(lambda x: gen_xla_ops.xla_spmd_full_to_shard_shape(x, "")),
        normal(2, 3),
    ),
    case("XlaSetBound", by_xla(lambda x: gen_xla_ops.xla_set_bound(x, 9) + 1), ints(4).reshape(())),
]
XLA_CASES: list[Case] = [*COMPUTATIONS, *PRODUCTS, *TILES]
