"""Linear algebra that follows from factorizations: solutions, inverses, determinants."""

from __future__ import annotations

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed

aten = torch.ops.aten


def _transposes(a: Tensor) -> bool:
    """Whether PyTorch factors the transpose, which its own gradients then expect."""
    return a.is_contiguous() and not a.is_complex()


def _raise_for(info: Tensor, name: str, a: Tensor) -> None:
    aten._linalg_check_errors(info, name, is_matrix=a.dim() == 2)


@composed("aten._linalg_solve_ex.default")
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    factors, pivots, info = aten.linalg_lu_factor_ex(A)
    is_vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if is_vector else B
    result = aten.linalg_lu_solve(factors, pivots, right, left=left)
    if check_errors:
        _raise_for(info, "torch.linalg.solve_ex", A)
    return result.squeeze(-1) if is_vector else result, factors, pivots, info


@composed("aten.linalg_lu_solve.default")
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:  # fmt: skip
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    permutation, lower, upper = aten.lu_unpack(LU, pivots)
    if adjoint:
        half = torch.linalg.solve_triangular(upper.mH, B, upper=False)
        return permutation @ torch.linalg.solve_triangular(lower.mH, half, upper=True, unitriangular=True)
    half = torch.linalg.solve_triangular(lower, permutation.mT @ B, upper=False, unitriangular=True)
    return torch.linalg.solve_triangular(upper, half, upper=True)


@composed("aten.linalg_inv_ex.default")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    factors, pivots, info = aten.linalg_lu_factor_ex(A)
    one = torch.eye(A.shape[-1], dtype=A.dtype).expand(A.shape)
    if check_errors:
        _raise_for(info, "linalg.inv_ex", A)
    return aten.linalg_lu_solve(factors, pivots, one), info


@composed("aten.linalg_lu.default")
def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, _ = aten.linalg_lu_factor_ex(A, pivot=pivot)
    return aten.lu_unpack(factors, pivots)


def _parity(pivots: Tensor) -> Tensor:
    """Returns the determinant of the permutation that interchanges with `pivots` make."""
    places = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype)
    return 1 - 2 * ((pivots != places).sum(-1) % 2)


@composed("aten._linalg_det.default")
def det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, _ = aten.linalg_lu_factor_ex(A.mT if _transposes(A) else A)
    return factors.diagonal(0, -2, -1).prod(-1) * _parity(pivots), factors, pivots


@composed("aten._linalg_slogdet.default")
def slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    factors, pivots, _ = aten.linalg_lu_factor_ex(A.mT if _transposes(A) else A)
    diagonal = factors.diagonal(0, -2, -1)
    sign = diagonal.sgn().prod(-1) * _parity(pivots)
    return sign, diagonal.abs().log().sum(-1), factors, pivots


@composed("aten.cholesky.default")
def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    factor, info = aten.linalg_cholesky_ex(self, upper=upper)
    _raise_for(info, "cholesky", self)
    return factor


@composed("aten.cholesky_solve.default")
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    factor = input2.mH if upper else input2
    half = torch.linalg.solve_triangular(factor.tril(), self, upper=False)
    return torch.linalg.solve_triangular(factor.tril().mH, half, upper=True)


@composed("aten.cholesky_inverse.default")
def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    one = torch.eye(self.shape[-1], dtype=self.dtype).expand(self.shape)
    return cholesky_solve(one, self, upper)


@composed("aten.triangular_solve.default")
def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:  # fmt: skip
    batch = torch.broadcast_shapes(self.shape[:-2], A.shape[:-2])
    whole = A.expand(*batch, *A.shape[-2:])
    # The other half may hold anything.
    half = whole.triu() if upper else whole.tril()
    used = half.mT if transpose else half
    found = torch.linalg.solve_triangular(used, self, upper=upper != transpose, unitriangular=unitriangular)
    return found, whole.clone()


@composed("aten.linalg_pinv.atol_rtol_tensor")
def pinv(
    self: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False
) -> Tensor:  # fmt: skip
    if hermitian:
        values, vectors = torch.linalg.eigh(self)
        left, right, size = vectors, vectors.mH, values.abs()
        largest = size.amax(-1, keepdim=True) if size.numel() else size
    else:
        left, values, right = torch.linalg.svd(self, full_matrices=False)
        size, largest = values, values[..., :1]
    if self.numel() == 0:
        return self.mT.clone()
    absolute = torch.zeros((), dtype=size.dtype) if atol is None else atol
    if rtol is None:
        default = torch.finfo(self.dtype).eps * max(self.shape[-2:])
        # Where an absolute tolerance is given, there is no relative one unless it is given too.
        rtol = torch.full((), default, dtype=size.dtype) if atol is None else torch.where(atol > 0, 0.0, default)
    limit = torch.maximum(absolute.unsqueeze(-1), rtol.unsqueeze(-1) * largest)
    inverted = torch.where(size > limit, values.reciprocal(), torch.zeros((), dtype=values.dtype)).to(self.dtype)
    return (right.mH * inverted.unsqueeze(-2)) @ left.mH
