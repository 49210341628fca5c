"""Programs of a few ops: reductions of rows, vector math, attention, sorts, scans, and data movement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.row import Call
from benchmarks.rows.with_jax import jax, normal, row  # first: it sets JAX's platforms

import jax.numpy as jnp  # isort: skip
import numpy as np  # isort: skip
import scipy  # isort: skip
import torch  # isort: skip

torch.set_num_threads(1)


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(array) for array in arrays]


def layer_norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def differences(x: jax.Array, y: jax.Array) -> Any:
    """The sum of all squared differences of rows, and its gradient."""
    return jax.value_and_grad(lambda x: ((x[:, None] - y[None]) ** 2).sum())(x)


def black_scholes(spot: jax.Array, strike: jax.Array, time: jax.Array) -> jax.Array:
    rate, volatility = 0.02, 0.3
    spread = volatility * jnp.sqrt(time)
    upper = (jnp.log(spot / strike) + (rate + volatility**2 / 2) * time) / spread
    cdf = jax.scipy.stats.norm.cdf
    return spot * cdf(upper) - strike * jnp.exp(-rate * time) * cdf(upper - spread)


def forces(places: jax.Array) -> jax.Array:
    """The forces between bodies of equal mass."""
    away = places[None] - places[:, None]
    square = (away**2).sum(-1) + 1e-3
    return (away * (square**-1.5)[..., None]).sum(1)


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / q.shape[-1] ** 0.5
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=-1), v)


def pooled(x: jax.Array) -> jax.Array:
    window, strides = (1, 3, 3, 1), (1, 2, 2, 1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "SAME")


def torch_attention(*arrays: np.ndarray) -> Mapping[str, Call]:
    q, k, v = (tensor[None] for tensor in tensors(*arrays))
    return {"torch": lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)[0]}


def torch_norm(x: np.ndarray, scale: np.ndarray, shift: np.ndarray) -> Mapping[str, Call]:
    a, b, c = tensors(x, scale, shift)
    return {"torch": lambda: torch.nn.functional.layer_norm(a, scale.shape, b, c)}


def softmax_row(rows: int, columns: int, **fields: Any) -> Any:
    def libraries(x: np.ndarray) -> Mapping[str, Call]:
        (a,) = tensors(x)
        return {"torch": lambda: torch.softmax(a, -1)}

    return row(
        f"softmax {rows}x{columns}",
        lambda x: jax.nn.softmax(x, -1),
        normal(rows, columns),
        libraries=libraries,
        **fields,
    )


def attention_row(heads: int, length: int, size: int, **fields: Any) -> Any:
    arrays = [normal(heads, length, size, seed=seed) for seed in range(3)]
    flops = 4 * heads * length**2 * size
    name = f"attention {heads}x{length}x{size}"
    return row(name, attention, *arrays, libraries=torch_attention, flops=flops, **fields)


INDICES = np.random.default_rng(1).integers(0, 20_000, 20_000, np.int32)
TABLE, UPDATES = normal(20_000, 128), normal(20_000, 128, seed=1)


def torch_scatter(table: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> Mapping[str, Call]:
    a, i, u = tensors(table, indices, updates)
    return {"torch": lambda: a.index_add(0, i, u)}


def torch_gather(table: np.ndarray, indices: np.ndarray) -> Mapping[str, Call]:
    a, i = tensors(table, indices)
    return {"torch": lambda: a[i], "numpy": lambda: table[indices]}


def torch_top_k(x: np.ndarray) -> Mapping[str, Call]:
    (a,) = tensors(x)
    return {"torch": lambda: list(torch.topk(a, 50))}


def torch_sort(x: np.ndarray) -> Mapping[str, Call]:
    (a,) = tensors(x)
    return {"numpy": lambda: np.sort(x), "torch": lambda: torch.sort(a)[0]}


def torch_cumsum(x: np.ndarray) -> Mapping[str, Call]:
    (a,) = tensors(x)
    return {"numpy": lambda: np.cumsum(x), "torch": lambda: torch.cumsum(a, 0)}


SIGNAL = (normal(256, 4096) + 1j * normal(256, 4096, seed=1)).astype(np.complex64)
UNIFORM = np.random.default_rng(0).uniform(0.5, 1.5, (3, 1_000_000)).astype(np.float32)

ROWS = (
    softmax_row(512, 1024, quick=True),
    softmax_row(2048, 1024),
    row("log-sum-exp 2048x1024", lambda x: jax.nn.logsumexp(x, axis=-1), normal(2048, 1024)),
    row(
        "layer norm 2048x768",
        layer_norm,
        normal(2048, 768),
        normal(768),
        normal(768, seed=1),
        libraries=torch_norm,
        quick=True,
    ),
    row("squared differences with gradient 256^3", differences, normal(256, 256), normal(256, 256, seed=1)),
    row("black-scholes 1M", black_scholes, *UNIFORM, quick=True),
    row("normal 1M", lambda key: jax.random.normal(key, (1_000_000,)), jax.random.key_data(jax.random.key(0))),
    row("n-body 1024", forces, normal(1024, 3), quick=True),
    attention_row(12, 512, 64, quick=True),
    attention_row(12, 2048, 64),
    row("sort 100k", jnp.sort, normal(100_000), libraries=torch_sort, quick=True),
    row("cumsum 1M", jnp.cumsum, UNIFORM[0], libraries=torch_cumsum, quick=True),
    row("top-k 50 of 64x10000", lambda x: jax.lax.top_k(x, 50), normal(64, 10_000), libraries=torch_top_k, quick=True),
    row("FFT 256x4096", jnp.fft.fft, SIGNAL, libraries=lambda x: {"scipy": lambda: scipy.fft.fft(x)}, quick=True),
    row("gather 20000 of 128", lambda t, i: t[i], TABLE, INDICES, libraries=torch_gather, quick=True),
    row(
        "scatter-add 20000 of 128",
        lambda t, i, u: t.at[i].add(u),
        TABLE,
        INDICES,
        UPDATES,
        libraries=torch_scatter,
        quick=True,
    ),
    row("max pool 3x3/2 of 112x112x64", pooled, normal(1, 112, 112, 64), quick=True),
)
