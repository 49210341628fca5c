"""Factorizations. The random matrices are not singular; where results are not unique (signs), LAPACK's are expected."""

import torch

from tests.importers.pytorch.cases import case, f, v

SQUARE, POSITIVE = f(2, 4, 4), (lambda x: x @ x.mT + torch.eye(4))(f(2, 4, 4))
SYMMETRIC = (lambda x: x + x.mT)(f(2, 4, 4)) * (1 - torch.eye(4))
HERMITIAN = torch.linalg.ldl_factor(
    (lambda x: x + x.mH)(f(2, 4, 4, dtype=torch.complex128)) * (1 - torch.eye(4)), hermitian=True
)
INDEFINITE = torch.diag(v(1.0, 2.0, -3.0, 4.0))
FACTORS, PIVOTS, _ = torch.linalg.lu_factor_ex(f(2, 5, 3))
REFLECTORS, SCALES = torch.geqrf(f(2, 5, 3))

CASES = [
    case("linalg_cholesky_ex.default", POSITIVE),
    case("linalg_cholesky_ex.default", POSITIVE.to(torch.complex64), upper=True),
    case("linalg_cholesky_ex.default", f(0, 3, 3)),
    case("linalg_lu_factor_ex.default", f(2, 5, 3)),
    case("linalg_lu_factor_ex.default", f(3, 5, dtype=torch.complex64)),
    case("linalg_ldl_factor_ex.default", SYMMETRIC),
    case("linalg_ldl_factor_ex.default", SYMMETRIC.to(torch.complex128), hermitian=True),
    case("linalg_ldl_factor_ex.default", f(0, 3, 3)),
    case("linalg_ldl_solve.default", *torch.linalg.ldl_factor(SYMMETRIC), f(2, 4, 3), tolerance=1e-4),
    case("linalg_ldl_solve.default", *HERMITIAN, f(2, 4, 3, dtype=torch.complex128), hermitian=True),
    case("linalg_ldl_solve.default", *HERMITIAN, f(4, 3, dtype=torch.complex128)),
    case("lu_unpack.default", FACTORS, PIVOTS),
    case("lu_unpack.default", FACTORS, PIVOTS, True, False),
    case("linalg_solve_triangular.default", SQUARE.triu() + torch.eye(4), f(4, 2), upper=True),
    case("linalg_solve_triangular.default", SQUARE.tril(), f(2, 3, 4), upper=False, left=False, unitriangular=True),
    case("geqrf.default", f(2, 5, 3)),
    case("linalg_householder_product.default", REFLECTORS, SCALES),
    case("ormqr.default", REFLECTORS, SCALES, f(2, 5, 2), True, True),
    case("ormqr.default", REFLECTORS, SCALES, f(2, 2, 5), False),
    case("linalg_qr.default", f(5, 3)),
    case("linalg_qr.default", f(2, 5, 3), "complete"),
    case("linalg_qr.default", f(3, 5), "r"),
    case("_linalg_eigh.default", POSITIVE[0] * 0 + torch.diag(v(1.0, 2.0, 3.0, 4.0))),
    case("_linalg_eigh.default", POSITIVE, "U", False),
    case("linalg_eig.default", torch.diag(v(1.0, 2.0, 3.0))),
    case("_linalg_eigvals.default", torch.diag(v(1.0, 2.0, 3.0))),
    case("_linalg_svd.default", f(2, 5, 3), False, False),
    case("_linalg_svd.default", f(0, 3), True),
    case("linalg_matrix_exp.default", f(2, 3, 3)),
    case("linalg_matrix_exp.default", 20 * f(3, 3, dtype=torch.float64), tolerance=1e-9),
    case("_fft_c2c.default", f(3, 4, 5, dtype=torch.complex64), [0, 2], 1, True),
    case("_fft_c2c.default", f(3, 4, dtype=torch.complex64), [1], 2, False),
    case("_fft_c2c.default", f(3, 4, dtype=torch.complex64), [1], 0, False),
    case("_fft_r2c.default", f(3, 4, 5), [1, 0], 0, True),
    case("_fft_r2c.default", f(3, 4), [0, 1], 2, False),
    case("_fft_c2r.default", f(3, 4, dtype=torch.complex64), [0, 1], 2, 6),
    case("_fft_c2r.default", f(3, 4, dtype=torch.complex64), [1], 0, 7),
]
