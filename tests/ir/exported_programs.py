"""Functions for `jax.export`, each with its arguments: `jax.numpy`, `jax.nn`, `jax.scipy` and `lax`, grouped by the
kinds of their programs. `shapes` names symbolic extents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import export, lax


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(*shape: int, low: int = -20, high: int = 20, dtype: Any = np.int32) -> np.ndarray:
    return np.random.default_rng(1).integers(low, high, shape).astype(dtype)


@dataclass(frozen=True)
class Case:
    """`tolerance` is relative; values that are not floats agree exactly."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    shapes: tuple[str | None, ...] = ()
    constraints: tuple[str, ...] = ()
    tolerance: float = 2e-5
    platform: str = "cpu"
    """For platforms other than this machine's, JAX exports ops where the CPU calls LAPACK."""
    x64: bool = False

    def export(self) -> export.Exported:
        scope = export.SymbolicScope(self.constraints)
        shapes = self.shapes or (None,) * len(self.arguments)
        specs = [
            jax.ShapeDtypeStruct(export.symbolic_shape(shape or "...", scope=scope, like=value.shape), value.dtype)
            for shape, value in zip(shapes, self.arguments, strict=True)
        ]
        return export.export(jax.jit(self.function), platforms=[self.platform])(*specs)


def case(function: Callable[..., Any], *arguments: Any, **about: Any) -> Case:
    return Case(function, tuple(map(np.asarray, arguments)), **about)


X, Y, POSITIVE = floats(3, 4), floats(3, 4, seed=1), np.abs(floats(3, 4)) + 0.5
UNIT = np.clip(np.abs(floats(3, 4)) / 3, 0.05, 0.95)
Z = X + 1j * Y
INTS, NATURALS = integers(3, 4), integers(3, 4, low=1, high=9)
LONG = floats(2, 300)
SQUARE = floats(4, 4) + 4 * np.eye(4, dtype=np.float32)
LOWER = np.tril(SQUARE)
IMAGE, KERNEL = floats(2, 6, 6, 3), floats(3, 3, 3, 4)
SEED = np.uint32(7)
NHWC = ("NHWC", "HWIO", "NHWC")


def key(seed: Any) -> Any:
    return jax.random.key(seed)


def convolution(x, w, **about):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC, **about)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def newton(x):
    """The square root, with a loop that closes over `x`."""

    def step(state):
        count, guess = state
        return count + 1, 0.5 * (guess + x / guess)

    return lax.while_loop(lambda state: state[0] < 8, step, (0, jnp.ones_like(x)))[1]


def recurrent(w, xs):
    def step(state, x):
        state = jnp.tanh(w @ state + x)
        return state, state.sum()

    return lax.scan(step, jnp.zeros(4), xs)


def attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def cross_entropy(w, x, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ w) * jax.nn.one_hot(labels, 4), axis=-1))


@partial(jax.custom_jvp, nondiff_argnums=())
def clipped(x):
    return jnp.clip(x, -1, 1)


clipped.defjvp(lambda primals, tangents: (clipped(primals[0]), tangents[0] * 0.5))


