"""Dot products. Values are small whole numbers, whose products and sums are exact in any order."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.ir.ops.records import Record
from tests.ir.ops.records.reduction import whole
from trivium.ir.ops import DotAlgorithm, DotDimensionNumbers, DotGeneral, Precision
from trivium.ir.types import BF16, F32, FLOATS, I32, tensor


def _dot(equation: str, numbers: DotDimensionNumbers, lhs: np.ndarray, rhs: np.ndarray, **more: Any) -> Record:
    def oracle(lhs, rhs):
        wide = np.complex128 if np.iscomplexobj(lhs) else np.int64 if lhs.dtype.kind in "iu" else np.float64
        return np.einsum(equation, lhs.astype(wide), rhs.astype(wide)).astype(lhs.dtype)

    return Record(DotGeneral, (lhs, rhs), {"dot_dimension_numbers": numbers, **more}, oracle=oracle)


_MATMUL = DotDimensionNumbers(lhs_contracting_dimensions=(1,), rhs_contracting_dimensions=(0,))
_BATCHED = DotDimensionNumbers((0,), (1,), (2, 3), (3, 0))
_BFLOAT = np.dtype(ml_dtypes.bfloat16)

RECORDS = [
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
    # Algorithms that round their operands. Of 1 + 2^-10, bfloat16 keeps only 1; TensorFloat-32 keeps all of it, and so
    # does a sum of two bfloat16, with which three products compute. To keep 1 + 2^-18 takes the sum of three, with
    # which six products compute.
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
