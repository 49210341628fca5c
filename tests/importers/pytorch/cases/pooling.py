"""Pooling, with paddings, dilations and rounding up, and its gradients."""

import torch

from tests.importers.pytorch.cases import NAN, case, f, i

X = f(2, 3, 7, 8)
TIED = i(1, 2, 6, 6, low=0, high=2).float()

CASES = [
    case("max_pool2d_with_indices.default", X, [2, 2]),
    case("max_pool2d_with_indices.default", X, [3, 2], [2, 1], [1, 1], [1, 2]),
    case("max_pool2d_with_indices.default", X, [3, 3], [2, 2], [1, 1], [1, 1], True),
    case("max_pool2d_with_indices.default", TIED, [2, 2]),
    case("max_pool2d_with_indices.default", torch.where(TIED > 0, NAN, -TIED), [2, 2]),
    case("max_pool2d_with_indices.default", f(3, 6, 6), [2, 2]),
    case("max_pool3d_with_indices.default", f(1, 2, 4, 5, 6), [2, 2, 2], [2, 2, 2], [1, 1, 1]),
    case("max_pool1d.default", f(2, 3, 8), [3], [2], [1]),
    case("max_pool2d.default", X, [3, 3], [2, 2], [1, 1], [1, 1], True),
    case("max_pool3d.default", f(1, 2, 4, 5, 6), [2, 2, 2]),
    *(case(f"avg_pool{d}d.default", f(2, 3, *(5, 6, 4)[:d]), [3] * d, [2] * d, [1] * d) for d in (1, 2, 3)),
    case("avg_pool2d.default", X, [3, 2], [2, 2], [1, 0], True, False),
    case("avg_pool2d.default", X, [3, 3], [2, 2], [1, 1], True, True),
    case("avg_pool2d.default", X, [2, 2], [], [0, 0], False, True, 3),
    case("avg_pool2d_backward.default", f(2, 3, 4, 4), X, [3, 2], [2, 2], [1, 0], False, False, None),
    case("avg_pool2d_backward.default", f(2, 3, 3, 4), X, [2, 2], [2, 2], [0, 0], False, True, 3),
    case(
        "avg_pool3d_backward.default", f(1, 1, 2, 2, 2), f(1, 1, 4, 4, 4), [2] * 3, [2] * 3, [0] * 3, False, True, None
    ),
    case("adaptive_avg_pool1d.default", f(2, 3, 8), [3]),
    case("adaptive_avg_pool2d.default", X, [1, 1]),
    case("_adaptive_avg_pool2d.default", X, [7, 4]),
    case("_adaptive_avg_pool2d.default", X, [3, 5]),
    case("_adaptive_avg_pool3d.default", f(2, 3, 7, 5, 4), [3, 5, 2]),
    case("adaptive_avg_pool3d.default", f(2, 3, 7, 5, 4), [3, 5, 2]),
]


def _backward(d, x, *geometry):
    values, indices = getattr(torch.ops.aten, f"max_pool{d}d_with_indices")(x, *geometry)
    return case(f"max_pool{d}d_with_indices_backward.default", f(*values.shape), x, *geometry, indices)


def _adaptive_backward(d, x, *size):
    values, indices = getattr(torch.ops.aten, f"adaptive_max_pool{d}d")(x, size)
    return case(f"adaptive_max_pool{d}d_backward.default", f(*values.shape), x, indices)


CASES += [
    _adaptive_backward(2, X, 3, 5),
    _adaptive_backward(3, f(1, 2, 4, 5, 6), 2, 2, 2),
    _backward(2, X, [2, 2], [2, 2], [0, 0], [1, 1], False),
    _backward(2, X, [3, 2], [2, 1], [1, 1], [1, 2], False),
    _backward(2, f(3, 6, 6), [3, 3], [2, 2], [1, 1], [1, 1], True),
    _backward(2, f(2, 3, 7, 6).to(memory_format=torch.channels_last), [3, 2], [2, 3], [1, 0], [1, 1], True),
    _backward(2, f(1, 2, 9, 9), [5, 5], [1, 1], [2, 2], [1, 1], False),
    _backward(3, f(1, 2, 4, 5, 6), [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False),
]
