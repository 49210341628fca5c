"""Activation functions and their gradients."""

import torch

from tests.importers.pytorch.cases import NAN, case, f, i, p, v

EDGES = v(-9.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0, 30.0)

CASES = [
    *(case(f"{name}.default", EDGES) for name in ["relu", "relu6", "hardtanh", "leaky_relu", "elu", "gelu", "silu"]),
    *(case(f"{name}.default", EDGES) for name in ["hardsigmoid", "hardswish", "softplus", "log_sigmoid"]),
    case("relu.default", i(4)),
    case("relu.default", v(NAN, 1.0)),
    case("hardtanh.default", EDGES, 0, 6),
    case("hardtanh_backward.default", f(10), EDGES, -1, 1),
    case("threshold.default", EDGES, 0.5, -2),
    case("threshold_backward.default", f(10), EDGES, 0),
    case("leaky_relu.default", EDGES, 0.2),
    case("elu.default", EDGES, 0.5, 2, 3),
    case("gelu.default", EDGES, approximate="tanh"),
    case("gelu.default", f(4, dtype=torch.bfloat16), tolerance=3e-2),
    case("gelu_backward.default", f(10), EDGES),
    case("gelu_backward.default", f(10), EDGES, approximate="tanh"),
    case("softplus.default", EDGES, 2, 5),
    case("tanh_backward.default", f(4), p(4)),
    case("sigmoid_backward.default", f(4), p(4)),
    case("_softmax_backward_data.default", f(2, 3), p(2, 3), 1, torch.float32),
    case("_log_softmax_backward_data.default", f(2, 3), f(2, 3), -1, torch.float32),
]
