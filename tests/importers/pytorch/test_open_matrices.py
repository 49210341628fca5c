"""Linear algebra on matrices whose sizes are open, at several sizes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import trivium

torch = pytest.importorskip("torch")
from torch.export import Dim, export

from tests.importers.pytorch.test_bounds import Applied, drawn, np_list

pytestmark = pytest.mark.torch

linalg = torch.linalg

OF_SQUARE: dict[str, Callable[..., Any]] = {
    "inverse": linalg.inv,
    "determinant": lambda x: (linalg.det(x), *linalg.slogdet(x)),
    "solution": lambda x: linalg.solve(x, x.sum(-1, keepdim=True)),
    "solution by factors": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x),
    "triangular": lambda x: linalg.solve_triangular(x, x, upper=True),
    "exponential": torch.matrix_exp,
    "negative power": lambda x: linalg.matrix_power(x, -2),
    "eigenvalues": lambda x: linalg.eigvals(x).abs().sort().values,
    "failed minors": lambda x: linalg.cholesky_ex(x - 3 * torch.eye(x.shape[-1])).info,
}

OF_DEFINITE: dict[str, Callable[..., Any]] = {
    "Cholesky": lambda x: (linalg.cholesky(x), linalg.cholesky(x, upper=True)),
    "inverse by Cholesky": lambda x: torch.cholesky_inverse(linalg.cholesky(x)),
    "eigenvalues": lambda x: (linalg.eigvalsh(x), linalg.eigh(x).eigenvectors.abs()),
    "indefinite": lambda x: linalg.ldl_solve(*linalg.ldl_factor(x), x),
    "pseudoinverse": lambda x: linalg.pinv(x, hermitian=True),
}

OF_ANY: dict[str, Callable[..., Any]] = {
    "LU": lambda x: tuple(linalg.lu(x)),
    "QR": lambda x: (*linalg.qr(x), *linalg.qr(x, mode="complete"), linalg.qr(x, mode="r").R),
    "singular values": linalg.svdvals,
    "singular vectors": lambda x: [part.abs() for part in linalg.svd(x)],
}


def compare(function: Callable[..., Any], calls: Sequence[Any], free: Any = Dim.AUTO) -> None:
    program = export(Applied(function), (calls[0],), dynamic_shapes=({0: Dim.DYNAMIC, 1: free, 2: free},))
    module = trivium.from_torch(program)
    assert module.main.function_type.inputs[0].shape == (None, None, None)
    run = trivium.compile(module)
    for x in calls:
        for found, wanted in zip(np_list(run(x.numpy())), np_list(function(x)), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", OF_SQUARE)
def test_square_matrices(name: str) -> None:
    compare(OF_SQUARE[name], [drawn(n, size, size) + 3 * torch.eye(size) for n, size in ((3, 4), (2, 7), (0, 3))])


@pytest.mark.parametrize("name", OF_DEFINITE)
def test_definite_matrices(name: str) -> None:
    given = [drawn(*shape) for shape in ((3, 4, 4), (2, 7, 7), (0, 3, 3))]
    compare(OF_DEFINITE[name], [x @ x.mT + torch.eye(x.shape[-1]) for x in given])


@pytest.mark.parametrize("name", OF_ANY)
def test_matrices_of_any_shape(name: str) -> None:
    compare(OF_ANY[name], [drawn(*shape) for shape in ((3, 4, 5), (2, 6, 3), (4, 3, 3), (0, 3, 2))], Dim.DYNAMIC)


def test_a_batch_of_any_size_that_is_evaluated() -> None:
    program = export(Applied(linalg.inv), (drawn(3, 4, 4),), dynamic_shapes=({0: Dim.DYNAMIC},))
    module, x = trivium.from_torch(program), drawn(2, 4, 4)
    assert module.main.function_type.results[0].shape == (None, 4, 4)
    np.testing.assert_allclose(trivium.evaluate(module, x.numpy())[0], linalg.inv(x), rtol=1e-4, atol=1e-4)
