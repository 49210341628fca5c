"""The ranks of operands that TensorFlow's kernels require and its shape functions do not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from trivium.importers.tensorflow.context import Context, Operand
from trivium.ir.core import Value

NUMBER, VECTOR, ARRAY = (0, 0), (1, 1), (1, math.inf)
MATRIX, MATRICES, IMAGES = (2, 2), (2, math.inf), (4, 4)

_SCAN = {"x": ARRAY, "axis": NUMBER}
_BOUNDS = {"begin": VECTOR, "end": VECTOR, "strides": VECTOR}
_SPARSE = {"sp_indices": MATRIX, "sp_values": VECTOR, "sp_shape": VECTOR}

RANKS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "Cumprod": _SCAN,
    "Cumsum": _SCAN,
    "CumulativeLogsumexp": _SCAN,
    "DataFormatVecPermute": {"x": (1, 2)},
    "MatrixBandPart": {"input": MATRICES, "num_lower": NUMBER, "num_upper": NUMBER},
    "ResizeBicubicGrad": {"grads": IMAGES, "original_image": IMAGES},
    "ResizeBilinearGrad": {"grads": IMAGES, "original_image": IMAGES},
    "ResizeNearestNeighborGrad": {"grads": IMAGES, "size": VECTOR},
    "SparseAddGrad": {"backprop_val_grad": VECTOR, "a_indices": MATRIX, "b_indices": MATRIX, "sum_indices": MATRIX},
    "SparseDenseCwiseAdd": _SPARSE,
    "SparseDenseCwiseDiv": _SPARSE,
    "SparseDenseCwiseMul": _SPARSE,
    "SparseReduceSum": {"input_indices": MATRIX, "input_values": VECTOR, "input_shape": VECTOR},
    "SparseSliceGrad": {
        "backprop_val_grad": VECTOR,
        "input_indices": MATRIX,
        "input_start": VECTOR,
        "output_indices": MATRIX,
    },
    "SplitV": {"size_splits": VECTOR},
    "StackV2": {"max_size": NUMBER},
    "StridedSlice": _BOUNDS,
    "StridedSliceGrad": {"shape": VECTOR, **_BOUNDS},
    "TensorListFromTensor": {"tensor": ARRAY},
    "TensorListReserve": {"num_elements": NUMBER},
    "TensorListResize": {"size": NUMBER},
    "TensorListScatter": {"tensor": ARRAY, "indices": VECTOR},
    "TensorListScatterV2": {"tensor": ARRAY, "indices": VECTOR, "num_elements": NUMBER},
    "TensorStridedSliceUpdate": _BOUNDS,
    "XlaBroadcastHelper": {"broadcast_dims": VECTOR},
    "XlaDynamicUpdateSlice": {"indices": VECTOR},
}
"""The smallest and the largest rank that an argument may have."""


def require_ranks(ctx: Context, arguments: Sequence[tuple[str, Operand | list[Operand]]]) -> None:
    """Rejects the node under conversion if an operand has another rank than its op takes."""
    wanted = RANKS.get(ctx.op, {})
    for name, operand in arguments:
        if name in wanted and isinstance(operand, Value | np.ndarray):
            least, most = wanted[name]
            rank = operand.ndim if isinstance(operand, np.ndarray) else operand.type.rank
            if not least <= rank <= most:
                ctx.unsupported(name, f"rank {rank}", _described(least, most))


def _described(least: float, most: float) -> str:
    if least == most:
        return f"rank {least}"
    return f"rank {least} or higher" if most == math.inf else f"rank {least} to {most}"
