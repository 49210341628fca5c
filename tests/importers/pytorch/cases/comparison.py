"""Comparisons, tests and logic."""

import torch

from tests.importers.pytorch.cases import INF, NAN, b, case, f, i, v

SPECIAL = v(NAN, INF, -INF, 0.0, -0.0, 1.5)
DIRECTIONS = ["eq", "ne", "ge", "gt", "le", "lt"]

CASES = [
    *(case(f"{name}.Tensor", i(2, 3), i(3)) for name in DIRECTIONS),
    *(case(f"{name}.Scalar", i(6), 0.5) for name in DIRECTIONS),
    case("eq.Tensor", SPECIAL, SPECIAL),
    case("lt.Tensor", i(4), f(4)),
    case("gt.Scalar", b(4), 0),
    *(case(f"logical_{name}.default", i(6, low=0, high=2), f(6)) for name in ("and", "or", "xor")),
    case("logical_not.default", i(6, low=0, high=2)),
    case("bitwise_not.default", i(6)),
    case("bitwise_not.default", b(6)),
    *(case(f"{name}.default", SPECIAL) for name in ("isnan", "isinf", "isfinite", "signbit")),
    *(case(f"{name}.default", i(4)) for name in ("isnan", "isinf", "isfinite", "signbit")),
    *(case(f"{name}.default", torch.complex(SPECIAL, f(6))) for name in ("isnan", "isinf", "isfinite")),
    case("signbit.default", b(3)),
]
