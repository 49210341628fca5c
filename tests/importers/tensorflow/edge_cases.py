"""Cases at the edges of what ops accept, as in `cases`: equal elements, numbers that are not finite, empty tensors, and
attributes that are rarely set."""

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import Case, case, ints, normal, raw

INTEGERS = {2: tf.int16, 4: tf.int32, 8: tf.int64}
"""The types of the bits of floats, by their bytes."""

FLOATS = (tf.float64, tf.float32, tf.float16, tf.bfloat16)
MANY = np.float32([0.1, -0.1, 1 / 3, 12.3, -777.7, 1 + 2**-8 + 2**-20, 0, -0.0, 1e-3])
STEPS = np.float32([0, 0, 0, 0, -1]), np.float32([0.25, -0.25, 0.26, 0.24, -0.75])
COMPLEX = np.complex64([1j, 1, 0, 1 + 1j, complex(0, np.nan), complex(np.nan, 0)])


def truncated(x: tf.Tensor, kind: tf.DType) -> tf.Tensor:
    return tf.bitcast(raw.Cast(x=x, DstT=kind, Truncate=True), INTEGERS[kind.size])


CASTS = [
    *(
        case("Cast", lambda x, kind=kind: truncated(x, kind), MANY.astype(given.as_numpy_dtype))
        for given in FLOATS
        for kind in FLOATS
        if given != kind
    ),
    *(case("Cast", lambda x: tf.cast(x, tf.bool), x) for x in (COMPLEX, COMPLEX.astype(np.complex128))),
    case("Where", lambda: tf.where(COMPLEX)),
]
# The third power of the result alone is infinite.
OF_ROOTS = [
    case("RsqrtGrad", lambda y, dy: raw.RsqrtGrad(y=y, dy=dy), y, dy)
    for y, dy in (
        (np.float16([100, 50]), np.float16([6e-5, 1e-4])),
        (np.float32([1e15, 2e14]), np.float32([1e-20, 1e-18])),
    )
]
CHOICES = np.float32([[np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [0, 1, 2], [2, 2, 1]])
SEARCHES = [
    *(
        case(
            "ApproximateEqual",
            lambda x, y: raw.ApproximateEqual(x=x, y=y, tolerance=0.25),
            *(x.astype(t) for x in STEPS),
        )
        for t in (np.float32, np.float64)
    ),
    *(
        case(op, lambda x, at, op=op, k=k: getattr(raw, op)(predictions=x, targets=at, k=k), CHOICES, ints(*[at] * 5))
        for op in ("InTopK", "InTopKV2")
        for k in (1, 2)
        for at in (-1, 0, 1, 2, 3)
    ),
    *(
        case("Bucketize", lambda x: raw.Bucketize(input=x, boundaries=[0.1, 1, 3]), np.array(numbers, kind))
        for kind, numbers in (
            (np.float64, [1 - 1e-12, 1, 1 + 1e-12, 0.1, -1e-300]),
            (np.float32, [1, 0.1, 0.2, np.nan]),
            (np.int64, [0, 1, 2, 3]),
        )
    ),
]
TABLE = normal(4, 3, 5)
PLACES = [
    case(
        "GatherV2",
        lambda x, i, axis=axis, batch=batch: raw.GatherV2(params=x, indices=i, axis=axis, batch_dims=batch),
        *(TABLE, ints(*np.arange(np.prod(shape)) % 3).reshape(shape)),
    )
    for shape, axis, batch in (((4, 3), 2, -1), ((4, 3), 1, -1), ((4, 3, 2), -1, -1), ((4, 3, 2), 2, -2))
]
EMPTY = [
    case("Reshape", lambda x, shape=shape: tf.reshape(x, shape), normal(*given))
    for given, shape in (
        ((2, 0), [-1, 0]),
        ((0, 3), [-1, 0]),
        ((2, 0), [0, -1]),
        ((2, 0, 4), [-1, 0, 2]),
        ((0,), [-1, 0, 3]),
        ((0, 3), [-1, 3]),
    )
]
OF_NOTHING = [
    case("Mean", lambda x: raw.Mean(input=x, axis=[0]), normal(0, 3).astype(kind))
    for kind in (np.int8, np.uint8, np.int32, np.int64, np.float32, np.complex64)
]
ROLLED = [
    *(
        case("Roll", lambda x, n: tf.roll(x, [n, 1, -n], [1, 0, 1]), normal(*shape), np.int32(n))
        for shape in ((3, 4), (0, 4))
        for n in (0, 1, -1, 5, -7)
    ),
    case("Roll", lambda x: tf.signal.fftshift(x), normal(5, 4)),
]
EQUAL = np.maximum(np.round(normal(2, 3, 6, 7, 2)), 0)
"""Many equal elements, as after a `Relu`."""


def gradient_of_pooling(x: tf.Tensor, **how: object) -> tf.Tensor:
    y = raw.MaxPool3D(input=x, **how)
    weights = tf.reshape(tf.range(1, tf.cast(tf.size(y), tf.float32) + 1), tf.shape(y))
    return raw.MaxPool3DGrad(orig_input=x, orig_output=y, grad=weights, **how)


POOLED = [
    case(
        "MaxPool3DGrad",
        lambda x, size=size, stride=stride, padding=padding: gradient_of_pooling(
            x, ksize=[1, *size, 1], strides=[1, *stride, 1], padding=padding
        ),
        EQUAL,
    )
    for size, stride in (((2, 2, 2), (2, 2, 2)), ((1, 3, 2), (1, 2, 1)), ((2, 3, 2), (3, 3, 1)), ((1, 1, 1), (2, 2, 2)))
    for padding in ("SAME", "VALID")
]
BEYOND = np.float32([[-3, -1, 0, 1, 2, 3, np.nan], [-1.5, 2.3, 5, -5, 0.1, 0.2, np.inf]])
GRADIENTS = [
    *(
        case(
            "QuantizeAndDequantizeV4Grad",
            lambda g, x, low, high, axis=axis: raw.QuantizeAndDequantizeV4Grad(
                gradients=g, input=x, input_min=low, input_max=high, axis=axis
            ),
            *(np.where(BEYOND == 3, np.inf, BEYOND + 9), BEYOND, np.float32(low), np.float32(high)),
        )
        for low, high, axis in ((-1.5, 2.3, -1), (2, -1, -1), ([-1.5, -1], [2.3, 0.15], 0))
    ),
    case(
        "ResizeBicubicGrad",
        lambda g, x: raw.ResizeBicubicGrad(grads=g, original_image=x),
        *(normal(1, 5, 6, 2), normal(1, 3, 4, 2).astype(np.float64)),
    ),
]
# The low bound is no multiple of the step.
BOUNDS = [
    case(
        "Dequantize",
        lambda x, low=low, high=high, kind=kind: raw.Dequantize(
            input=tf.bitcast(x, kind), min_range=low, max_range=high, mode="MIN_FIRST"
        ),
        ints(0, 1, 77, 127, dtype=given),
    )
    for given, kind in ((np.uint8, tf.quint8), (np.int8, tf.qint8))
    for low, high in ((-1.5, 2), (-3.3, -1.1), (0.3, 9.7), (2, 2), (0, 0))
]

EDGE_CASES: list[Case] = [
    *(*CASTS, *OF_ROOTS, *SEARCHES, *PLACES, *EMPTY, *OF_NOTHING, *ROLLED, *POOLED, *GRADIENTS, *BOUNDS),
]
