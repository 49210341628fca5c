"""Solutions, inverses, determinants."""

import torch

from tests.importers.pytorch.cases import case, f

REGULAR = f(2, 4, 4) + 3 * torch.eye(4)
POSITIVE = (lambda x: x @ x.mT + torch.eye(4))(f(2, 4, 4))
FACTORS, PIVOTS, _ = torch.linalg.lu_factor_ex(REGULAR)
COMPLEX = torch.complex(f(3, 3), f(3, 3)) + 3 * torch.eye(3)

CASES = [
    case("_linalg_solve_ex.default", REGULAR, f(2, 4, 3)),
    case("_linalg_solve_ex.default", REGULAR.mT, f(2, 4)),
    case("_linalg_solve_ex.default", COMPLEX, f(2, 3, dtype=torch.complex64), left=False),
    case("linalg_lu_solve.default", FACTORS, PIVOTS, f(2, 4, 3)),
    case("linalg_lu_solve.default", FACTORS, PIVOTS, f(2, 3, 4), left=False, adjoint=True),
    case("linalg_inv_ex.default", REGULAR),
    case("linalg_inv_ex.default", f(0, 0)),
    case("linalg_lu.default", f(5, 3)),
    case("_linalg_det.default", REGULAR),
    case("_linalg_det.default", COMPLEX),
    case("_linalg_slogdet.default", REGULAR),
    case("cholesky.default", POSITIVE, True),
    case("cholesky_solve.default", f(2, 4, 3), torch.linalg.cholesky(POSITIVE)),
    case("cholesky_inverse.default", torch.linalg.cholesky(POSITIVE, upper=True), True),
    case("triangular_solve.default", f(4, 2), REGULAR, True, True),
    case("triangular_solve.default", f(2, 4, 2), REGULAR, False, False, True),
    case("linalg_pinv.atol_rtol_tensor", f(2, 4, 3)),
    case("linalg_pinv.atol_rtol_tensor", POSITIVE, atol=torch.tensor([0.5, 2.0]), hermitian=True),
]
