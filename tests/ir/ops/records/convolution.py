"""Convolutions. Values are small whole numbers, whose products and sums are exact in any order."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Record
from tests.ir.ops.records.reduction import LaxCall, whole
from trivium.ir.ops import ConvDimensionNumbers, Convolution

_BFLOAT = np.dtype(ml_dtypes.bfloat16)


def _numbers(layout: str) -> ConvDimensionNumbers:
    """`_numbers("b01f x 01io -> b01f")`."""
    left, rest = layout.replace(" ", "").split("x")
    kernel, output = rest.split("->")
    space = sorted(letter for letter in left if letter.isdigit())
    places = [
        (text.index(first), text.index(second), tuple(text.index(axis) for axis in space))
        for text, first, second in ((left, "b", "f"), (kernel, "i", "o"), (output, "b", "f"))
    ]
    return ConvDimensionNumbers(*places[0], *places[1], *places[2])


def _convolution(
    layout: str, lhs: np.ndarray, rhs: np.ndarray, features: int = 1, batches: int = 1, **more: Any
) -> Record:
    left, rest = layout.upper().replace("B", "N").replace("F", "C").replace(" ", "").split("X")
    kernel, output = rest.split("->")
    rank = lhs.ndim - 2

    def oracle(lax, lhs, rhs):
        if reversal := more.get("window_reversal"):
            rhs = np.flip(rhs, [kernel.index(str(axis)) for axis in range(rank) if reversal[axis]])
        return lax.conv_general_dilated(
            lhs,
            rhs,
            more.get("window_strides", (1,) * rank),
            more.get("padding", ((0, 0),) * rank),
            more.get("lhs_dilation"),
            more.get("rhs_dilation"),
            (left, kernel, output),
            features,
            batches,
        )

    attributes = {
        "dimension_numbers": _numbers(layout),
        "feature_group_count": features,
        "batch_group_count": batches,
        **more,
    }
    return Record(Convolution, (lhs, rhs), attributes, oracle=LaxCall(oracle))


_PICTURES = "bf01 x oi01 -> bf01"

RECORDS = [
    _convolution(_PICTURES, whole(2, 3, 9, 8), whole(4, 3, 3, 3), padding=((1, 1), (0, 2)), window_strides=(1, 2)),
    _convolution(
        _PICTURES,
        whole(2, 4, 9, 8),
        whole(8, 1, 3, 2),
        features=4,
        window_strides=(2, 1),
        padding=((1, 1), (-1, 2)),
        lhs_dilation=(2, 1),
        rhs_dilation=(1, 2),
    ),
    _convolution("bf0 x oi0 -> bf0", whole(4, 3, 9), whole(8, 3, 3), batches=2, window_strides=(2,), padding=((1, 1),)),
    _convolution("b01f x 01io -> 0fb1", whole(2, 9, 8, 4), whole(3, 2, 4, 5), window_reversal=(True, False)),
    _convolution("0b1f x o1i0 -> b01f", whole(5, 2, 6, 3, dtype=np.float64), whole(4, 2, 3, 3, dtype=np.float64)),
    _convolution("b012f x 012io -> b012f", whole(1, 4, 4, 4, 2), whole(2, 2, 2, 2, 3)),
    _convolution("bf x io -> bf", whole(4, 3), whole(3, 5)),
    _convolution(_PICTURES, whole(1, 2, 3, 3), whole(2, 2, 4, 4)),
    _convolution(_PICTURES, whole(1, 2, 5, 5, dtype=np.int32), whole(2, 2, 3, 3, dtype=np.int32)),
    _convolution(_PICTURES, whole(1, 2, 5, 5, dtype=_BFLOAT), whole(2, 2, 2, 2, dtype=_BFLOAT, low=-2, high=3)),
]
