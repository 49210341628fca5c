"""A training step of GPT-2 (124 million parameters) in JAX with Flax and Optax, as one program."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import trivium
from trivium.ir.func import Module

LAYERS, HEADS, WIDTH, WORDS, LENGTH = 12, 12, 768, 50257, 128


class Attention(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        batch, length, width = x.shape
        parts = jnp.split(nn.Dense(3 * width, name="c_attn")(x), 3, axis=-1)
        query, key, value = (part.reshape(batch, length, HEADS, -1) for part in parts)
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (width // HEADS) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
        return nn.Dense(width, name="c_proj")(mixed.reshape(batch, length, width))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + Attention(name="attn")(nn.LayerNorm(name="ln_1")(x))
        hidden = nn.gelu(nn.Dense(4 * WIDTH, name="c_fc")(nn.LayerNorm(name="ln_2")(x)))
        return x + nn.Dense(WIDTH, name="c_proj")(hidden)


class GPT2(nn.Module):
    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        words = nn.Embed(WORDS, WIDTH, name="wte")
        x = words(tokens) + nn.Embed(1024, WIDTH, name="wpe")(jnp.arange(tokens.shape[1]))
        for number in range(LAYERS):
            x = Block(name=f"h_{number}")(x)
        return words.attend(nn.LayerNorm(name="ln_f")(x))


def training_step() -> Module:
    """The loss and its gradient for a sequence, and a step of AdamW."""
    model, optimizer = GPT2(), optax.adamw(1e-4)

    def step(parameters: Any, state: Any, tokens: jax.Array) -> Any:
        def loss(parameters: Any) -> jax.Array:
            logits = model.apply(parameters, tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return value, optax.apply_updates(parameters, updates), state

    tokens = jax.ShapeDtypeStruct((1, LENGTH + 1), jnp.int32)
    parameters = jax.eval_shape(model.init, jax.random.key(0), jax.ShapeDtypeStruct((1, LENGTH), jnp.int32))
    return trivium.from_jax(step, parameters, jax.eval_shape(optimizer.init, parameters), tokens)
