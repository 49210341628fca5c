"""The programs of `peak_memory.py`: models, their training steps, and programs of a few ops with large values between
them. Each is a function that returns a module."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import trivium
from trivium.ir.func import Module

Program = Callable[[], Module]


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def integers(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def lowered(function: Callable[..., Any], *arguments: Any, **options: Any) -> Module:
    """Returns the StableHLO that JAX itself gives to XLA."""
    return trivium.parse(jax.jit(function, **options).lower(*arguments).as_text())


def step(model: nn.Module, loss: Callable[..., jax.Array], inputs: Any, *labels: Any) -> Module:
    """A step of gradient descent: the loss, and the new parameters."""
    parameters = jax.eval_shape(model.init, jax.random.key(0), inputs)

    def function(parameters: Any, inputs: jax.Array, *labels: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(lambda p: loss(model.apply(p, inputs), *labels))(parameters)
        return value, jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)

    return lowered(function, parameters, inputs, *labels)


def inference(model: nn.Module, inputs: Any) -> Module:
    return lowered(model.apply, jax.eval_shape(model.init, jax.random.key(0), inputs), inputs)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def mean_square(results: jax.Array) -> jax.Array:
    return (results**2).mean()


# Models


class Attention(nn.Module):
    heads: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        q, k, v = (nn.DenseGeneral((self.heads, x.shape[-1] // self.heads))(x) for _ in range(3))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return nn.DenseGeneral(x.shape[-1], axis=(-2, -1))(mixed)


class Encoder(nn.Module):
    """Layers of a transformer, with their normalization first."""

    layers: int
    heads: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(self.layers):
            x = x + Attention(self.heads)(nn.LayerNorm()(x))
            x = x + nn.Dense(x.shape[-1])(nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x))))
        return nn.LayerNorm()(x)


class Classifier(nn.Module):
    """A small BERT: words, positions, an encoder, and two classes."""

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        x = nn.Embed(30_000, 256)(tokens) + nn.Embed(512, 256)(jnp.arange(tokens.shape[1]))
        return nn.Dense(2)(Encoder(4, 4)(x)[:, 0])


class ViT(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.Conv(384, (16, 16), (16, 16))(x)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        return nn.Dense(1000)(Encoder(6, 6)(x + self.param("places", nn.zeros, x.shape[1:])).mean(1))


class MLP(nn.Module):
    dropout: float = 0.0

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for number in range(3):
            x = nn.relu(nn.Dense(1024)(x))
            if self.dropout:
                kept = jax.random.bernoulli(jax.random.key(number), 1 - self.dropout, x.shape)
                x = jnp.where(kept, x / (1 - self.dropout), 0)
        return nn.Dense(10)(x)


class Residual(nn.Module):
    """Two convolutions of a ResNet, normalized over the batch."""

    features: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y = nn.relu(normalized(nn.Conv(self.features, (3, 3), self.stride, use_bias=False)(x), self, "a"))
        y = normalized(nn.Conv(self.features, (3, 3), use_bias=False)(y), self, "b")
        if x.shape != y.shape:
            x = normalized(nn.Conv(self.features, (1, 1), self.stride, use_bias=False)(x), self, "c")
        return nn.relu(x + y)


def normalized(x: jax.Array, module: nn.Module, name: str) -> jax.Array:
    """Batch normalization by the statistics of the batch."""
    scale, shift = (module.param(f"{name}{which}", nn.ones, x.shape[-1:]) for which in "+*")
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


class ResNet18(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(normalized(nn.Conv(64, (7, 7), 2, use_bias=False)(x), self, "stem"))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for features, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
            x = Residual(features, stride)(x)
        return nn.Dense(1000)(x.mean((1, 2)))


class Grouped(nn.Module):
    """Group normalization, an activation and a convolution, twice, as in diffusion models."""

    features: int

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        y = nn.Conv(self.features, (3, 3))(nn.silu(nn.GroupNorm(8)(x)))
        y = y + nn.Dense(self.features)(nn.silu(time))[:, None, None]
        y = nn.Conv(self.features, (3, 3))(nn.silu(nn.GroupNorm(8)(y)))
        return y + (x if x.shape == y.shape else nn.Conv(self.features, (1, 1))(x))


class UNet(nn.Module):
    """Skip connections keep values of the way down alive until the way up; attention at the bottom."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        time = nn.Dense(128)(jnp.ones((x.shape[0], 64)))
        x = nn.Conv(32, (3, 3))(x)
        skips = []
        for features in (32, 64, 128):
            x = Grouped(features)(x, time)
            skips.append(x)
            x = nn.Conv(features, (3, 3), 2)(x)
        batch, features = x.shape[0], x.shape[-1]
        x = x + Attention(4)(nn.GroupNorm(8)(x).reshape(batch, -1, features)).reshape(x.shape)
        for features in (128, 64, 32):
            x = jax.image.resize(x, (batch, 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), "nearest")
            x = Grouped(features)(jnp.concatenate([x, skips.pop()], -1), time)
        return nn.Conv(3, (3, 3))(nn.silu(nn.GroupNorm(8)(x)))


