"""Dot products and convolutions. Values are small whole numbers, whose products and sums are exact in any order."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Record
from tests.ir.ops.records.reduction import LaxCall, whole
from trivium.ir.ops import (
    ConvDimensionNumbers,
    Convolution,
    DotAlgorithm,
    DotDimensionNumbers,
    DotGeneral,
    Precision,
)
from trivium.ir.types import BF16, F32, FLOATS, I32, tensor


def _dot(equation: str, numbers: DotDimensionNumbers, lhs: np.ndarray, rhs: np.ndarray, **more: Any) -> Record:
    def oracle(lhs, rhs):
        wide = np.complex128 if np.iscomplexobj(lhs) else np.int64 if lhs.dtype.kind in "iu" else np.float64
        return np.einsum(equation, lhs.astype(wide), rhs.astype(wide)).astype(lhs.dtype)

    return Record(DotGeneral, (lhs, rhs), {"dot_dimension_numbers": numbers, **more}, oracle=oracle)


_MATMUL = DotDimensionNumbers(lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))
_BATCHED = DotDimensionNumbers((0,), (1,), (2, 3), (3, 0))
_BFLOAT = np.dtype(ml_dtypes.bfloat16)

_DOTS = [
    _dot("ij,jk->ik", _MATMUL, whole(3, 4), whole(4, 5)),
    _dot("ij,jk->ik", _MATMUL, whole(3, 0), whole(0, 5)),
    _dot("ij,jk->ik", _MATMUL, whole(3, 4, dtype=np.int8), whole(4, 5, dtype=np.int8)),
    _dot("ij,jk->ik", _MATMUL, whole(3, 200, dtype=np.int8, high=120), whole(200, 5, dtype=np.int8, high=120)),
    _dot("ij,jk->ik", _MATMUL, whole(3, 4, dtype=_BFLOAT), whole(4, 5, dtype=_BFLOAT)),
    _dot("ij,jk->ik", _MATMUL, whole(3, 4, dtype=np.complex64), whole(4, 5, dtype=np.complex64) * 1j),
    _dot("ij,jk->ik", _MATMUL, whole(3, 4), whole(4, 5), precision_config=(Precision.HIGHEST, Precision.DEFAULT)),
    _dot("aijk,kabj->aib", _BATCHED, whole(2, 3, 4, 5), whole(5, 2, 6, 4)),
    _dot("i,i->", DotDimensionNumbers((), (), (0,), (0,)), whole(6), whole(6)),
    _dot("i,j->ij", DotDimensionNumbers(), whole(3), whole(4)),
    _dot(",->", DotDimensionNumbers(), whole(), whole()),
    # The result may be wider than the operands.
    Record(
        DotGeneral,
        (whole(3, 200, dtype=np.int8, high=120), whole(200, 5, dtype=np.int8, high=120)),
        {"dot_dimension_numbers": _MATMUL},
        result=tensor(3, 5, of=I32),
        oracle=lambda lhs, rhs: lhs.astype(np.int32) @ rhs.astype(np.int32),
    ),
    Record(
        DotGeneral,
        (np.array([[True, False], [False, False]]), np.array([[True, False], [True, True]])),
        {"dot_dimension_numbers": _MATMUL},
        oracle=lambda lhs, rhs: lhs @ rhs,
    ),
    # An algorithm that rounds its operands: of 1 + 2^-10 bfloat16 keeps 1, TensorFloat-32 all, and so do two bfloat16,
    # which is what three products are of; of 1 + 2^-18 it takes the three of six products.
    *(
        Record(
            DotGeneral,
            (np.array([[1 + 2.0**bit]], np.float32), np.array([[1.0]], np.float32)),
            {"dot_dimension_numbers": _MATMUL, "algorithm": DotAlgorithm(kind, kind, F32, 1, 1, products, False)},
            oracle=lambda lhs, rhs, kept=kept: lhs if kept else rhs,
        )
        for kind, products, bit, kept in (
            (BF16, 1, -10, False),
            (FLOATS["tf32"], 1, -10, True),
            (BF16, 3, -10, True),
            (FLOATS["tf32"], 1, -18, False),
            (FLOATS["tf32"], 3, -18, True),
            (BF16, 6, -18, True),
        )
    ),
    *(
        Record(
            DotGeneral,
            (np.array([[number]], dtype), np.array([[1]], dtype)),
            {"dot_dimension_numbers": _MATMUL, "algorithm": DotAlgorithm(BF16, BF16, F32, 1, 1, products, False)},
            oracle=lambda lhs, rhs, seen=seen, dtype=dtype: np.array([[seen]], dtype),
        )
        for number, dtype, products, seen in (
            (2**10 + 1, np.int32, 1, 2**10),
            (2**10 + 1, np.int16, 3, 2**10 + 1),
            (np.inf, np.float32, 3, np.inf),
        )
    ),
]


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
_CONVOLUTIONS = [
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

RECORDS = [*_DOTS, *_CONVOLUTIONS]
