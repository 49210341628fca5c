"""Distances, order and counting, pooling into windows of different sizes."""

import torch

from tests.importers.pytorch.cases import INF, NAN, b, case, f, i, n, p, v

GAPS = v(3.0, NAN, -1.0, 2.0, 2.0, NAN, 7.0, -1.0)
DISTANCES = [0.0, 1.0, 2.0, 3.0, INF]
SHORT = torch.float16, torch.bfloat16
TAKEN = v(0, 5, 5, 11).reshape(1, 1, 2, 2)
HALVES = torch.full((1, 1, 2), 0.5)
BETA = (
    v(0.01, 0.3, 0.99, 0.995, 0.4, 0.5, 0.55, 0.5, 0.3, 0.7),  # the draw, the first number and the sum of both
    v(0.5, 2.0, 3.0, 0.7, 9.0, 20.0, 20.0, 4.0, 5.0, 9.0),
    v(3.0, 4.0, 4.0, 1.5, 24.0, 40.0, 40.0, 12.5, 25.0, 14.0),
)
WITH_NUMBER = "xlogy.Scalar_Other", "special_xlog1py.other_scalar"

LOSSES = {"mse_loss": (), "smooth_l1_loss": (0.7,), "huber_loss": (0.7,)}

CASES = [
    *(
        case(f"{loss}_backward.default", f(*size), f(*shape), f(*shape), reduction, *given)
        for loss, given in LOSSES.items()
        for shape in ((3, 4), (0, 4))
        for reduction, size in enumerate((shape, (), ()))
    ),
    *(case("_cdist_forward.default", f(2, 4, 3), f(2, 5, 3), power, None) for power in DISTANCES),
    *(case("_pdist_forward.default", f(5, 3), power) for power in DISTANCES),
    *(
        case("_cdist_backward.default", f(4, 5), x, y, power, torch.cdist(x, y, power))
        for power in DISTANCES
        for x, y in [(f(4, 3), f(5, 3))]
    ),
    *(
        case("_pdist_backward.default", f(6), x, power, torch.nn.functional.pdist(x, power))
        for power in DISTANCES
        for x in [f(4, 3)]
    ),
    case("_trilinear.default", f(2, 3), f(4, 3, 5), f(2, 5), [1, 3], [0], [1, 2], [2, 3]),
    case(
        "_trilinear.default",
        *(i(*s, dtype=torch.int8) for s in ((2, 3), (4, 3, 5), (2, 5))),
        [1, 3],
        [0],
        [1, 2],
        [2, 3],
    ),
    case("median.dim", i(4, 5), 1),
    case("median.dim", GAPS, 0, True),
    case("median.dim", v(5.0)[0], 0),
    case("nanmedian.dim", torch.stack([GAPS, GAPS.flip(0)]), 1),
    case("nanmedian.default", GAPS.reshape(2, 4)),
    case("nanmedian.default", i(3, 4)),
    case("mode.default", i(4, 7, low=0, high=3), 1),
    case("mode.default", n(6, below=2), -1, True),
    case("logcumsumexp.default", f(3, 6), 1),
    case("logcumsumexp.default", v(-INF, -INF, 1.0, 2.0), 0),
    case("logcumsumexp.default", torch.complex(f(5, 6), 9 * f(5, 6)), 0),
    case("histc.default", f(50), 7),
    case("histc.default", f(50), 5, -1, 1),
    case("histc.default", v(2.0, 2.0), 3),
    case("nonzero_static.default", b(3, 4), size=5),
    case("nonzero_static.default", b(3, 4), size=15, fill_value=-7),
    case("bucketize.Tensor", f(2, 3), v(-1.0, 0.0, 1.0), out_int32=True),
    case("bucketize.Scalar", 0.5, v(-1.0, 0.0, 1.0)),
    case("searchsorted.Scalar", v(-1.0, 0.0, 1.0), 0.0, right=True),
    case("isin.Scalar_Tensor", 2**24 + 1, torch.tensor([2**24, 2**24 + 2])),
    case("isin.Scalar_Tensor", 0.1, torch.tensor([0.1], dtype=torch.float64), invert=True),
    case("log_sigmoid_forward.default", GAPS),
    case("nan_to_num.default", GAPS, 9.0),
    case("nan_to_num.default", torch.complex(GAPS, v(1.0, NAN, INF, -INF, 0.0, 1.0, 2.0, NAN))),
    # by way of PyTorch's primitives
    case("xlogy.Scalar_Other", p(3), 7),
    *(case(name, f(3, dtype=dtype), 1e5, tolerance=1e-2) for name in WITH_NUMBER for dtype in SHORT),
    *(case(name, f(3, dtype=dtype), 1.003, tolerance=1e-2) for name in WITH_NUMBER for dtype in SHORT),
    case("xlogy.Scalar_Self", 2.5, p(3).half(), tolerance=1e-2),
    case("xlogy.Scalar_Self", 2.5, v(1, 2, 0)),
    case("special_xlog1py.self_scalar", 2, p(3).double()),
    *(case("ldexp.Tensor", v(1.5, 1e-30, -1.0, 0.0).to(dtype), v(3, 130, -30, 400)) for dtype in SHORT),
    case("ldexp.Tensor", v(1.5, 1e-30, -1e-38, INF), v(3, 130, 250, -4000)),
    case("ldexp.Tensor", v(1.5, 1e-300, -1e300, NAN).double(), v(3, 2000, -1900, 1)),
    *(case("ldexp.Tensor", v(1, 2, -3, dtype=torch.int8), torch.tensor(2.0, dtype=dtype)) for dtype in SHORT),
    case("ldexp.Tensor", v(1, 2, -3), v(1, -2, 3)),
    case("ldexp.Tensor", f(3, dtype=torch.float16), f(3)),
    case("pow.Tensor_Scalar", b(4), True),
    case("pow.Tensor_Scalar", b(4), False),
    case("pow.Tensor_Scalar", b(4), 2),
    case("copysign.Scalar", f(3), -2),
    case("hardsigmoid_backward.default", f(6), v(-4.0, -3.0, -1.0, NAN, 2.0, 3.0)),
    case("hardsigmoid_backward.default", f(3, dtype=torch.float64), v(-1.0, 0.0, 9.0).double(), tolerance=1e-12),
    case("adaptive_max_pool2d.default", f(2, 3, 7, 5), [3, 2]),
    case("channel_shuffle.default", f(2, 6, 3, 2), 3),
    case("max_unpool2d.default", f(1, 2, 2, 1), v(3, 8, 0, 5).reshape(1, 2, 2, 1), [3, 4]),
    case("adaptive_max_pool2d.default", v(1.0, NAN, 3.0, 4.0).reshape(1, 2, 2), [1, 2]),
    case("adaptive_max_pool3d.default", f(2, 5, 4, 3), [2, 3, 3]),
    case("fractional_max_pool2d.default", f(2, 3, 17, 23), [3, 2], [6, 11], p(2, 3, 2)),
    case("fractional_max_pool2d.default", f(3, 9, 7), [2, 3], [1, 5], p(1, 3, 2)),
    case("fractional_max_pool2d.default", v(NAN, 2.0, 1.0, NAN, -INF, -INF).reshape(1, 3, 2), [2, 2], [2, 1], HALVES),
    case("fractional_max_pool3d.default", f(2, 1, 9, 8, 7), [2, 3, 2], [4, 5, 5], p(2, 1, 3)),
    case("fractional_max_pool2d_backward.default", f(1, 2, 2), f(1, 3, 4), [1, 1], [2, 2], TAKEN[0]),
    case("fractional_max_pool3d_backward.default", f(1, 1, 2, 2), f(1, 1, 3, 4), [1, 1, 1], [1, 2, 2], TAKEN),
    case("_dirichlet_grad.default", *BETA, tolerance=1e-4),
    case("_adaptive_avg_pool2d_backward.default", f(2, 3, 3, 2), f(2, 3, 7, 5)),
    case("_adaptive_avg_pool3d_backward.default", f(2, 3, 3, 2, 2), f(2, 3, 7, 5, 4)),
    case("_adaptive_avg_pool3d_backward.default", f(3, 3, 2, 2), f(3, 7, 5, 4)),
    case("_weight_norm_interface_backward.default", f(3, 4), f(3, 4), f(3, 1), p(3, 1), 0),
    case("_weight_norm_interface_backward.default", f(3, 2, 4), f(3, 2, 4), f(1, 1, 4), p(1, 1, 4), 2),
]
