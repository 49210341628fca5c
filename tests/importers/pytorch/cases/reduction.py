"""Sums, extremes, scans, sorts, softmaxes."""

import torch

from tests.importers.pytorch.cases import INF, NAN, b, case, f, i, p, v

TIES = v(1.0, 3.0, NAN, 3.0, NAN, -INF)
SCALAR = v(2.0).reshape(())

CASES = [
    case("sum.default", f(2, 3)),
    case("sum.default", b(5)),
    case("sum.default", SCALAR),
    case("sum.dim_IntList", f(2, 3, 4), [0, -1], True),
    case("sum.dim_IntList", f(2, 3), []),
    case("sum.dim_IntList", f(2, 3), None),
    case("sum.dim_IntList", i(2, 3, dtype=torch.int32), [1], dtype=torch.float32),
    case("sum.dim_IntList", f(2, 0), [1]),
    case("sum.dim_IntList", f(64, dtype=torch.bfloat16), [0], tolerance=1e-2),
    case("hash_tensor.default", f(2, 3)),
    case("hash_tensor.default", i(2, 3, dtype=torch.int32), [-1], keepdim=True),
    case("hash_tensor.default", b(2, 3), [0]),
    case("hash_tensor.default", SCALAR, [-1], keepdim=True),
    case("prod.default", f(2, 3)),
    case("prod.dim_int", i(2, 3), -1, True),
    case("mean.default", f(2, 3)),
    case("mean.dim", f(2, 3, 4), [0, 2], True),
    case("mean.dim", f(2, 3), None),
    *(case(f"{name}.default", b(2, 3)) for name in ("any", "all")),
    *(case(f"{name}.dim", f(2, 3).round(), -1) for name in ("any", "all")),
    *(case(f"{name}.dims", i(2, 3), [0, 1], True) for name in ("any", "all")),
    case("any.default", i(3, dtype=torch.uint8, low=0)),
    *(case(f"{name}.default", f(2, 3, 4), [0, -1], True) for name in ("amax", "amin")),
    case("amax.default", v(1.0, NAN, 2.0)),
    *(case(f"{name}.default", i(2, 3)) for name in ("max", "min")),
    *(case(f"{name}.dim", TIES, 0) for name in ("max", "min")),
    *(case(f"{name}.dim", i(3, 4, high=0), -1, True) for name in ("max", "min")),
    case("max.dim", SCALAR, 0),
    *(case(f"{name}.default", TIES) for name in ("argmax", "argmin")),
    *(case(f"{name}.default", f(2, 3), 1, True) for name in ("argmax", "argmin")),
    case("argmax.default", f(2, 3)),
    case("var.correction", f(2, 3), [1]),
    case("var.correction", f(2, 3), correction=0, keepdim=True),
    case("var_mean.correction", f(2, 3, 4), [0, 2], correction=1),
    case("std.correction", f(2, 3), [0], correction=0.5),
    case("cumsum.default", f(2, 5), -1),
    case("cumsum.default", b(5), 0),
    case("cumsum.default", i(5), 0, dtype=torch.float32),
    case("cumsum.default", SCALAR, 0),
    case("cumprod.default", f(3, 4), 0),
    *(case(f"{name}.default", TIES, 0) for name in ("cummax", "cummin")),
    *(case(f"{name}.default", i(3, 7), -1) for name in ("cummax", "cummin")),
    *(
        case(f"sort.{name}", i(3, 5), **{"dim": 1}, **extra)
        for name, extra in (("default", {}), ("stable", {"stable": True}))
    ),
    case("sort.stable", TIES, stable=True, dim=0, descending=True),
    case("sort.default", f(3, 4), 0),
    case("sort.default", SCALAR),
    case("argsort.default", f(3, 4), 0, True),
    case("topk.default", f(3, 5), 2),
    case("kthvalue.default", f(3, 5), 2, 0, True),
    case("kthvalue.default", SCALAR, 1),
    case("median.default", f(3, 4)),
    case("median.default", TIES),
    case("median.default", f(0, 4)),
    case("median.default", torch.empty(0, dtype=torch.int64)),
    case("searchsorted.Tensor", v(1.0, 2.0, 2.0, 5.0), v(2.0, 0.0, 9.0, 5.0, NAN, -NAN)),
    case("searchsorted.Tensor", i(3, 6).sort()[0], i(3, 2), right=True, out_int32=True),
    case("searchsorted.Tensor", v(2.0, 5.0, 1.0), f(3, 2), sorter=v(2, 0, 1)),
    # Long rows, one of which is not in order, and one that ends with NaN.
    case("searchsorted.Tensor", f(2, 3, 80).sort()[0], f(2, 3, 5)),
    case("searchsorted.Tensor", i(2, 100).sort()[0], i(2, 7), right=True, out_int32=True),
    case("searchsorted.Tensor", f(65), torch.cat([f(4, 30).flatten(), v(NAN, -NAN, INF, -INF)])),
    case("searchsorted.Tensor", torch.cat([f(70), v(NAN, NAN)]).sort()[0], f(50), right=True),
    case("searchsorted.Tensor", f(90), f(40), sorter=f(90).argsort()),
    case("topk.default", f(5, 2), 3, 0, False),
    *(case(f"{name}softmax.default", f(2, 5), 1, False) for name in ("_", "_log_")),
    *(case(f"{name}softmax.int", f(2, 5, dtype=torch.float64), -1) for name in ("", "log_")),
    *(
        case(f"{name}softmax.default", torch.zeros(0, 3, dtype=dtype), 1, False)
        for name in ("_", "_log_")
        for dtype in (torch.int64, torch.complex64)
    ),
    case("softmax.int", f(2, 5, dtype=torch.bfloat16), -1, torch.float32),
    case("_softmax.default", SCALAR, 0, False),
    case("_log_softmax.default", SCALAR, 0, False),
    case("_safe_softmax.default", v(-INF, -INF, 1.0, -INF).reshape(2, 2), -1),
    case("logsumexp.default", f(2, 5), [1], True),
    case("logsumexp.default", v(-INF, -INF), [0]),
    case("logsumexp.default", p(2, 3) * 1000, [0, 1]),
]
