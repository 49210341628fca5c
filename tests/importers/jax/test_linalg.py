"""Fourier transforms and factorizations, against JAX's own on the CPU: the same routines, so the same results."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax import lax

import trivium
from tests.importers.jax.comparing import RUNS, check, compiled

pytestmark = pytest.mark.jax

L = lax.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    parts = np.random.default_rng(len(shape)).standard_normal((2, *shape))
    return (parts[0] + 1j * parts[1] if dtype.startswith("c") else parts[0]).astype(dtype)


def hermitian(*shape: int, dtype: str = "float32") -> np.ndarray:
    a = numbers(*shape, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2) + 4 * np.eye(shape[-1], dtype=dtype)


FOURIER = [
    *((f, (3, 8)) for f in (jnp.fft.fft, jnp.fft.ifft, jnp.fft.fft2, jnp.fft.ifftn)),
    *((lambda x, f=f: f(x.real), (3, 8)) for f in (jnp.fft.rfft, jnp.fft.rfft2, jnp.fft.hfft)),
    (lambda x: jnp.fft.irfft(x), (3, 7)),
    (lambda x: jnp.fft.irfft(x, n=9), (3, 7)),
    (lambda x: jnp.fft.fftshift(jnp.fft.fft(x, axis=0)), (5, 4)),
    (jax.grad(lambda x: (jnp.abs(jnp.fft.rfft(x.real)) ** 2).sum().real), (2, 6)),
]


@RUNS
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("case", FOURIER, ids=range(len(FOURIER)))
def test_fourier(case, dtype, run):
    function, shape = case
    with jax.enable_x64(dtype == "complex128"):
        check(function, [numbers(*shape, dtype=dtype)], 1e-12 if dtype == "complex128" else 2e-6, run)


FACTORIZATIONS = {
    "cholesky": (L.cholesky, hermitian, (2, 4, 4)),
    "lu": (L.lu, numbers, (2, 4, 3)),
    "lu_wide": (L.lu, numbers, (3, 5)),
    "qr": (lambda a: L.qr(a, full_matrices=False), numbers, (2, 5, 3)),
    "qr_full": (lambda a: L.qr(a, full_matrices=True), numbers, (5, 3)),
    "qr_pivoting": (lambda a: L.qr(a, pivoting=True, full_matrices=False), numbers, (4, 6)),
    "householder": (lambda a: L.householder_product(a, a[0, :3] / 4), numbers, (5, 3)),
    "eigh": (lambda a: L.eigh(a, symmetrize_input=False), hermitian, (2, 4, 4)),
    "eigh_upper": (lambda a: L.eigh(a, lower=False), hermitian, (4, 4)),
    "eig": (lambda a: L.eig(a, compute_left_eigenvectors=True), numbers, (2, 4, 4)),
    "eigvals": (jnp.linalg.eigvals, numbers, (4, 4)),
    "svd": (lambda a: L.svd(a, full_matrices=False), numbers, (2, 4, 3)),
    "svd_full": (lambda a: L.svd(a, full_matrices=True), numbers, (3, 5)),
    "svd_values": (lambda a: L.svd(a, compute_uv=False), numbers, (3, 5)),
    "svd_qr": (lambda a: L.svd(a, algorithm=L.SvdAlgorithm.QR, full_matrices=False), numbers, (4, 3)),
    "svd_empty": (lambda a: L.svd(a, full_matrices=True), numbers, (2, 3, 0)),
    "schur": (L.schur, numbers, (2, 4, 4)),
    "schur_form": (lambda a: L.schur(a, compute_schur_vectors=False), numbers, (4, 4)),
    "hessenberg": (L.hessenberg, numbers, (2, 4, 4)),
    "tridiagonal": (L.tridiagonal, hermitian, (2, 4, 4)),
    "tridiagonal_solve": (
        lambda a: L.tridiagonal_solve(a[0].at[0].set(0), a[1] + 9, a[2].at[-1].set(0), a.T),
        *(numbers, (3, 5)),
    ),
    "triangular_solve": (
        lambda a: L.triangular_solve(a + 4 * jnp.eye(4), a[:2], lower=True, transpose_a=True, conjugate_a=True),
        *(numbers, (4, 4)),
    ),
    "conjugated_solve": (
        lambda a: L.triangular_solve(a + 4 * jnp.eye(4), a, left_side=True, conjugate_a=True, unit_diagonal=True),
        *(numbers, (4, 4)),
    ),
    "solve": (lambda a: jnp.linalg.solve(a, a[..., :1]), numbers, (3, 4, 4)),
    "inverse": (jnp.linalg.inv, hermitian, (2, 4, 4)),
    "determinant": (lambda a: (jnp.linalg.det(a), jnp.linalg.slogdet(a)[1]), numbers, (3, 4, 4)),
    "pseudo_inverse": (jnp.linalg.pinv, numbers, (4, 3)),
    "least_squares": (lambda a: jnp.linalg.lstsq(a, a[:, 0])[0], numbers, (5, 3)),
    "cholesky_solve": (lambda a: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), a[0]), hermitian, (4, 4)),
    "exponential": (jax.scipy.linalg.expm, numbers, (3, 3)),
}


UNDETERMINED = {"eig", "schur", "schur_form", "svd_qr"}
"""Functions with more than one right result: only LAPACK itself returns the same one as JAX."""


@pytest.mark.parametrize("name", sorted(FACTORIZATIONS.keys() - UNDETERMINED))
def test_meaning_of_factorization(name):
    function, make, shape = FACTORIZATIONS[name]
    check(function, [make(*shape)], 2e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factorization(name, dtype):
    function, make, shape = FACTORIZATIONS[name]
    with jax.enable_x64(dtype in ("float64", "complex128")):
        check(function, [make(*shape, dtype=dtype)], 1e-11 if dtype in ("float64", "complex128") else 2e-5, compiled)


@RUNS
def test_matrices_that_have_no_factor_give_nan(run):
    a = np.stack([np.eye(3), -np.eye(3)]).astype(np.float32)
    (found,) = run(trivium.from_jax(L.cholesky, a), a)
    assert np.isnan(found[1]).any()
    np.testing.assert_array_equal(found[0], np.eye(3))


GRADIENTS = {
    "cholesky": lambda a: (L.cholesky(a @ a.T + 4 * jnp.eye(4)) ** 2).sum(),
    "solve": lambda a: jnp.linalg.solve(a + 4 * jnp.eye(4), a[:, 0]).sum(),
    "eigh": lambda a: (jnp.linalg.eigh(a + a.T)[1][:, -1] ** 4).sum() + jnp.linalg.eigvalsh(a + a.T)[0],
    "svd": lambda a: jnp.linalg.svd(a, compute_uv=False).sum(),
    "qr": lambda a: (jnp.linalg.qr(a)[0] ** 3).sum(),
    "slogdet": lambda a: jnp.linalg.slogdet(a)[1],
    "cg": lambda a: (jax.scipy.sparse.linalg.cg(a @ a.T + 4 * jnp.eye(4), a[0])[0] ** 2).sum(),
    "gmres": lambda a: (jax.scipy.sparse.linalg.gmres(a + 4 * jnp.eye(4), a[0])[0] ** 2).sum(),
    "root": lambda a: lax.custom_root(
        lambda x: x**3 - a[0, 0] ** 2 - 1,
        jnp.float32(1.0),
        lambda f, x: lax.fori_loop(0, 30, lambda i, y: y - f(y) / (3 * y**2), x),
        lambda g, y: y / g(jnp.float32(1.0)),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    function, a = GRADIENTS[name], numbers(4, 4)
    value, gradient = jax.value_and_grad(trivium.jit(function))(a)
    expected, theirs = jax.value_and_grad(jax.jit(function))(a)
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    np.testing.assert_allclose(gradient, theirs, atol=1e-4 * np.abs(theirs).max())
