"""Cases of ops of several families, as in `cases`: bits, formats, quantization, colours, boxes, pooling."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_nn_ops

from tests.importers.tensorflow.cases import IMAGE, Case, case, ints, normal, positive, raw
from tests.importers.tensorflow.more_cases import COMPLEX, FLAGS, RGB, by_xla

WIDE = COMPLEX[0].astype(np.complex128)
BITS = [
    *(
        case("Bitcast", lambda x, kind=kind: raw.Bitcast(input=x, type=kind), x)
        for x, kind in (
            *((COMPLEX, kind) for kind in (tf.float32, tf.int64, tf.int8, tf.complex64)),
            *((WIDE, kind) for kind in (tf.float64, tf.uint32)),
            *((normal(3, 2), tf.complex64), (normal(3, 4), tf.complex128)),
            (ints(1, 2, 3, dtype=np.int64), tf.complex64),
        )
    ),
    *(case("ToBool", by_xla(lambda x: raw.ToBool(input=x)), x) for x in (normal(2), normal(0, 2), ints(0).reshape(()))),
    *(
        case("ClipByValue", lambda x: raw.ClipByValue(t=x, clip_value_min=-1 + 0j, clip_value_max=0.5 + 1j), x)
        for x in (COMPLEX,)
    ),
    case("Transpose", lambda x: raw.Transpose(x=x, perm=[-1, 0, -2]), normal(2, 3, 4)),
]
GRADIENTS = [
    *(
        case(op, lambda y, dy, op=op: getattr(raw, op)(y=y, dy=dy), COMPLEX, COMPLEX[::-1])
        for op in ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad")
    ),
    *(
        case(op, lambda y, dy, op=op: getattr(raw, op)(y=y, dy=dy), normal(4), normal(2, 1, 2))
        for op in ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad")
    ),
    case(
        "Polygamma",
        lambda n, x: raw.Polygamma(a=n, x=x),
        np.float32([1, 1, 2, 3, 2, 2, 1.5]),
        np.float32([0, -1, -2, -3, -2.5, 0.5, 0]),
    ),
]
FORMATS = [
    case("Einsum", lambda x: raw.Einsum(inputs=[x], equation="ij->iji"), normal(2, 3)),
    *(
        case("Mean", lambda x: raw.Mean(input=x, axis=[0]), np.full(9, np.iinfo(kind).max - 1, kind))
        for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
    ),
    case("DataFormatDimMap", lambda x: raw.DataFormatDimMap(x=x), ints(0, 1, 2, 3, -1, -3)),
    *(case("DataFormatVecPermute", lambda x: raw.DataFormatVecPermute(x=x), x) for x in (ints(5, 6, 7, 8), ints(3, 4))),
    case(
        "DataFormatVecPermute",
        lambda x: raw.DataFormatVecPermute(x=x, src_format="NCHW", dst_format="HWNC"),
        ints(*range(8)).reshape(4, 2),
    ),
    case(
        "DynamicPartition",
        lambda x: tuple(raw.DynamicPartition(data=x, partitions=[[2, 0], [2, 1]], num_partitions=4)),
        normal(2, 2, 3),
    ),
]
PLACES = np.array([[0, 1], [2, 0], [2, 3]])
SPARSE = [
    *(
        case(
            "SparseTensorDenseMatMul",
            lambda i, v, b, one=one, other=other: raw.SparseTensorDenseMatMul(
                a_indices=i, a_values=v, a_shape=[3, 4], b=b, adjoint_a=one, adjoint_b=other
            ),
            PLACES,
            x,
            y,
        )
        for one in (False, True)
        for other in (False, True)
        for shape in [(3 if one else 4, 2)]
        for x, y in (
            (normal(3), normal(*shape[:: -1 if other else 1])),
            (COMPLEX[0, 0, :3], COMPLEX[0, : shape[0], :2]),
        )
        if x.dtype.kind == "f" or not other
    ),
    *(
        case(
            "SparseReduceSum",
            lambda i, v, over=over, keep=keep: raw.SparseReduceSum(
                input_indices=i, input_values=v, input_shape=[3, 4], reduction_axes=over, keep_dims=keep
            ),
            PLACES,
            normal(3),
        )
        for over, keep in (([0], False), ([-1], True), ([0, 1], False), ([], True), ([], False))
    ),
    *(
        case(
            op,
            lambda i, v, d, op=op: getattr(raw, op)(sp_indices=i, sp_values=v, sp_shape=[3, 4], dense=d),
            PLACES,
            normal(3),
            dense,
        )
        for op in ("SparseDenseCwiseDiv", "SparseDenseCwiseMul")
        for dense in (positive(3, 4), positive(4))
    ),
    case(
        "SparseDenseCwiseAdd",
        lambda i, v, d: raw.SparseDenseCwiseAdd(sp_indices=i, sp_values=v, sp_shape=[3, 4], dense=d),
        PLACES,
        normal(3),
        normal(3, 1),
    ),
    *(
        case(
            "RaggedTensorToTensor",
            lambda v, d, shape=shape, splits=splits: raw.RaggedTensorToTensor(
                shape=shape,
                values=v,
                default_value=d,
                row_partition_tensors=[np.int64(splits)],
                row_partition_types=["ROW_SPLITS"],
            ),
            values,
            np.float32(-1),
        )
        for shape, splits, values in (
            (-1, [0, 2, 2, 5], normal(5)),
            ([2, 4], [0, 2, 2, 5], normal(5)),
            ([4, 2, 3], [0, 2, 2, 5], normal(5, 3)),
            (-1, [0, 0], normal(0)),
        )
    ),
    *(
        case(
            "RaggedTensorToTensor",
            lambda v, d, shape=shape, partitions=partitions, kinds=kinds: raw.RaggedTensorToTensor(
                shape=shape,
                values=v,
                default_value=d,
                row_partition_tensors=[np.int64(x) for x in partitions],
                row_partition_types=kinds,
            ),
            values,
            np.float32(-1),
        )
        for shape in (-1, [-1, 2, 3], [5, -1, 1], [1, 4, 2])
        for kinds, partitions, values in (
            (["ROW_SPLITS", "ROW_SPLITS"], [[0, 2, 2, 5], [0, 3, 3, 4, 4, 6]], normal(6)),
            (["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"], [4, [0, 0, 2], [0, 1, 1, 2, 2, 2]], normal(6)),
            (["FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"], [4, [1, 3], [0, 0, 2]], normal(2)),
        )
    ),
    *(
        case(
            "RaggedTensorToTensor",
            lambda v, d, shape=shape: raw.RaggedTensorToTensor(
                shape=shape,
                values=v,
                default_value=d,
                row_partition_tensors=[np.int64(4), np.int64([0, 0, 2, 3, 3, 3])],
                row_partition_types=["FIRST_DIM_SIZE", "VALUE_ROWIDS"],
            ),
            normal(6, 2),
            np.float32([-1, -2]),
        )
        for shape in (-1, [-1, 2, 2], [6, -1, -1])
    ),
    *(
        case(
            "RaggedTensorToSparse",
            lambda v, splits=splits: raw.RaggedTensorToSparse(
                rt_nested_splits=[np.int64(x) for x in splits], rt_dense_values=v
            ),
            values,
        )
        for splits, values in (
            ([[0, 2, 2, 5]], normal(5)),
            ([[0, 2, 2, 5]], normal(5, 3)),
            ([[0, 2, 2, 5], [0, 3, 3, 4, 4, 6]], normal(6)),
            ([[0, 0]], normal(0)),
            ([[0]], normal(0)),
        )
    ),
]
QUANTIZED = [
    *(
        case(
            "QuantizeAndDequantizeV2",
            lambda x, low, high, signed=signed, given=given, mode=mode, axis=axis: raw.QuantizeAndDequantizeV2(
                input=x, input_min=low, input_max=high, signed_input=signed, num_bits=4, range_given=given,
                round_mode=mode, narrow_range=given, axis=axis,
            ),
            normal(3, 5) * 2 + (0 if signed else 1),
            *((normal(5) - 2, normal(5) + 2) if axis == 1 else (normal() - 2, normal() + 2)),
        )
        for signed in FLAGS
        for given in FLAGS
        for mode in ("HALF_UP", "HALF_TO_EVEN")
        for axis in (-1, 1)
        if axis < 0 or not given  # which the kernel wants to be numbers, and the op's shapes to be vectors
    ),
    case(
        "QuantizeAndDequantizeV3",
        lambda x: raw.QuantizeAndDequantizeV3(input=x, input_min=-1.5, input_max=1.0, num_bits=5),
        normal(3, 5),
    ),
    case(
        "QuantizeAndDequantizeV4",
        by_xla(
            lambda x, low, high: raw.QuantizeAndDequantizeV4(
                input=x, input_min=low, input_max=high, range_given=True, axis=1
            )
        ),
        normal(3, 5),
        normal(5) - 2,
        normal(5) + 2,
    ),
]  # fmt: skip
COLORS = [
    *(
        case("AdjustHue", lambda x, d=d: raw.AdjustHue(images=x, delta=d), x)
        for d in (0.3, -0.8)
        for x in (RGB, RGB - 0.6)
    ),
    *(case("AdjustSaturation", lambda x, s=s: raw.AdjustSaturation(images=x, scale=s), RGB) for s in (0.5, 3.0)),
]
CORNERS = positive(30, 2) * 4
BOXES = np.concatenate([CORNERS, CORNERS + normal(30, 2)], 1)
BEST = [
    *(
        case(
            "NonMaxSuppressionV4",
            lambda b, s, size=size, limit=limit: raw.NonMaxSuppressionV4(
                boxes=b, scores=s, max_output_size=size, iou_threshold=0.2, score_threshold=limit,
                pad_to_max_output_size=True,
            ),
            BOXES,
            np.round(normal(30), 1),
        )
        for size, limit in ((40, 0.2), (5, -9.0), (3, 99.0))
    ),
    *(
        case("ApproxTopK", by_xla(lambda x, most=most: gen_nn_ops.approx_top_k(x, k=3, is_max_k=most)), normal(4, 9))
        for most in FLAGS
    ),
    case(
        "ApproxTopK",
        by_xla(lambda x: gen_nn_ops.approx_top_k(x, k=3, reduction_dimension=-1, aggregate_to_topk=False)),
        normal(2, 300),
    ),
]  # fmt: skip
WINDOWS = [
    case(
        "MaxPoolGradV2",
        lambda x: raw.MaxPoolGradV2(
            orig_input=x, orig_output=raw.MaxPool(input=x, ksize=[1, 2, 3, 1], strides=[1, 2, 2, 1], padding="SAME"),
            grad=raw.MaxPool(input=x, ksize=[1, 2, 3, 1], strides=[1, 2, 2, 1], padding="SAME"),
            ksize=[1, 2, 3, 1], strides=[1, 2, 2, 1], padding="SAME",
        ),
        IMAGE,
    ),
    *(
        case("Conv", lambda x, w, s=strides: raw.Conv(input=x, filter=w, strides=s, padding="SAME"), x, w)
        for x, w, strides in (
            (IMAGE, normal(3, 2, 4, 5), [1, 2, 1, 1]),
            (normal(1, 4, 5, 6, 2), normal(2, 2, 3, 2, 4), [1, 1, 2, 1, 1]),
        )
    ),
]  # fmt: skip
LONG_ROWS = normal(2, 90)
PLACES = [
    case(name, lambda x, y, side=side: tf.searchsorted(tf.sort(x), y, side), LONG_ROWS, LONG_ROWS[:, :20])
    for name, side in (("LowerBound", "left"), ("UpperBound", "right"))
]
SUMS_OF_OTHERS = [
    case(name, lambda x, f=f, reverse=reverse: f(x, 1, True, reverse), x)
    for name, f in (("Cumsum", tf.cumsum), ("Cumprod", tf.math.cumprod))
    for reverse in (False, True)
    for x in (normal(2, 5, 3), ints(3, -4, 5).reshape(1, 3), normal(2, 1), COMPLEX.reshape(1, -1))
]
NO_ROWS = [
    case("GatherV2", lambda x: tf.gather(x, tf.zeros([tf.shape(x)[0], 2], tf.int32), batch_dims=1), normal(0, 5, 3)),
    case("GatherNd", lambda x: tf.gather_nd(x, tf.zeros([0, 2, 2], tf.int32)), normal(0, 5, 3)),
    case("GatherNd", lambda x: tf.gather_nd(x, tf.zeros([2, 0, 1], tf.int32)), normal(3, 5)),
    *(case("Svd", lambda x: raw.Svd(input=x, full_matrices=True), x) for x in (normal(2, 0, 3), normal(2, 3, 0))),
    *(case("Qr", lambda x: raw.Qr(input=x, full_matrices=True), x) for x in (normal(2, 0, 3), normal(2, 3, 0))),
]
VARIOUS_CASES: list[Case] = [
    *(*BITS, *GRADIENTS, *FORMATS, *SPARSE, *QUANTIZED, *COLORS, *BEST, *WINDOWS, *PLACES, *SUMS_OF_OTHERS, *NO_ROWS),
]
