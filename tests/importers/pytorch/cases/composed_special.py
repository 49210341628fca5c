"""Fitted functions, on both sides of the limits of their parts, at their singularities and at infinity."""

import torch

from tests.importers.pytorch.cases import INF, NAN, case, v

EVEN = v(0.0, 1e-6, 0.3, 1.9, 2.1, 4.9, 7.9, 8.1, 12.0, 100.0, NAN)
ALL = torch.cat([-EVEN.flip(0), EVEN])
SIGNED = ("i0", "special_i0e", "special_i1", "special_i1e", "special_modified_bessel_i0", "special_modified_bessel_i1")
SIGNED += ("special_bessel_j0", "special_bessel_j1", "special_spherical_bessel_j0", "special_airy_ai")
POSITIVE = ("special_bessel_y0", "special_bessel_y1", "special_modified_bessel_k0", "special_modified_bessel_k1")
POSITIVE += ("special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1")
BOUNDED = tuple(name for name in SIGNED + POSITIVE if "_i" not in name and "_ai" not in name and name != "i0")
SHARES = torch.cat([torch.linspace(0, 1, 21), v(1e-9, 0.1353, 0.1354, 1 - 1e-6, -0.1, 1.1)])
PARTS = v(0.0, -0.0, 1.0, -3.5, 1e-40, 1e30, INF, -INF)

CASES = [
    *(case(f"{name}.default", ALL, tolerance=2e-5 if "airy" in name else 2e-6) for name in SIGNED),
    *(case(f"{name}.default", EVEN, tolerance=2e-6) for name in POSITIVE),
    # PyTorch's own Bessel functions have the accuracy of floats.
    *(
        case(f"{name}.default", EVEN[1:].double(), tolerance=1e-7 if "_bessel_" in name else 1e-12)
        for name in SIGNED + POSITIVE
    ),
    *(case(f"{name}.default", v(INF, -1.0, 0.0)) for name in BOUNDED),
    case("i0.default", v(0, 1, 2)),
    case("special_i0e.default", EVEN.to(torch.bfloat16), tolerance=1e-2),
    case("special_erfcx.default", v(-5.0, -1.0, -1e-3, 0.0, 0.5, 3.0, 50.0, INF)),
    case("special_erfcx.default", v(-5.0, -1.0, 0.0, 0.5, 3.0, 50.0).double(), tolerance=1e-13),
    case("special_ndtri.default", SHARES),
    case("special_ndtri.default", SHARES.double(), tolerance=1e-12),
    case("frexp.Tensor", PARTS),
    case("frexp.Tensor", v(3.0, 1e-310, -7.0).double()),
    case("frexp.Tensor", v(3.0, -7.0).half()),
]
