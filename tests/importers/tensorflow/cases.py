"""One rule per line: a function to trace, and its inputs. The expected results are those of TensorFlow itself, run
eagerly."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

raw = tf.raw_ops
generator = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return generator.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return generator.uniform(0.1, 0.9, shape).astype(np.float32)


def ints(*values: int, dtype: type = np.int32) -> np.ndarray:
    return np.array(values, dtype)


X, Y, ROW = normal(3, 4), normal(3, 4), normal(4)
P, Q = positive(3, 4), positive(3, 4)
WHOLE, DIVISORS = ints(7, -7, 5, -3), ints(2, 2, -3, -2)
B, C = np.array([True, False, True, False]), np.array([True, True, False, False])
ROWS = np.stack([ints(1, 3, 3, 0), ints(2, 5, 1, 1)])
IMAGE, PLANES = normal(2, 6, 7, 4), normal(2, 4, 6, 7)
BOXES = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.8, 0.3, 0.1, 0.6], [-0.3, 0.5, 1.2, 1.4]], np.float32)
"""Boxes in images: the third is flipped, and the last is in part outside."""
VOLUME = normal(1, 4, 5, 4, 2)


class Case(NamedTuple):
    """A call of an op. `composed` computes the same by other ops: TensorFlow has no kernel of some ops for every
    processor."""

    op: str
    function: Callable[..., Any]
    inputs: tuple[np.ndarray, ...]
    composed: Callable[..., Any] | None = None


def case(op: str, function: Callable[..., Any], *inputs: np.ndarray) -> Case:
    return Case(op, function, inputs)


def unary(op: str, x: np.ndarray, argument: str = "x") -> Case:
    return case(op, lambda x: getattr(raw, op)(**{argument: x}), x)


def binary(op: str, x: np.ndarray, y: np.ndarray) -> Case:
    return case(op, lambda x, y: getattr(raw, op)(x=x, y=y), x, y)


UNARY = [
    *(unary(op, X) for op in ("Abs", "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Erfc", "Exp", "Expm1", "Floor")),
    *(unary(op, X) for op in ("IsFinite", "IsInf", "IsNan", "Neg", "Rint", "Round", "Sigmoid", "Sign", "Sin", "Sinh")),
    *(unary(op, X) for op in ("Square", "Tan", "Tanh", "OnesLike", "ZerosLike")),
    *(unary(op, P) for op in ("Acos", "Asin", "Atanh", "Digamma", "Erfinv", "Lgamma", "Log", "Log1p", "Ndtri")),
    *(unary(op, P) for op in ("Inv", "Reciprocal", "Rsqrt", "Sqrt")),
    unary("Acosh", P + 1),
    unary("Invert", WHOLE),
    unary("PopulationCount", WHOLE),
    unary("LogicalNot", B),
    *(unary(op, (X + 1j * Y).astype(np.complex64), "input") for op in ("Angle", "Conj", "Imag", "Real")),
    unary("ComplexAbs", (X + 1j * Y).astype(np.complex64)),
    *(unary(op, X * 4, "features") for op in ("Elu", "Relu", "Relu6", "Selu", "Softplus", "Softsign")),
    case("LeakyRelu", lambda x: raw.LeakyRelu(features=x, alpha=0.3), X),
    *(unary(op, X, "logits") for op in ("LogSoftmax", "Softmax")),
    unary("BesselI1e", X),
    case("L2Loss", lambda x: raw.L2Loss(t=x), X),
]
BINARY = [
    *(binary(op, X, ROW) for op in ("Add", "AddV2", "Atan2", "Div", "Maximum", "Minimum", "Mul", "RealDiv", "Sub")),
    *(binary(op, X, ROW) for op in ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual")),
    *(binary(op, X, Y) for op in ("SquaredDifference", "ApproximateEqual", "FloorDiv", "FloorMod")),
    *(binary(op, WHOLE, DIVISORS) for op in ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Div")),
    *(binary(op, WHOLE, DIVISORS) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *(binary(op, WHOLE, abs(DIVISORS)) for op in ("LeftShift", "RightShift")),
    *(binary(op, B, C) for op in ("LogicalAnd", "LogicalOr")),
    *(binary(op, X * (P > 0.5), Y * (Q > 0.5)) for op in ("DivNoNan", "MulNoNan")),
    *(binary(op, P * (P > 0.5), Q) for op in ("Pow", "Xdivy", "Xlogy", "Xlog1py")),
    case("NextAfter", lambda x, y: raw.NextAfter(x1=x, x2=y), X, Y),
    case("Zeta", lambda x, q: raw.Zeta(x=x, q=q), P + 1.5, Q),
    case("Polygamma", lambda a, x: raw.Polygamma(a=a, x=x), np.float32([1, 2, 3]), positive(3)),
    case("Complex", lambda x, y: raw.Complex(real=x, imag=y), X, Y),
    case("Equal", lambda x, y: raw.Equal(x=x, y=y, incompatible_shape_error=False), X, normal(3)),
    case("AddN", lambda x, y: raw.AddN(inputs=[x, y, x]), X, Y),
    case("SelectV2", lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y), B, X, Y),
    case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), np.array([True, False, True]), X, Y),
    case("ClipByValue", lambda x: raw.ClipByValue(t=x, clip_value_min=-0.5, clip_value_max=0.5), X),
    case("Cast", lambda x: (tf.cast(x, tf.int32), tf.cast(x, tf.bool), tf.cast(x, tf.float64)), X * 3),
    case("Bitcast", lambda x: (tf.bitcast(x, tf.int32), tf.bitcast(x, tf.uint8)), X),
    case("Bitcast", lambda x: tf.bitcast(x, tf.float64), normal(3, 2)),
]
GRADIENTS = [
    *(case(op, lambda y, dy, op=op: getattr(raw, op)(y=y, dy=dy), P, Y) for op in ("TanhGrad", "SigmoidGrad")),
    *(case(op, lambda y, dy, op=op: getattr(raw, op)(y=y, dy=dy), P, Y) for op in ("SqrtGrad", "RsqrtGrad")),
    case("ReciprocalGrad", lambda y, dy: raw.ReciprocalGrad(y=y, dy=dy), P, Y),
    *(
        case(op, lambda g, x, op=op: getattr(raw, op)(gradients=g, features=x), X, Y * 4)
        for op in ("ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad", "SoftsignGrad")
    ),
    *(case(op, lambda g, x, op=op: getattr(raw, op)(gradients=g, outputs=x), X, Y) for op in ("EluGrad", "SeluGrad")),
    case("BiasAddGrad", lambda x: raw.BiasAddGrad(out_backprop=x), IMAGE),
    case("BiasAddGrad", lambda x: raw.BiasAddGrad(out_backprop=x, data_format="NCHW"), PLANES),
]
SHAPES = [
    case("Shape", lambda x: tf.zeros(raw.Shape(input=x)), X),
    case("ShapeN", lambda x, y: raw.ShapeN(input=[x, y]), X, ROW),
    case("Size", lambda x: raw.Size(input=x), X),
    case("Rank", lambda x: raw.Rank(input=x), X),
    case("BroadcastArgs", lambda x, y: raw.BroadcastArgs(s0=tf.shape(x), s1=tf.shape(y)), X, ROW),
    case("BroadcastGradientArgs", lambda x, y: raw.BroadcastGradientArgs(s0=tf.shape(x), s1=tf.shape(y)), X, ROW),
    case("ConcatOffset", lambda x, y: raw.ConcatOffset(concat_dim=0, shape=[tf.shape(x), tf.shape(y)]), X, Y),
    case("InvertPermutation", lambda: raw.InvertPermutation(x=[2, 0, 1])),
    case("Fill", lambda x: raw.Fill(dims=[2, 3], value=x), np.float32(3)),
    case("Fill", lambda x: raw.Fill(dims=[80, 90], value=2.0) + x, np.float32(3)),
    case("Range", lambda x: tf.cast(tf.range(1, tf.shape(x)[0] * 4, 2), tf.float32), X),
    case("LinSpace", lambda x: raw.LinSpace(start=x, stop=x + 2, num=5), np.float32(1)),
    case("Reshape", lambda x: tf.reshape(x, [2, -1, tf.shape(x)[0]]), X),
    case("ExpandDims", lambda x: (tf.expand_dims(x, 1), tf.expand_dims(x, -1)), X),
    case("Squeeze", lambda x: (tf.squeeze(x), tf.squeeze(x, [-1])), normal(1, 3, 1)),
    case("Transpose", lambda x: tf.transpose(x, [2, 0, 3, 1]), IMAGE),
    case("ConjugateTranspose", lambda x: raw.ConjugateTranspose(x=x, perm=[1, 0]), (X + 1j * Y).astype(np.complex64)),
    case("ReverseV2", lambda x: tf.reverse(x, [0, -1]), X),
    case("BroadcastTo", lambda x: tf.broadcast_to(x, [2, 3, 4]), ROW),
    case("Tile", lambda x: tf.tile(x, [2, 3]), X),
    case("ConcatV2", lambda x, y: tf.concat([x, y, x], -1), X, Y),
    case("Pack", lambda x, y: (tf.stack([x, y], 1), tf.stack([x, y], -1)), X, Y),
    case("Unpack", lambda x: tf.unstack(x, axis=-1), X),
    case("Split", lambda x: tf.split(x, 2, axis=-1), X),
    case("SplitV", lambda x: tf.split(x, [1, -1, 2], axis=1), X),
    case("Pad", lambda x: tf.pad(x, [[1, 0], [2, 3]]), X),
    case("PadV2", lambda x: tf.pad(x, [[1, 0], [2, 3]], constant_values=-1.0), X),
    case("MirrorPad", lambda x: tf.pad(x, [[2, 1], [0, 3]], "REFLECT"), X),
    case("MirrorPad", lambda x: tf.pad(x, [[2, 1], [0, 3]], "SYMMETRIC"), X),
    case(
        "MirrorPadGrad", lambda x: raw.MirrorPadGrad(input=x, paddings=[[2, 1], [0, 1]], mode="REFLECT"), normal(6, 5)
    ),
    case(
        "MirrorPadGrad", lambda x: raw.MirrorPadGrad(input=x, paddings=[[2, 1], [0, 1]], mode="SYMMETRIC"), normal(6, 5)
    ),
    case("Roll", lambda x: tf.roll(x, [1, -2], [0, 1]), X),
    case("SpaceToBatchND", lambda x: raw.SpaceToBatchND(input=x, block_shape=[2, 3], paddings=[[0, 2], [1, 1]]), IMAGE),
    case(
        "BatchToSpaceND",
        lambda x: raw.BatchToSpaceND(input=x, block_shape=[2, 3], crops=[[1, 0], [0, 2]]),
        normal(6, 2, 3, 2),
    ),
    case("SpaceToDepth", lambda x: tf.nn.space_to_depth(x, 2), normal(1, 4, 6, 3)),
    case("DepthToSpace", lambda x: tf.nn.depth_to_space(x, 2), normal(1, 2, 3, 8)),
    case("MatrixDiagV3", lambda x: tf.linalg.diag(x), X),
    case("MatrixDiagPartV3", lambda x: tf.linalg.diag_part(x), normal(2, 3, 4)),
    case("MatrixDiagV3", lambda x: raw.MatrixDiagV3(diagonal=x, k=0, num_rows=4, num_cols=6, padding_value=1.0), X),
    case("ListDiff", lambda: raw.ListDiff(x=[3, 1, 4, 1, 5], y=[1, 5])),
    case("Where", lambda: tf.where([[True, False], [False, True]])),
    case("Unique", lambda: tf.unique([3, 1, 3, 2, 1])),
    case("MatrixBandPart", lambda x: (tf.linalg.band_part(x, 1, -1), tf.linalg.band_part(x, -1, 0)), normal(4, 4)),
    case("EnsureShape", lambda x: tf.ensure_shape(x, [3, None]), X),
]
REDUCTIONS = [
    *(case(op, lambda x, op=op: getattr(raw, op)(input=x, axis=[-1], keep_dims=True), X) for op in ("Max", "Min")),
    *(case(op, lambda x, op=op: getattr(raw, op)(input=x, axis=[0, 1]), X) for op in ("Mean", "Prod", "Sum")),
    *(case(op, lambda x, op=op: getattr(raw, op)(input=x, axis=0), B) for op in ("All", "Any")),
    case("EuclideanNorm", lambda x: raw.EuclideanNorm(input=x, axis=[1]), X),
    case("Mean", lambda x: tf.reduce_mean(tf.cast(x, tf.float16), 0), X),
    case("ArgMax", lambda x: (tf.argmax(x, 1), tf.argmax(x, 0, output_type=tf.int32)), X),
    case("ArgMin", lambda x: tf.argmin(x, -1), X),
    case("TopKV2", lambda x: tf.math.top_k(x, 2), X),
    case("InTopKV2", lambda x: raw.InTopKV2(predictions=x, targets=[1, 3, 0], k=2), X),
    *(case("Cumsum", lambda x, e=e, r=r: tf.cumsum(x, 1, e, r), X) for e in (True, False) for r in (True, False)),
    case("Cumprod", lambda x: tf.math.cumprod(x, -1), X),
    case("CumulativeLogsumexp", lambda x: tf.math.cumulative_logsumexp(x, 0), X),
    *(
        case(op, lambda x, op=op: getattr(raw, op)(data=x, segment_ids=[2, 0, 2], num_segments=4), X)
        for op in ("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum")
    ),
    *(
        case(op, lambda x, op=op: getattr(raw, op)(data=x, segment_ids=[0, 0, 2]), X)
        for op in ("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum")
    ),
    case("Bucketize", lambda x: raw.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.7]), X),
    case("LowerBound", lambda x, y: tf.searchsorted(tf.sort(x), y), X, Y),
    case("UpperBound", lambda x, y: tf.searchsorted(tf.sort(x), y, "right"), X, Y),
    case("DenseBincount", lambda x: raw.DenseBincount(input=x, size=5, weights=tf.zeros([0])), ints(1, 3, 3, 0)),
    *(
        case("DenseBincount", lambda x, w, b=b: raw.DenseBincount(input=x, size=4, weights=w, binary_output=b), x, w)
        for b in (False, True)
        for x, w in ((ROWS, normal(2, 4)), (ROWS, np.zeros(0, np.float32)), (ROWS[0], normal(4)))
    ),
    case("Bincount", lambda x, w: raw.Bincount(arr=x, size=4, weights=w), ROWS, normal(2, 4)),
]
CONTRACTIONS = [
    *(
        case("MatMul", lambda x, y, a=a, b=b: tf.matmul(x, y, transpose_a=a, transpose_b=b), normal(4, 4), normal(4, 4))
        for a in (False, True)
        for b in (False, True)
    ),
    case("BatchMatMulV2", lambda x, y: tf.matmul(x, y), normal(2, 1, 3, 4), normal(5, 4, 2)),
    case(
        "BatchMatMulV2", lambda x, y: tf.matmul(x, y, adjoint_a=True, adjoint_b=True), normal(2, 4, 3), normal(2, 5, 4)
    ),
    case("Cross", lambda x, y: tf.linalg.cross(x, y), normal(2, 3), normal(2, 3)),
    case("Einsum", lambda x, y: tf.einsum("bij,bjk->bik", x, y), normal(2, 3, 4), normal(2, 4, 5)),
    case("Einsum", lambda x, y: tf.einsum("...ij,jk->k...i", x, y), normal(2, 3, 4), normal(4, 5)),
    case("Einsum", lambda x, y: tf.einsum("...i,...i->...", x, y), normal(2, 3, 4), normal(1, 4)),
    case("Einsum", lambda x: raw.Einsum(inputs=[x], equation="ii->i"), normal(4, 4)),
    case("Einsum", lambda x, y: raw.Einsum(inputs=[x, y], equation="ij,kj->"), X, Y),
]


def convolution(op: str, x: np.ndarray, kernel: np.ndarray, **attributes: Any) -> Case:
    return case(op, lambda x, k: getattr(raw, op)(input=x, filter=k, **attributes), x, kernel)


def input_gradient(op: str, shape: tuple[int, ...], kernel: np.ndarray, dy: np.ndarray, **attributes: Any) -> Case:
    return case(
        op, lambda k, d: getattr(raw, op)(input_sizes=shape, filter=k, out_backprop=d, **attributes), kernel, dy
    )


def filter_gradient(op: str, x: np.ndarray, shape: tuple[int, ...], dy: np.ndarray, **attributes: Any) -> Case:
    return case(op, lambda x, d: getattr(raw, op)(input=x, filter_sizes=shape, out_backprop=d, **attributes), x, dy)


SAME: dict[str, Any] = {"strides": [1, 2, 2, 1], "padding": "SAME"}
VALID: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "VALID"}
SPREAD: dict[str, Any] = {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 2, 1]}
EDGES: dict[str, Any] = {"strides": [1, 2, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]}
SOLID: dict[str, Any] = {"strides": [1, 2, 1, 1, 1], "padding": "SAME"}
DEPTHWISE = "DepthwiseConv2dNative"
CONVOLUTIONS = [
    *(convolution("Conv2D", IMAGE, normal(3, 2, 4, 5), **how) for how in (SAME, VALID, SPREAD, EDGES)),
    convolution("Conv2D", IMAGE, normal(3, 2, 2, 6), **SAME),
    convolution("Conv3D", VOLUME, normal(2, 3, 2, 2, 3), **SOLID),
    *(convolution(DEPTHWISE, IMAGE, normal(3, 2, 4, 2), strides=[1, s, s, 1], padding="SAME") for s in (1, 2)),
    input_gradient("Conv2DBackpropInput", (2, 6, 7, 4), normal(3, 2, 4, 5), normal(2, 3, 4, 5), **SAME),
    input_gradient("Conv2DBackpropInput", (2, 6, 7, 4), normal(3, 2, 4, 5), normal(2, 4, 6, 5), **VALID),
    input_gradient("Conv2DBackpropInput", (2, 6, 7, 4), normal(3, 2, 4, 5), normal(2, 4, 7, 5), **EDGES),
    filter_gradient("Conv2DBackpropFilter", IMAGE, (3, 2, 4, 5), normal(2, 3, 4, 5), **SAME),
    filter_gradient("Conv2DBackpropFilter", IMAGE, (3, 2, 4, 5), normal(2, 4, 6, 5), **VALID),
    filter_gradient("Conv2DBackpropFilter", IMAGE, (3, 2, 4, 5), normal(2, 4, 7, 5), **EDGES),
    input_gradient("Conv3DBackpropInputV2", VOLUME.shape, normal(2, 3, 2, 2, 3), normal(1, 2, 5, 4, 3), **SOLID),
    filter_gradient("Conv3DBackpropFilterV2", VOLUME, (2, 3, 2, 2, 3), normal(1, 2, 5, 4, 3), **SOLID),
    input_gradient(f"{DEPTHWISE}BackpropInput", (2, 6, 7, 4), normal(3, 2, 4, 2), normal(2, 3, 4, 8), **SAME),
    filter_gradient(f"{DEPTHWISE}BackpropFilter", IMAGE, (3, 2, 4, 2), normal(2, 3, 4, 8), **SAME),
    case("BiasAdd", lambda x, b: raw.BiasAdd(value=x, bias=b), IMAGE, ROW),
    case("BiasAdd", lambda x, b: raw.BiasAdd(value=x, bias=b, data_format="NCHW"), PLANES, ROW),
    case("BiasAddV1", lambda x, b: raw.BiasAddV1(value=x, bias=b), IMAGE, ROW),
]
POOL: dict[str, Any] = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}
TIGHT: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
SOLID_POOL: dict[str, Any] = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}


def max_gradient(x: np.ndarray, how: dict[str, Any]) -> Case:
    y = raw.MaxPool(input=x, **how).numpy()
    return case(
        "MaxPoolGrad",
        lambda x, y, d: raw.MaxPoolGrad(orig_input=x, orig_output=y, grad=d, **how),
        x,
        y,
        normal(*y.shape),
    )


def average_gradient(x: np.ndarray, how: dict[str, Any]) -> Case:
    dy = normal(*raw.AvgPool(value=x, **how).shape)
    return case("AvgPoolGrad", lambda d: raw.AvgPoolGrad(orig_input_shape=x.shape, grad=d, **how), dy)


POOLING = [
    *(case("MaxPool", lambda x, how=how: raw.MaxPool(input=x, **how), IMAGE) for how in (POOL, TIGHT)),
    *(case("AvgPool", lambda x, how=how: raw.AvgPool(value=x, **how), IMAGE) for how in (POOL, TIGHT)),
    case(
        "MaxPoolV2", lambda x: raw.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 1, 2, 1], padding="VALID"), IMAGE
    ),
    case("MaxPool3D", lambda x: raw.MaxPool3D(input=x, **SOLID_POOL), VOLUME),
    case("AvgPool3D", lambda x: raw.AvgPool3D(input=x, **SOLID_POOL), VOLUME),
    *(max_gradient(IMAGE, how) for how in (POOL, TIGHT)),
    *(average_gradient(IMAGE, how) for how in (POOL, TIGHT)),
]


def normalization(x: np.ndarray, **how: Any) -> Case:
    def run(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
        return raw.FusedBatchNormV3(x=x, scale=scale, offset=offset, mean=mean, variance=variance, **how)[:3]

    return case("FusedBatchNormV3", run, x, normal(4), normal(4), normal(4), positive(4))


def normalization_gradient(x: np.ndarray, **how: Any) -> Case:
    def run(dy: Any, x: Any, scale: Any, mean: Any, variance: Any) -> Any:
        spaces = {"reserve_space_1": mean, "reserve_space_2": variance, "reserve_space_3": tf.zeros([0])}
        return raw.FusedBatchNormGradV3(y_backprop=dy, x=x, scale=scale, **spaces, **how)[:3]

    axes = (0, 1, 2)
    return case("FusedBatchNormGradV3", run, normal(*x.shape), x, normal(4), x.mean(axes), x.var(axes))


LAYERS = [
    case(
        "FakeQuantWithMinMaxVars",
        lambda x: raw.FakeQuantWithMinMaxVars(inputs=x, min=0.5, max=-2.0),
        normal(3, 4),
    ),
    case(
        "FakeQuantWithMinMaxVarsPerChannel",
        lambda x: raw.FakeQuantWithMinMaxVarsPerChannel(
            inputs=x, min=[-1.0] * 4, max=[0.5, 1, 2, 3], num_bits=4, narrow_range=True
        ),
        X,
    ),
    normalization(IMAGE, is_training=False),
    normalization(IMAGE, is_training=True, epsilon=0.01),
    normalization(IMAGE, is_training=True, exponential_avg_factor=0.1),
    normalization_gradient(IMAGE, is_training=True),
    normalization_gradient(IMAGE, is_training=False),
    case("SoftmaxCrossEntropyWithLogits", lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y), X, P),
    case(
        "SoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x[:1], labels=y),
        X,
        P,
    ),
    case(
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y),
        X,
        ints(0, 3, 1, dtype=np.int64),
    ),
    case("OneHot", lambda i: (tf.one_hot(i, 4), tf.one_hot(i, 4, 5.0, -1.0, axis=0)), ints(0, 3, 1, 7)),
]
FLAGS = ((False, False), (True, False), (False, True))
HOW = [dict(zip(("align_corners", "half_pixel_centers"), flags, strict=True)) for flags in FLAGS]
IMAGES = [
    *(
        case("ResizeNearestNeighbor", lambda x, h=h: raw.ResizeNearestNeighbor(images=x, size=[9, 4], **h), IMAGE)
        for h in HOW
    ),
    *(case("ResizeBicubic", lambda x, h=h: raw.ResizeBicubic(images=x, size=[9, 4], **h), IMAGE) for h in HOW),
    case(
        "ExtractImagePatches",
        lambda x: tf.image.extract_patches(x, [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 2, 1], "SAME"),
        IMAGE,
    ),
    *(
        case(
            "CropAndResize",
            lambda x, boxes, of, size=size, method=method: raw.CropAndResize(
                image=x, boxes=boxes, box_ind=of, crop_size=size, method=method, extrapolation_value=-3.0
            ),
            *(IMAGE, BOXES, np.array([1, 0, 1, 1], np.int32)),
        )
        for method in ("bilinear", "nearest")
        for size in ([3, 5], [1, 4], [6, 1])
    ),
    case("CropAndResize", lambda x: tf.image.crop_and_resize(x, BOXES, [0] * 4, [4, 3]), IMAGE.astype(np.uint8)),
    *(case("ResizeBilinear", lambda x, h=h: raw.ResizeBilinear(images=x, size=[9, 4], **h), IMAGE) for h in HOW),
    *(
        case(
            "ResizeNearestNeighborGrad", lambda x, h=h: raw.ResizeNearestNeighborGrad(grads=x, size=[9, 4], **h), IMAGE
        )
        for h in HOW
    ),
    *(
        case(
            "ResizeBilinearGrad",
            lambda x, y, h=h: raw.ResizeBilinearGrad(grads=x, original_image=y, **h),
            IMAGE,
            normal(2, 9, 4, 4),
        )
        for h in HOW
    ),
]
INDEXING = [
    case("StridedSlice", lambda x: (x[1:, ::2], x[-1], x[..., 1], x[:, tf.newaxis, 1:3], x[::-1, 3:0:-2]), X),
    case("StridedSlice", lambda x: (x[:, 1, ..., 0], x[1:1], x[tf.newaxis, ..., -2:]), IMAGE),
    case("StridedSlice", lambda x, i: (x[i], x[:, 0, i], x[0, i, ::-2], x[..., i, 1:3]), IMAGE, np.int32(-2)),
    case("StridedSlice", lambda x, i: (x[i[0], i[1], :, 2], x[::-1, i[1], tf.newaxis]), IMAGE, ints(-1, 3)),
    case(
        "StridedSliceGrad",
        lambda i, d: raw.StridedSliceGrad(
            shape=[6, 3, 7], begin=[5, 0, i], end=[0, 0, 0], strides=[-2, 1, 1], dy=d, end_mask=2, shrink_axis_mask=4
        ),
        np.int32(4),
        normal(3, 3),
    ),
    case(
        "StridedSliceGrad",
        lambda d: raw.StridedSliceGrad(shape=[3, 7], begin=[2, 1], end=[0, 6], strides=[-1, 2], dy=d, end_mask=1),
        normal(3, 3),
    ),
    case("Slice", lambda x: tf.slice(x, [1, 0], [2, -1]), X),
    case("Slice", lambda x, i: (tf.slice(x, [i, 0], [2, 3]), tf.slice(x, [i, 1], [1, -1])), X, np.int32(1)),
    case("GatherV2", lambda x, i: (tf.gather(x, i), tf.gather(x, i, axis=1)), X, ints(2, 0, 1, 1).reshape(2, 2)),
    case("GatherV2", lambda x, i: tf.gather(x, i, batch_dims=1), normal(2, 5, 3), ints(4, 0, 1, 1).reshape(2, 2)),
    case(
        "GatherV2", lambda x, i: tf.gather(x, i, axis=2, batch_dims=1), normal(2, 3, 5), ints(4, 0, 1, 1).reshape(2, 2)
    ),
    case("GatherNd", lambda x: tf.gather_nd(x, [[0, 1], [2, 3]]), X),
    case("GatherNd", lambda x: tf.gather_nd(x, [[[2]], [[0]]]), X),
    case("ScatterNd", lambda u: tf.scatter_nd([[1], [3], [1]], u, [5, 4]), X),
    *(
        case(op, lambda x, u, op=op: getattr(raw, op)(tensor=x, indices=[[2], [0]], updates=u), X, normal(2, 4))
        for op in (
            "TensorScatterAdd",
            "TensorScatterSub",
            "TensorScatterMax",
            "TensorScatterMin",
            "TensorScatterUpdate",
        )
    ),
    case("TensorStridedSliceUpdate", lambda x, y: tf.tensor_scatter_nd_update(x, [[0]], y[:1]), X, Y),
    case(
        "TensorStridedSliceUpdate",
        lambda x, y: raw.TensorStridedSliceUpdate(
            input=x, begin=[2, 0], end=[0, 4], strides=[-1, 2], value=y[:2, :2], begin_mask=2
        ),
        X,
        Y,
    ),
    *(
        case(
            "TensorStridedSliceUpdate",
            lambda x, y, i, begin=begin: raw.TensorStridedSliceUpdate(
                input=x, begin=[begin, i], end=[3, 0], strides=[1, 1], value=y[begin:, 0], shrink_axis_mask=2
            ),
            X,
            Y,
            np.int32(-1),
        )
        for begin in (0, 1)
    ),
    case("ReverseSequence", lambda x: tf.reverse_sequence(x, [2, 0, 4], seq_axis=1), X),
    case(
        "XlaDynamicSlice",
        lambda x, i: xla.dynamic_slice(x, i, [2, 2]),
        X,
        ints(1, 1),
    ),
    case(
        "XlaDynamicUpdateSlice",
        lambda x, i: xla.dynamic_update_slice(x, x[:1, :2], i),
        X,
        ints(1, 1),
    ),
    case("DynamicStitch", lambda x, y: tf.dynamic_stitch([[0, 2, 4], [1, 3, 5]], [x, y]), X, Y),
]
RANDOM = [
    case("StatelessRandomUniformV2", lambda s: tf.random.stateless_uniform([3, 5], s), ints(3, -4)),
    case("StatelessRandomUniformV2", lambda s: tf.random.stateless_uniform([7], s, dtype=tf.float64), ints(3, -4)),
    case(
        "StatelessRandomUniformFullIntV2",
        lambda s: tf.random.stateless_uniform([5], s, None, None, tf.int32),
        ints(3, -4),
    ),
    case(
        "StatelessRandomUniformFullIntV2",
        lambda s: tf.random.stateless_uniform([5], s, None, None, tf.int64),
        ints(3, -4),
    ),
    case("StatelessRandomUniformIntV2", lambda s: tf.random.stateless_uniform([5], s, -3, 9, tf.int32), ints(3, -4)),
    case("StatelessRandomUniformIntV2", lambda s: tf.random.stateless_uniform([5], s, -3, 9, tf.int64), ints(3, -4)),
    case("StatelessRandomNormalV2", lambda s: tf.random.stateless_normal([3, 5], s), ints(1, 2)),
]
CASES = [
    *(*UNARY, *BINARY, *GRADIENTS, *SHAPES, *REDUCTIONS, *CONTRACTIONS),
    *(*CONVOLUTIONS, *POOLING, *LAYERS, *IMAGES, *INDEXING, *RANDOM),
]
