"""Matrix products of every rank."""

import torch

from tests.importers.pytorch.cases import NAN, case, f, i

CASES = [
    case("mm.default", f(2, 3), f(3, 4)),
    case("mm.default", i(2, 3), i(3, 4)),
    case("mm.default", f(2, 0), f(0, 4)),
    case("mm.default", f(2, 3, dtype=torch.bfloat16), f(3, 4, dtype=torch.bfloat16), tolerance=2e-2),
    case("bmm.default", f(5, 2, 3), f(5, 3, 4)),
    case("mv.default", f(2, 3), f(3)),
    case("dot.default", f(3), f(3)),
    case("matmul.default", f(3), f(3, 4)),
    case("matmul.default", f(2, 1, 2, 3), f(5, 3, 4)),
    case("matmul.default", f(5, 2, 3), f(3, 4)),
    case("matmul.default", f(2, 5, 3), f(3)),
    case("matmul.default", f(3), f(5, 3, 4)),
    case("addmm.default", f(4), f(2, 3), f(3, 4)),
    case("addmm.default", f(2, 1), f(2, 3), f(3, 4), beta=2, alpha=0.5),
    case("addmm.default", f(4) * NAN, f(2, 3), f(3, 4), beta=0),
    case("baddbmm.default", f(5, 1, 4), f(5, 2, 3), f(5, 3, 4), beta=2),
    case("addbmm.default", f(2, 4), f(5, 2, 3), f(5, 3, 4), alpha=2),
    case("addmv.default", f(2), f(2, 3), f(3)),
    case("addr.default", f(2, 3), f(2), f(3), alpha=2),
    case("linear.default", f(2, 5, 3), f(4, 3), f(4)),
    case("linear.default", f(3), f(4, 3)),
    case("outer.default", f(2), i(3)),
]
