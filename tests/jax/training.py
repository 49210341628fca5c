"""Training scripts as JAX's users write them, without any reference to Trivium: `python -m tests.jax.training NAME...`
runs them on Trivium's device and on JAX's CPU platform, and prints the losses of both as JSON."""

import json
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 12


def digits(count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Images in which the row of their label is bright."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, count)
    images = random.normal(0, 0.3, (count, 8, 8, 1)).astype(np.float32)
    images[np.arange(count), 2 * labels] += 1
    return images, labels


def mlp_of_flax() -> list[float]:
    """flax.nnx, with dropout off and batch normalization."""
    import optax
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.first = nnx.Linear(64, 32, rngs=rngs)
            self.norm = nnx.BatchNorm(32, rngs=rngs)
            self.last = nnx.Linear(32, 4, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.norm(self.first(x.reshape(len(x), -1)))))

    images, labels = digits()
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        def loss(model):
            return optax.softmax_cross_entropy_with_integer_labels(model(images), labels).mean()

        value, gradients = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradients)
        return value

    return [float(step(model, optimizer)) for _ in range(STEPS)]


def cnn_of_flax() -> list[float]:
    import flax.linen as nn
    import optax

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.max_pool(nn.relu(nn.Conv(8, (3, 3))(x)), (2, 2), strides=(2, 2))
            x = nn.avg_pool(nn.gelu(nn.Conv(16, (3, 3))(x)), (2, 2), strides=(2, 2))
            return nn.Dense(4)(x.reshape(len(x), -1))

    images, labels = digits()
    model, optimizer = Model(), optax.sgd(0.1, momentum=0.9)
    parameters = model.init(jax.random.key(0), images)

    def loss(parameters):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(parameters, images), labels).mean()

    return _descend(loss, optimizer, parameters)


def transformer_of_equinox() -> list[float]:
    """Predicts the next of a sequence of tokens."""
    import equinox as eqx
    import optax

    keys = jax.random.split(jax.random.key(1), 5)

    class Model(eqx.Module):
        embedding: eqx.nn.Embedding
        attention: eqx.nn.MultiheadAttention
        norm: eqx.nn.LayerNorm
        hidden: eqx.nn.MLP
        head: eqx.nn.Linear

        def __init__(self):
            self.embedding = eqx.nn.Embedding(7, 16, key=keys[0])
            self.attention = eqx.nn.MultiheadAttention(2, 16, key=keys[1])
            self.norm = eqx.nn.LayerNorm(16)
            self.hidden = eqx.nn.MLP(16, 16, 32, 1, key=keys[2])
            self.head = eqx.nn.Linear(16, 7, key=keys[3])

        def __call__(self, tokens):
            x = jax.vmap(self.embedding)(tokens)
            x = x + self.attention(x, x, x, mask=jnp.tril(jnp.ones((len(tokens), len(tokens)), bool)))
            x = x + jax.vmap(self.hidden)(jax.vmap(self.norm)(x))
            return jax.vmap(self.head)(x)

    tokens = (np.arange(9) + np.arange(8)[:, None] * 3) % 7
    model, optimizer = Model(), optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2))
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_value_and_grad
    def loss(model):
        logits = jax.vmap(model)(tokens[:, :-1])
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    @eqx.filter_jit
    def step(model, state):
        value, gradients = loss(model)
        updates, state = optimizer.update(gradients, state, model)
        return eqx.apply_updates(model, updates), state, value

    curve = []
    for _ in range(STEPS):
        model, state, value = step(model, state)
        curve.append(float(value))
    return curve


def neural_ode_of_diffrax() -> list[float]:
    """Learns the field of a spiral through an adaptive solver."""
    import diffrax
    import equinox as eqx
    import optax

    times = jnp.linspace(0, 2, 8)
    angles = np.linspace(0, 2, 8)
    spiral = np.stack([np.exp(-angles / 3) * np.cos(angles), np.exp(-angles / 3) * np.sin(angles)], -1)
    spiral = spiral.astype(np.float32)
    field = eqx.nn.MLP(2, 2, 16, 1, activation=jax.nn.softplus, key=jax.random.key(2))
    optimizer = optax.adam(1e-2)

    @eqx.filter_value_and_grad
    def loss(field):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: field(y)),
            diffrax.Tsit5(),
            t0=0.0,
            t1=2.0,
            dt0=0.1,
            y0=spiral[0],
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
        )
        return jnp.mean((solution.ys - spiral) ** 2)

    @eqx.filter_jit
    def step(field, state):
        value, gradients = loss(field)
        updates, state = optimizer.update(gradients, state)
        return eqx.apply_updates(field, updates), state, value

    state, curve = optimizer.init(eqx.filter(field, eqx.is_array)), []
    for _ in range(STEPS):
        field, state, value = step(field, state)
        curve.append(float(value))
    return curve


def _descend(loss: Callable, optimizer, parameters) -> list[float]:
    import optax

    @jax.jit
    def step(parameters, state):
        value, gradients = jax.value_and_grad(loss)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, value

    state, curve = optimizer.init(parameters), []
    for _ in range(STEPS):
        parameters, state, value = step(parameters, state)
        curve.append(float(value))
    return curve


SCRIPTS = {
    "mlp_of_flax": (mlp_of_flax, ("flax", "optax")),
    "cnn_of_flax": (cnn_of_flax, ("flax", "optax")),
    "transformer_of_equinox": (transformer_of_equinox, ("equinox", "optax")),
    "neural_ode_of_diffrax": (neural_ode_of_diffrax, ("diffrax", "equinox", "optax")),
}
"""The scripts, and the packages that they need."""


def main() -> None:
    for name in sys.argv[1:]:
        curves = []
        for platform in ("trivium", "cpu"):
            with jax.default_device(jax.devices(platform)[0]):
                curves.append(SCRIPTS[name][0]())
        print(json.dumps({"name": name, "trivium": curves[0], "cpu": curves[1]}), flush=True)


if __name__ == "__main__":
    main()
