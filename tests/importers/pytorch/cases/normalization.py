"""Normalizations in training and inference, with and without weights, and their gradients."""

import torch

from tests.importers.pytorch.cases import b, case, f, p

X, W, B, MEAN, VAR = f(4, 3, 5, 5), f(3), f(3), f(3), p(3)
Y, NORMED = f(2, 4, 6), (f(6), f(6))


def _batch_norm_backward(train, mask, weight=W):
    _, mean, inverse = torch.ops.aten.native_batch_norm(X, weight, B, MEAN.clone(), VAR.clone(), train, 0.1, 1e-5)
    name = "native_batch_norm_backward.default"
    return case(name, f(4, 3, 5, 5), X, weight, MEAN, VAR, mean, inverse, train, 1e-5, mask)


def _layer_norm_backward(mask, weight, bias):
    _, mean, inverse = torch.ops.aten.native_layer_norm(Y, [6], weight, bias, 1e-5)
    return case("native_layer_norm_backward.default", f(2, 4, 6), Y, [6], mean, inverse, weight, bias, mask)


CASES = [
    case("_native_batch_norm_legit_functional.default", X, W, B, MEAN, VAR, True, 0.1, 1e-5),
    case("_native_batch_norm_legit_functional.default", X, None, None, MEAN, VAR, True, 0.3, 1e-3),
    case("_native_batch_norm_legit_no_training.default", X, W, B, MEAN, VAR, 0.1, 1e-5),
    case("_native_batch_norm_legit.default", X, W, B, MEAN, VAR, False, 0.1, 1e-5),
    case("_native_batch_norm_legit.no_stats", X, W, B, True, 0.1, 1e-5),
    case("native_batch_norm.default", X, W, B, None, None, True, 0.1, 1e-5),
    case("native_batch_norm.default", f(4, 3), W, B, MEAN, VAR, False, 0.1, 1e-5),
    case("batch_norm.default", X, W, B, MEAN, VAR, False, 0.1, 1e-5, False),
    _batch_norm_backward(True, [True, True, True]),
    _batch_norm_backward(False, [True, True, True]),
    _batch_norm_backward(True, [True, False, False], weight=None),
    case("native_layer_norm.default", Y, [6], *NORMED, 1e-5),
    case("native_layer_norm.default", Y, [4, 6], None, None, 1e-3),
    case("layer_norm.default", Y, [4, 6], f(4, 6), f(4, 6)),
    case("layer_norm.default", Y.bfloat16(), [6], tolerance=2e-2),
    _layer_norm_backward([True, True, True], *NORMED),
    _layer_norm_backward([True, False, False], None, None),
    case("rms_norm.default", Y, [6], f(6)),
    case("rms_norm.default", Y, [6], None, 1e-3),
    case("native_group_norm.default", f(2, 6, 5), f(6), f(6), 2, 6, 5, 3, 1e-5),
    case("group_norm.default", f(2, 6, 5, 5), 2, f(6)),
    case("native_dropout_backward.default", f(5), b(5), 2.0),
]