CASES: dict[str, Case] = {
    # jax.numpy: order, sums, indices
    "sort": case(jnp.sort, X),
    "argsort": case(partial(jnp.argsort, axis=0, descending=True), X),
    "lexsort": case(lambda a, b: jnp.lexsort((a, b)), INTS[0], NATURALS[0]),
    "searchsorted": case(jnp.searchsorted, np.sort(X[0]), Y[0]),
    "partition": case(lambda x: jnp.partition(x, 2), X),
    "median": case(partial(jnp.median, axis=1), X),
    "quantile": case(lambda x: jnp.quantile(x, 0.3, axis=0), X),
    "unique": case(lambda x: jnp.unique(x, size=12, fill_value=0), INTS % 4),
    "histogram": case(lambda x: jnp.histogram(x, bins=4, range=(-2, 2)), X),
    "cumsum": case(partial(jnp.cumsum, axis=1), X),
    "cumprod": case(partial(jnp.cumprod, axis=0), X),
    "diff": case(jnp.diff, X),
    "var": case(partial(jnp.var, axis=0, ddof=1), X),
    "argmax": case(partial(jnp.argmax, axis=1), X),
    "einsum": case(lambda x, y: jnp.einsum("ij,kj->ik", x, y), X, Y),
    "tensordot": case(lambda x, y: jnp.tensordot(x, y, axes=([0], [0])), X, Y),
    "matmul in batches": case(jnp.matmul, floats(2, 3, 4), floats(2, 4, 5)),
    "interp": case(jnp.interp, X, np.linspace(-2, 2, 5, dtype=np.float32), floats(5)),
    "convolve": case(partial(jnp.convolve, mode="same"), X[0], Y[0, :3]),
    "pad": case(lambda x: jnp.pad(x, ((1, 2), (0, 1)), mode="reflect"), X),
    "roll": case(lambda x, n: jnp.roll(x, n, axis=1), X, np.int32(3)),
    "tril": case(jnp.tril, SQUARE),
    "where": case(lambda x, y: jnp.where(x > y, x, y), X, Y),
    "take": case(lambda x, i: x[i, 1:3], X, np.array([2, 0, -1], np.int32)),
    "take_along_axis": case(lambda x, i: jnp.take_along_axis(x, i, 1), X, NATURALS % 4),
    "index_add": case(lambda x, i: x.at[i].add(2.0), X, np.array([0, 2, 2], np.int32)),
    "index_set": case(lambda x, i, y: x.at[:, i].set(y, mode="drop"), X, np.array([0, 7], np.int32), Y[:, :2]),
    "index_max": case(lambda x, i: x.at[i, i].max(0.5), X, np.array([0, 1, 1], np.int32)),
    "integers": case(lambda x, y: (x // y, x % y, x << 3, x >> y, x ^ y, ~x), INTS, NATURALS),
    "powers": case(lambda x, y: (x**y, x**3, jnp.hypot(x, y), jnp.cbrt(x)), POSITIVE, Y),
    "complex": case(lambda z: (z * z.conj(), jnp.exp(z), jnp.abs(z), jnp.angle(z), jnp.sqrt(z)), Z),
    "hyperbolic": case(lambda x: (jnp.sinh(x), jnp.arcsinh(x), jnp.arctanh(x), jnp.tan(x), jnp.arccos(x)), UNIT),
    "rounding": case(lambda x: (jnp.round(x), jnp.trunc(x), jnp.floor(x), jnp.ceil(x), jnp.sign(x)), 3 * X),
    "bits": case(lambda x: (lax.population_count(x), lax.clz(x), jnp.packbits(x > 0)), NATURALS),
    "frexp": case(lambda x: (*jnp.frexp(x), jnp.ldexp(x, 3), jnp.nextafter(x, 0), jnp.signbit(x)), X),
    "fft": case(lambda z: jnp.fft.ifft(jnp.fft.fft(z) * 2), Z.astype(np.complex64)),
    "rfft": case(lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x)), X),
    "fftconvolve": case(jax.scipy.signal.fftconvolve, X[0], Y[0], tolerance=1e-4),
    "linspace": case(lambda x: jnp.linspace(x, x + 1, 5), X[0]),
    "meshgrid": case(lambda x, y: jnp.meshgrid(x, y), X[0], Y[:, 0]),
    "kron": case(jnp.kron, X, Y[:2, :2]),
    "polyval": case(jnp.polyval, X[0], Y),
    "norms": case(
        lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1, ord=1), jnp.linalg.matrix_power(x, 3)), SQUARE
    ),
    "cross": case(jnp.cross, X[:, :3], Y[:, :3]),
    "nan": case(lambda x: (jnp.nan_to_num(x), jnp.nanmean(x), jnp.isnan(x)), np.where(X > 1, np.nan, X)),
    # jax.nn
    "activations": case(
        lambda x: (jax.nn.gelu(x), jax.nn.silu(x), jax.nn.elu(x), jax.nn.softplus(x), jax.nn.selu(x)), X
    ),
    "exact gelu": case(partial(jax.nn.gelu, approximate=False), X),
    "softmax": case(lambda x: (jax.nn.softmax(x), jax.nn.log_softmax(x, 0), jax.nn.logsumexp(x)), X),
    "one_hot": case(lambda i: jax.nn.one_hot(i, 5), NATURALS[0] % 6),
    "dot_product_attention": case(attention, *(floats(2, 5, 2, 8, seed=seed) for seed in range(3))),
    "standardize": case(jax.nn.standardize, X),
    "glu": case(jax.nn.glu, X),
    # jax.scipy
    "erf": case(lambda x: (jax.scipy.special.erf(x), jax.scipy.special.erfc(x), jax.scipy.special.erfinv(x)), UNIT),
    "gamma": case(lambda x: (jax.scipy.special.gammaln(x), jax.scipy.special.digamma(x)), POSITIVE),
    "gammainc": case(
        lambda a, x: (jax.scipy.special.gammainc(a, x), jax.scipy.special.gammaincc(a, x)), POSITIVE, UNIT
    ),
    "betainc": case(jax.scipy.special.betainc, POSITIVE, POSITIVE + 1, UNIT, tolerance=1e-4),
    "zeta": case(jax.scipy.special.zeta, POSITIVE + 1, UNIT, tolerance=1e-4),
    "polygamma": case(lambda x: jax.scipy.special.polygamma(1, x), POSITIVE, tolerance=1e-4),
    "bessel": case(lambda x: (jax.scipy.special.i0(x), jax.scipy.special.i1e(x)), X),
    "ndtri": case(lambda x: (jax.scipy.special.ndtri(x), jax.scipy.special.log_ndtr(x)), UNIT),
    "entropy": case(lambda x, y: jax.scipy.special.rel_entr(x, y).sum(), UNIT, POSITIVE),
    "stats": case(lambda x: (jax.scipy.stats.norm.logpdf(x), jax.scipy.stats.t.pdf(x, 3.0)), X),
    "rankdata": case(jax.scipy.stats.rankdata, INTS[0].astype(np.float32)),
    "correlate2d": case(jax.scipy.signal.correlate2d, X, Y[:2, :2]),
    "map_coordinates": case(lambda x, i: jax.scipy.ndimage.map_coordinates(x, [i, i], order=1), X, 2 * UNIT[0]),
    "solve_triangular": case(
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), LOWER, SQUARE, platform="tpu"
    ),
    "cholesky": case(lambda a: jnp.linalg.cholesky(a @ a.T), SQUARE, platform="tpu"),
    "factors of open batches": case(
        lambda a, b: (
            jnp.linalg.cholesky(a @ a.mT),
            jax.scipy.linalg.solve_triangular(jnp.triu(a), b, trans=1),
            jnp.linalg.solve(a, b),
            jnp.linalg.svd(a, compute_uv=False),
            jnp.linalg.det(a),
        ),
        np.stack([SQUARE, SQUARE.T, SQUARE + 1]),
        floats(3, 4, 2),
        shapes=("b, 4, 4", "b, 4, 2"),
    ),
    # lax: data movement
    "top_k": case(lambda x: lax.top_k(x, 2), X),
    "bitcast": case(lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint8) ^ 1, jnp.float32), X),
    "clamp": case(lambda x: lax.clamp(-0.5, x, 0.5), X),
    "dynamic_slice": case(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), X, np.int32(2)),
    "dynamic_update_slice": case(lambda x, i: lax.dynamic_update_slice(x, x[:1] * 2, (i, 0)), X, np.int32(-1)),
    "reduce": case(lambda x: lax.reduce(x, np.float32(-np.inf), jnp.logaddexp, (1,)), X),
    "reduce_window": case(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME"), X),
    "reduce_precision": case(lambda x: lax.reduce_precision(x, 5, 4), X),
    "conv": case(convolution, IMAGE, KERNEL),
    "conv in groups": case(partial(convolution, feature_group_count=3, rhs_dilation=(2, 1)), IMAGE, floats(3, 3, 1, 6)),
    "conv_transpose": case(lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), IMAGE, KERNEL),
    "max pool, back": case(jax.grad(lambda x: (max_pool(x) ** 2).sum()), IMAGE),
    "associative_scan": case(lambda x: lax.associative_scan(jnp.multiply, x, axis=1), X),
    "cumlogsumexp": case(lambda x: lax.cumlogsumexp(x, axis=1, reverse=True), X),
    "optimization_barrier": case(lambda x, y: lax.optimization_barrier((x, y)), X, Y),
    "ragged_dot": case(lax.ragged_dot, floats(6, 4), floats(2, 4, 3), np.array([2, 4], np.int32)),
    # lax: control
    "while": case(newton, POSITIVE),
    "scan": case(recurrent, SQUARE, floats(5, 4)),
    "cond": case(lambda i, x, y: lax.cond(i, lambda a: a + y, lambda a: a - y, x), np.bool_(True), X, Y),
    "switch": case(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda a: a * 2], x), np.int32(5), X),
    "fori_loop": case(lambda n, x: lax.fori_loop(0, n, lambda i, a: a + i * x, x), np.int32(4), X),
    "map": case(lambda x: lax.map(lambda row: row @ row, x), X),
    # Transforms
    "vmap": case(jax.vmap(lambda row, i: lax.dynamic_index_in_dim(row, i)), X, np.array([0, 9, 2], np.int32)),
    "jacobian": case(jax.jacfwd(lambda x: jnp.sin(x) @ SQUARE), X[0]),
    "hessian": case(jax.hessian(lambda x: (x**3).sum() * x[0]), X[0]),
    "grad of a loss": case(jax.value_and_grad(cross_entropy), SQUARE, X, NATURALS[:, 0] % 4),
    "grad of a scan": case(jax.grad(lambda w, xs: recurrent(w, xs)[1].sum()), SQUARE / 8, floats(5, 4)),
    "grad of a convolution": case(jax.grad(lambda w, x: (convolution(x, w) ** 2).sum()), KERNEL, IMAGE, tolerance=1e-4),
    "remat": case(jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), X),
    "custom_jvp": case(jax.grad(lambda x: clipped(x).sum()), X),
    # Random numbers
    "uniform": case(lambda s: jax.random.uniform(key(s), (3, 4)), SEED),
    "normal": case(lambda s: jax.random.normal(key(s), (3, 4)), SEED),
    "categorical": case(lambda s, x: jax.random.categorical(key(s), x), SEED, X),
    "permutation": case(lambda s: jax.random.permutation(jax.random.split(key(s))[0], 8), SEED),
    "bernoulli": case(lambda s: jax.random.bernoulli(jax.random.fold_in(key(s), 3), 0.4, (9,)), SEED),
    "gamma sampled": case(lambda s: jax.random.gamma(key(s), 2.5, (3,)), SEED),
    "rbg": case(lambda s: jax.random.bits(jax.random.key(s, impl="rbg"), (5,)), SEED),
    "philox": case(
        lambda s: lax.rng_bit_generator(s, (3,), jnp.uint16, algorithm=lax.RandomAlgorithm.RNG_PHILOX),
        np.array([1, 2, 3, 4], np.uint32),
    ),
    # Element types
    "bfloat16": case(lambda x: (x * 2 + x.T.sum(), jnp.tanh(x)), X.astype(ml_dtypes.bfloat16), tolerance=2e-2),
    "float16": case(lambda x: x @ x.T, X.astype(np.float16), tolerance=2e-3),
    "float8": case(
        lambda x: (x.astype(jnp.float8_e4m3fn), x.astype(jnp.float8_e5m2), x.astype(jnp.float8_e4m3b11fnuz)), X
    ),
    "int4": case(
        lambda x: (x + x, x.astype(jnp.int8), x.astype(jnp.uint4)), integers(3, low=-8, high=8, dtype=ml_dtypes.int4)
    ),
    "constants of small types": case(lambda x: x + np.arange(4).astype(ml_dtypes.int4).astype(np.int8), INTS),
    "no elements": case(lambda x: (x[:0].sum(0), jnp.concatenate([x[:0], x])), X),
    "large constant": case(lambda x: x @ np.arange(400, dtype=np.float32).reshape(4, 100), X),
    # Symbolic extents
    "symbolic sum": case(lambda x: x.sum(0) / x.shape[0], X, shapes=("b, ...",)),
    "symbolic reshape": case(lambda x: x.reshape(-1, 2) + x.size, X, shapes=("b, 2*c",)),
    "symbolic matmul": case(lambda x, w: jax.nn.relu(x @ w), X, SQUARE, shapes=("b, n", "n, n")),
    "symbolic concatenate": case(lambda x, y: jnp.concatenate([x, y]), X, Y[:2], shapes=("a, n", "b, n")),
    "symbolic pad": case(lambda x: jnp.pad(x, ((0, 2), (1, 0))), X, shapes=("a, b",)),
    "symbolic arange": case(lambda x: x + jnp.arange(x.shape[1]), X, shapes=("a, b",)),
    "symbolic slice": case(lambda x: x[: x.shape[0] // 2, 1:], X, shapes=("a, b",), constraints=("a >= 2",)),
    "symbolic gather": case(lambda x, i: x[i], X, np.array([2, 0], np.int32), shapes=("a, b", "k")),
    "symbolic convolution": case(convolution, IMAGE, KERNEL, shapes=("b, h, h, _", None)),
    "symbolic scan": case(lambda x: lax.scan(lambda c, r: (c + r, c), jnp.zeros(x.shape[1]), x), X, shapes=("a, b",)),
    "symbolic softmax": case(lambda x: jax.nn.softmax(x, 0), X, shapes=("b, ...",)),
    "symbolic sort": case(lambda x: (jnp.sort(x), jnp.argmax(x, 1), jnp.cumsum(x, 0)), X, shapes=("b, n",)),
    "symbolic random": case(lambda x: jax.random.uniform(key(3), x.shape), X, shapes=("b, n",)),
    "symbolic attention": case(
        attention, *(floats(2, 5, 2, 8, seed=seed) for seed in range(3)), shapes=("b, t, 2, 8",) * 3
    ),
    "symbolic top_k": case(lambda x: lax.top_k(x, x.shape[1] // 2), X, shapes=("a, b",), constraints=("b >= 2",)),
    "symbolic window": case(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (x.shape[0], 2), (1, 1), "VALID"),
        X,
        shapes=("a, b",),
        constraints=("b >= 2",),
    ),
    "symbolic rbg": case(lambda x: jax.random.bits(jax.random.key(3, impl="rbg"), x.shape), X, shapes=("a, b",)),
    "approximate top_k": case(lambda x: (lax.approx_max_k(x, 2), lax.approx_min_k(x, 2)), X),
    "approximate top_k, not aggregated": case(lambda x: lax.approx_max_k(x, 1, aggregate_to_topk=False), LONG),
    "symbolic approximate top_k": case(lambda x: lax.approx_max_k(x, x.shape[0] - 2), X[0], shapes=("a + 2",)),
    "constraints": case(
        lambda x, y: x + y.sum(0), X, Y[:1], shapes=("a, b", "c, b"), constraints=("a >= c", "mod(b, 2) == 0")
    ),
    # 64 bits
    "float64": case(lambda x: (jnp.sinh(x) @ x.T, jnp.argsort(x), x.astype(np.int64)), X.astype(np.float64), x64=True),
    "complex128": case(lambda z: (jnp.fft.fft(z), z**2), Z.astype(np.complex128), x64=True),
    "symbolic int64": case(lambda x: x + x.shape[0] ** 2, integers(3, dtype=np.int64), shapes=("b",), x64=True),
}
