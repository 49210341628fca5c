"""Cases of ops that only TensorFlow's optimizer or its gradients write, and that have no function in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import Case
from tests.suites.tensorflow.ops import called

R = np.random.default_rng(7)


def f(*shape: int) -> np.ndarray:
    return R.standard_normal(shape).astype(np.float32)


IMAGE, KERNEL = f(2, 5, 6, 3), f(3, 3, 3, 4)
COARSE = R.integers(0, 3, (1, 5, 6, 2)).astype(np.float32)


def case(
    op: str, function: Callable[..., Any], *inputs: np.ndarray, composed: Callable[..., Any] | None = None
) -> Case:
    """A case of a function that only a graph can contain."""
    return Case(op, tf.function(function, autograph=False), inputs, composed)


def fused_conv(x: Any, w: Any, *args: Any, names: list[str], **attributes: Any) -> Any:
    known = {"strides": [1, 1, 1, 1], "padding": "SAME", "host_args": [], "fused_ops": names, "num_args": len(args)}
    return called("_FusedConv2D", input=x, filter=w, args=list(args), **known, **attributes)


def fused_depthwise(x: Any, w: Any, b: Any) -> Any:
    return called(
        "_FusedDepthwiseConv2dNative", input=x, filter=w, args=[b], strides=[1, 1, 1, 1], padding="SAME",
        fused_ops=["BiasAdd", "Relu"],
    )  # fmt: skip


def separate_depthwise(x: Any, w: Any, b: Any) -> Any:
    return tf.nn.relu(tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME") + b)


def fused_matmul(a: Any, b: Any, bias: Any, names: list[str]) -> Any:
    return called("_FusedMatMul", a=a, b=b, args=[bias], fused_ops=names, transpose_b=True)


def fused_norm(x: Any, scale: Any, offset: Any, *side: Any) -> Any:
    return called(
        "_FusedBatchNormEx", x=x, scale=scale, offset=offset, mean=tf.zeros([4]), variance=tf.ones([4]),
        side_input=list(side), activation_mode="Relu", is_training=False,
    )[0]  # fmt: skip


def composed(x: Any, names: list[str]) -> Any:
    return called("_UnaryOpsComposition", x=x, op_names=names)


def second_gradient(x: Any, g: Any, padding: str = "SAME") -> Any:
    options = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": padding}
    y = tf.raw_ops.MaxPool(input=x, **options)
    return tf.raw_ops.MaxPoolGradGrad(orig_input=x, orig_output=y, grad=g, **options)


def second_gradient_3d(x: Any, g: Any) -> Any:
    options = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "VALID"}
    y = tf.raw_ops.MaxPool3D(input=x, **options)
    return tf.raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=g, **options)


def second_gradient_sizes(x: Any, g: Any) -> Any:
    options = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
    y = tf.raw_ops.MaxPool(input=x, **options)
    return tf.raw_ops.MaxPoolGradGradV2(orig_input=x, orig_output=y, grad=g, **options)


def dense(indices: Any, shape: list[int], values: Any, default: float) -> Any:
    return tf.raw_ops.SparseToDense(
        sparse_indices=indices, output_shape=shape, sparse_values=values, default_value=default
    )


CORNERS = R.random((20, 4)).astype(np.float32)


def best_boxes(order: Any, most: int = 8, least: float = 0.2) -> Any:
    """The scores are known, as the op needs it; their order is not."""
    scores = np.round(CORNERS.sum(1) % 1, 1).astype(np.float32)
    chosen = tf.raw_ops.NonMaxSuppressionV3(
        boxes=CORNERS, scores=scores, max_output_size=most, iou_threshold=0.4, score_threshold=least
    )
    return tf.gather(order, chosen)


FUSED_CASES = [
    case("_FusedConv2D", lambda x, w, b: fused_conv(x, w, b, names=["BiasAdd"]), IMAGE, KERNEL, f(4)),
    case("_FusedDepthwiseConv2dNative", fused_depthwise, IMAGE, f(3, 3, 3, 2), f(6), composed=separate_depthwise),
    case("_FusedConv2D", lambda x, w, b: fused_conv(x, w, b, names=["BiasAdd", "Relu6"]), IMAGE, KERNEL, f(4)),
    case(
        "_FusedConv2D",
        lambda x, w, b: fused_conv(x, w, b, names=["BiasAdd", "LeakyRelu"], leakyrelu_alpha=0.3),
        *(IMAGE, KERNEL, f(4)),
    ),
    case(
        "_FusedConv2D",
        lambda x, w, *rest: fused_conv(x, w, *rest, names=["FusedBatchNorm", "Relu"], epsilon=0.01),
        *(IMAGE, KERNEL, f(4), f(4), f(4), np.abs(f(4))),
    ),
    *(
        case(
            "_FusedMatMul",
            lambda a, b, c, names=names: fused_matmul(a, b, c, names),
            *(f(3, 4), f(5, 4), f(5)),
            composed=lambda a, b, c, then=then: then(tf.matmul(a, b, transpose_b=True) + c),
        )
        for names, then in (
            (["BiasAdd"], tf.identity),
            (["BiasAdd", "Tanh"], tf.tanh),
            (["BiasAdd", "GeluExact"], lambda x: tf.nn.gelu(x, approximate=False)),
            (["BiasAdd", "GeluApproximate"], lambda x: tf.nn.gelu(x, approximate=True)),
        )
    ),
    case(
        "_FusedBatchNormEx",
        fused_norm,
        *(f(2, 5, 6, 4), f(4), f(4)),
        composed=lambda x, scale, offset: tf.nn.relu(
            tf.nn.batch_normalization(x, tf.zeros([4]), tf.ones([4]), offset, scale, 1e-4)
        ),
    ),
    case("_UnaryOpsComposition", lambda x: composed(x, ["Abs", "Log", "Relu"]), f(9)),
    case("MaxPoolGradGrad", second_gradient, COARSE, f(*COARSE.shape)),
    case("MaxPoolGradGrad", lambda x, g: second_gradient(x, g, "VALID"), COARSE, f(*COARSE.shape)),
    case("MaxPoolGradGradV2", second_gradient_sizes, COARSE, f(*COARSE.shape)),
    case("MaxPool3DGradGrad", second_gradient_3d, f(1, 3, 4, 3, 2), f(1, 3, 4, 3, 2)),
    case("NonMaxSuppressionV3", best_boxes, f(20)),
    case("NonMaxSuppressionV3", lambda x: best_boxes(x, 30, 0.0), f(20)),
    case("NonMaxSuppressionV3", lambda x: best_boxes(x, 0), f(20)),
    case("SparseToDense", lambda i, v: dense(i, [6], v, 0.5), np.array([1, 4]), f(2)),
    case("SparseToDense", lambda i, v: dense(i, [2, 3], v, -1.0), np.array([[0, 1], [1, 2]]), f(2)),
    case("SparseToDense", lambda i, v: dense(i, [5], v, -1.0), np.array(3, np.int32), f(2)[0]),
    case("SparseToDense", lambda i, v: dense(i, [5], v, 2.0), np.zeros(0, np.int64), f(0)),
]
