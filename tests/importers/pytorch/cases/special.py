"""Functions of two arguments, and orthogonal polynomials."""

from tests.importers.pytorch.cases import INF, NAN, case, f, i, n, p, v

NAMES = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"]
NAMES += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]

ENDS, EXACT = v(-1.0, -0.9, -0.3, 0.0, 0.5, 0.99, 1.0), v(1.0, -1.0)

CASES = [
    *(case(f"special_{name}.default", f(4, 5), n(5, below=9)) for name in NAMES),
    *(case(f"special_{name}.n_scalar", p(4), degree) for name in NAMES for degree in (-1, 5)),
    *(case(f"special_{name}.x_scalar", 0.3, n(4, below=6)) for name in NAMES),
    *(case(f"special_{name}.default", f(5), v(INF, -INF, NAN, 3e38, 3.0)) for name in NAMES),
    *(
        case(f"special_{name}.n_scalar", ENDS, degree, tolerance=5e-6 * degree)
        for name in NAMES
        if "chebyshev" in name
        for degree in (9, 40, 41)
    ),
    *(case(f"special_{name}.n_scalar", EXACT, degree) for name in NAMES[:4] for degree in (2**20, 2**20 + 1)),
    case("polygamma.default", 0, p(4)),
    case("polygamma.default", 2, p(4) + 1),
    case("polygamma.default", 0, v(0.0, -0.0, 1.0)),
    *(case("polygamma.default", order, v(0.0, -0.0, -1.0, -7.0, 1.5)) for order in (2, 3, 4)),
    case("special_zeta.default", v(3.0, 3.0, 2.5, 2.0, 1.0, 0.5), v(-4.0, 0.0, -1.0, -2.0, -2.0, -2.0)),
    case("special_zeta.default", p(4) + 2, p(4)),
    case("special_zeta.self_scalar", 3, p(4)),
    case("special_zeta.other_scalar", p(4) + 2, 2),
    *(case(f"{name}.default", p(9) * 12, p(9) * 12, tolerance=1e-6) for name in ("igamma", "igammac")),
    *(
        case(
            f"{name}.default",
            v(0.0, 0.0, 1.0, 2.0, INF, INF, -1.0, 2.0, 900.0, 1e-3, 30.0),
            v(0.0, 1.0, 0.0, INF, 1.0, INF, 1.0, -1.0, 905.0, 1e-9, 3.0),
        )
        for name in ("igamma", "igammac")
    ),
    # PyTorch's own approximations are no better than this.
    case("_standard_gamma_grad.default", p(9) * 12, p(9) * 12, tolerance=2e-3),
    case("_standard_gamma_grad.default", v(0.3, 2.0, 1e-2), v(0.0, 0.0, 1e-30)),
    case("gcd.default", v(12, -18, 0, 7, 0, -9), v(18, 12, 5, 0, 0, -6)),
    case("nextafter.default", v(0.0, 1.0, -1.0, INF), v(1.0, INF, -INF, 0.0)),
    case("__lshift__.Scalar", i(4), 2),
    case("__lshift__.Tensor", i(4), n(4, below=5)),
    case("__rshift__.Scalar", i(4), 1),
    case("__rshift__.Tensor", i(4), n(4, below=5)),
]