class LSTM(nn.Module):
    """A layer over a sequence, as a scan."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return nn.Dense(10)(jnp.asarray(nn.RNN(nn.OptimizedLSTMCell(256))(x))[:, -1])


# Programs of a few ops


def attended(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("hqd,hkd->hqk", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[1:], bool)), scores, -1e9)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)


def differences(x: jax.Array, y: jax.Array) -> Any:
    """The sum of all squared differences of rows, and its gradient."""
    return jax.value_and_grad(lambda x: ((x[:, None] - y[None]) ** 2).sum())(x)


def chain(x: jax.Array) -> jax.Array:
    """Elementwise ops of a large array between reductions that need all of it."""
    for _ in range(4):
        x = jnp.tanh(x - x.mean()) * jnp.exp(-(x**2) / (1 + x.var(0)))
    return x / jnp.abs(x).max(1, keepdims=True)


def branches(x: jax.Array, *weights: jax.Array) -> jax.Array:
    """Products that do not depend on each other, each as large as ten of its sums."""
    sums = [(jnp.tanh(x @ w) ** 2).reshape(x.shape[0], 8, -1).sum(1) @ w[:, : w.shape[1] // 8].T for w in weights]
    return jnp.stack(sums).sum(0)


def spectrum(x: jax.Array) -> jax.Array:
    """A filter of signals in the frequency domain."""
    waves = jnp.fft.rfft(x)
    return jnp.fft.irfft(waves * jnp.exp(-jnp.arange(waves.shape[-1]) / 100.0))


def ranked(x: jax.Array) -> Any:
    order = jnp.argsort(x)
    return x[order], order, jnp.median(x)


def adam(donated: bool) -> Module:
    sizes = {f"w{number}": floats(1024, 1024) for number in range(8)} | {"b": floats(1024)}
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def update(parameters: Any, state: Any, gradients: Any) -> Any:
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state

    options = {"donate_argnums": (0, 1)} if donated else {}
    return lowered(update, sizes, jax.eval_shape(optimizer.init, sizes), sizes, **options)


def torch_inference(name: str) -> Program:
    def program() -> Module:
        import torch

        from benchmarks.rows import models

        torch.manual_seed(0)
        model, inputs = getattr(models, name)()
        return trivium.from_torch(model.eval(), inputs)

    return program


def efficient_net() -> Module:
    import keras
    import tensorflow as tf

    model = keras.applications.EfficientNetB0(weights=None)
    image = tf.constant(np.zeros((1, 224, 224, 3), np.float32))
    return trivium.from_tensorflow(tf.function(lambda x: model(x, training=False)), image)


def gpt2_step() -> Module:
    from benchmarks.gpt2 import training_step

    return training_step()


PROGRAMS: Mapping[str, Program] = {
    "MLP step b256": lambda: step(MLP(), cross_entropy, floats(256, 784), integers(256)),
    "MLP step b256, dropout": lambda: step(MLP(dropout=0.1), cross_entropy, floats(256, 784), integers(256)),
    "ResNet-18 step b4": lambda: step(ResNet18(), cross_entropy, floats(4, 224, 224, 3), integers(4)),
    "ResNet-18 b4": lambda: inference(ResNet18(), floats(4, 224, 224, 3)),
    "ResNet-50 b1": torch_inference("resnet_50"),
    "EfficientNetB0 b1": efficient_net,
    "ViT-base b1": torch_inference("vit_base"),
    "ViT-small step b4": lambda: step(ViT(), cross_entropy, floats(4, 224, 224, 3), integers(4)),
    "BERT-mini step b8 s128": lambda: step(Classifier(), cross_entropy, integers(8, 128), integers(8)),
    "GPT-2 step s128": gpt2_step,
    "U-Net b1": lambda: inference(UNet(), floats(1, 128, 128, 3)),
    "U-Net step b1": lambda: step(UNet(), mean_square, floats(1, 128, 128, 3)),
    "LSTM step b16 s64": lambda: step(LSTM(), cross_entropy, floats(16, 64, 128), integers(16)),
    "attention 4x2048x64": lambda: lowered(attended, *[floats(4, 2048, 64)] * 3),
    "attention 4x2048x64, gradient": lambda: lowered(
        jax.grad(lambda *a: (attended(*a) ** 2).sum(), (0, 1, 2)), *[floats(4, 2048, 64)] * 3
    ),
    "squared differences with gradient": lambda: lowered(differences, floats(256, 256), floats(256, 256)),
    "chain of 2048x2048": lambda: lowered(chain, floats(2048, 2048)),
    "gradient of the chain": lambda: lowered(jax.grad(lambda x: chain(x).sum()), floats(2048, 2048)),
    "eight branches": lambda: lowered(branches, floats(256, 512), *[floats(512, 8192)] * 8),
    "filter 256x8192": lambda: lowered(spectrum, floats(256, 8192)),
    "FFT 256x4096": lambda: lowered(jnp.fft.fft, jax.ShapeDtypeStruct((256, 4096), jnp.complex64)),
    "sort 1M": lambda: lowered(jnp.sort, floats(1 << 20)),
    "ranks of 1M": lambda: lowered(ranked, floats(1 << 20)),
    "AdamW, 8 MiB parameters": lambda: adam(donated=False),
    "AdamW, donated": lambda: adam(donated=True),
}
