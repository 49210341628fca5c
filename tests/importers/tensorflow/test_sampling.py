"""Draws from generators: those that are variables draw what TensorFlow draws, the hidden one from the right
distribution."""

import os
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

from scipy import stats

import trivium
import trivium.tensorflow

raw = tf.raw_ops
pytestmark = pytest.mark.tensorflow

COUNT = 4000
FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
START = [2**63 - 9, 5, 77]

DRAWS = {
    "StatefulUniform": {},
    "StatefulStandardNormalV2": {},
    "StatefulTruncatedNormal": {},
    "StatefulUniformFullInt": {"dtype": tf.int64},
    "StatefulUniformInt": {"minval": -5, "maxval": 90},
    "StatefulRandomBinomial": {"counts": [7.0, 30, 400, 9, 80], "probs": [0.2, 0.9, 0.5, 1, 0.3]},
}


def compiled(function: Any) -> Any:
    return trivium.tensorflow.function(function, autograph=False, fallback=False)


@pytest.mark.parametrize("op", DRAWS)
def test_generators_that_are_variables(op: str) -> None:
    def twice(compiler: Any) -> list[np.ndarray]:
        generator = tf.Variable(START, dtype=tf.int64, trainable=False)

        def draw() -> Any:
            return getattr(raw, op)(resource=generator.handle, algorithm=1, shape=[3, 5], **DRAWS[op])

        function = compiler(draw)
        return [function().numpy(), function().numpy(), generator.numpy()]

    for mine, theirs in zip(twice(compiled), twice(tf.function), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


SEED = [7, -3]
LIKE: dict[str, Any] = {
    **{
        f"uniform {kind.name}": lambda n, kind=kind: tf.random.stateless_uniform(n, SEED, dtype=kind) for kind in FLOATS
    },
    **{f"normal {kind.name}": lambda n, kind=kind: tf.random.stateless_normal(n, SEED, dtype=kind) for kind in FLOATS},
    **{
        f"truncated {kind.name}": lambda n, kind=kind: tf.random.stateless_truncated_normal(n, SEED, dtype=kind)
        for kind in FLOATS
    },
    **{
        f"integers {kind.name}": lambda n, kind=kind: tf.random.stateless_uniform(n, SEED, -5, 90, dtype=kind)
        for kind in (tf.int32, tf.int64)
    },
    "all integers": lambda n: tf.random.stateless_uniform(n, SEED, None, None, dtype=tf.uint64),
    "by the seed": lambda n: raw.StatelessRandomUniform(shape=n, seed=SEED),
    "normal by the seed": lambda n: raw.StatelessRandomNormal(shape=n, seed=SEED),
    "truncated by the seed": lambda n: raw.StatelessTruncatedNormal(shape=n, seed=SEED),
    "integers by the seed": lambda n: raw.StatelessRandomUniformInt(shape=n, seed=SEED, minval=-5, maxval=90),
    "all integers by the seed": lambda n: raw.StatelessRandomUniformFullInt(shape=n, seed=SEED),
    "gamma": lambda n: tf.random.stateless_gamma(n, SEED, 0.7),
    "gammas": lambda n: tf.random.stateless_gamma(tf.concat([n, [3]], 0), SEED, [0.5, 1.0, 4.0]),
    "gamma by the seed": lambda n: raw.StatelessRandomGammaV2(shape=n, seed=SEED, alpha=4.0),
    "poisson": lambda n: tf.random.stateless_poisson(tf.concat([n, [2]], 0), SEED, [3.0, 30.0]),
    "binomial": lambda n: tf.random.stateless_binomial(tf.concat([n, [2]], 0), SEED, [9.0, 99.0], [0.3, 0.6]),
    "categories": lambda n: tf.random.stateless_categorical(tf.ones(n), 9, SEED),
}


@pytest.mark.parametrize("name", LIKE)
def test_draws_of_shapes_that_are_computed(name: str) -> None:
    def like(x: Any) -> Any:
        return LIKE[name](tf.shape(x))

    module = trivium.from_tensorflow(tf.function(like, autograph=False), tf.TensorSpec([None, None]))
    module.verify()
    run = trivium.compile(module)
    for shape in ((3, 5), (1, 2), (4, 1)) if name == "categories" else ((3, 5), (1, 1), (0, 4), (2, 4)):
        x = np.zeros(shape, np.float32)
        wanted = like(x).numpy()
        error = 1e-3 if wanted.itemsize < 4 else 1e-5
        for got in (*trivium.evaluate(module, x), *tf.nest.flatten(run(x))):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), error, error)


@pytest.mark.parametrize(
    "draw",
    [
        tf.random.uniform,
        tf.random.normal,
        tf.random.truncated_normal,
        lambda n: tf.random.uniform(n, 0, 9, tf.int32),
        lambda n: tf.random.gamma(n, [0.5, 4.0]),
        lambda n: tf.random.poisson(n, [0.5, 40.0]),
        lambda n: raw.ParameterizedTruncatedNormal(shape=n, means=0.5, stdevs=1.0, minvals=0.0, maxvals=9.0),
        lambda n: tf.random.categorical(tf.ones(n), 4),
        lambda n: tf.random.shuffle(tf.ones(n)),
    ],
)
def test_draws_of_shapes_that_are_computed_from_the_hidden_generator(draw: Any) -> None:
    """They draw as many numbers as where the shape is known, and the same ones."""
    state = np.array([5, 0, 77])

    def like(x: Any) -> Any:
        return draw(tf.shape(x)), draw(tf.shape(x))

    module = trivium.from_tensorflow(tf.function(like, autograph=False), tf.TensorSpec([None, None]))
    module.verify()
    for shape in ((3, 5), (1, 2)):
        x = np.zeros(shape, np.float32)
        twice = tf.function(lambda shape=shape: (draw(shape), draw(shape)), autograph=False)
        known = trivium.from_tensorflow(twice)
        wanted = trivium.evaluate(known, state)
        for got, number in zip(trivium.evaluate(module, state, x), wanted, strict=True):
            np.testing.assert_allclose(got, number, 1e-5)


def test_skipping() -> None:
    def skipped(compiler: Any) -> np.ndarray:
        generator = tf.Variable(START, dtype=tf.int64, trainable=False)

        def skip(count: Any) -> None:
            raw.RngSkip(resource=generator.handle, algorithm=tf.constant(1, tf.int64), delta=count)

        compiler(skip)(tf.constant(12, tf.int64))
        return generator.numpy()

    np.testing.assert_array_equal(skipped(compiled), skipped(tf.function))


def test_shuffling_permutes_rows() -> None:
    shuffle = compiled(lambda x: raw.RandomShuffle(value=x))
    x = tf.reshape(tf.range(200), (100, 2))
    first, second = shuffle(x).numpy(), shuffle(x).numpy()
    np.testing.assert_array_equal(first[np.argsort(first[:, 0])], x)
    assert (first != second).any()


def test_categories_have_their_probabilities() -> None:
    weights = np.array([[0.1, 0.0, 0.6, 0.3], [0.25] * 4])
    with np.errstate(divide="ignore"):
        logits = tf.constant(np.log(weights), tf.float32)
    drawn = compiled(lambda x: raw.Multinomial(logits=x, num_samples=COUNT))(logits).numpy()
    shares = np.stack([np.bincount(row, minlength=4) / COUNT for row in drawn])
    assert (np.abs(shares - weights) <= 6 * np.sqrt(weights * (1 - weights) / COUNT)).all()


def test_normal_numbers_between_bounds() -> None:
    draw = compiled(
        lambda: raw.ParameterizedTruncatedNormal(
            shape=[2, COUNT], means=[1.0, 0.0], stdevs=[2.0, 1.0], minvals=[-1.0, 0.0], maxvals=[3.0, 9.0]
        )
    )
    both = draw().numpy()
    assert (both >= [[-1], [0]]).all()
    assert (both <= [[3], [9]]).all()
    # The means of the symmetric one and of the half normal distribution.
    for row, mean in zip(both, (1.0, np.sqrt(2 / np.pi)), strict=True):
        assert abs(row.mean() - mean) < 6 * row.std() / np.sqrt(COUNT)


BOUNDS = [
    *((0, 1, -1, 1), (0, 1, -3, 0.1), (2, 3, -np.inf, 2.5), (-1, 2, 4, np.inf), (5, 1, -3, -2.9)),
    *((0, 1, 8, np.inf), (0, 2, -90, -80), (0, 1, 6, 6.01), (1, 1, -np.inf, np.inf)),
]
"""Means, deviations and bounds: those of each method, on both sides, and far from the mean."""


@pytest.mark.parametrize("kind", [tf.float32, tf.float64])
@pytest.mark.parametrize("is_stateless", [False, True])
def test_normal_numbers_between_far_bounds(kind: Any, is_stateless: bool) -> None:
    parameters = np.array(BOUNDS).T

    def draw() -> Any:
        means, deviations, *bounds = (tf.constant(row, kind) for row in parameters)
        between = dict(zip(("minvals", "maxvals"), bounds, strict=True))
        if is_stateless:
            named = {"means": means, "stddevs": deviations, **between}
            return raw.StatelessParameterizedTruncatedNormal(shape=[COUNT, len(BOUNDS)], seed=[3, 4], **named)
        named = {"means": means, "stdevs": deviations, **between}
        return tf.transpose(raw.ParameterizedTruncatedNormal(shape=[len(BOUNDS), COUNT], **named))

    drawn = compiled(draw)().numpy()
    for (mean, deviation, least, most), column in zip(BOUNDS, drawn.T, strict=True):
        low, high = (x.astype(column.dtype) for x in np.array([least, most]))
        assert ((column >= low) & (column <= high)).all()
        ends = (least - mean) / deviation, (most - mean) / deviation
        distribution = stats.truncnorm(*ends, loc=mean, scale=deviation)
        # The statistic of Kolmogorov and Smirnov exceeds this once in 100,000 draws.
        assert stats.kstest(column.astype(np.float64), distribution.cdf).statistic < 2.5 / np.sqrt(COUNT)


def test_normal_numbers_between_bounds_that_are_none() -> None:
    def draw() -> Any:
        named = {"means": 0.0, "stddevs": [1.0, -1.0, 1.0], "minvals": [0.0, 0.0, 2.0], "maxvals": 1.0}
        return raw.StatelessParameterizedTruncatedNormal(shape=[5, 3], seed=[3, 4], **named)

    np.testing.assert_array_equal(np.isnan(compiled(draw)()), [[False, True, True]] * 5)


@pytest.mark.parametrize("kind", [tf.float16, tf.float32, tf.float64, tf.int32])
def test_counts(kind: Any) -> None:
    rates = np.array([0, 0.1, 2, 9.9, 10, 35, 120, -1])
    drawn = compiled(lambda: raw.StatelessRandomPoisson(shape=[COUNT, 8], seed=[3, 4], lam=rates, dtype=kind))()
    wanted = raw.StatelessRandomPoisson(shape=[COUNT, 8], seed=[3, 4], lam=rates, dtype=kind)
    np.testing.assert_array_equal(drawn, wanted)
    for rate, column in zip(rates[1:-1], drawn.numpy().T[1:-1].astype(np.float64), strict=True):
        assert abs(column.mean() - rate) < 5 * np.sqrt(rate / COUNT)


def test_hidden_draws_of_rates() -> None:
    rates = np.array([0.3, 4, 25])

    def draw() -> Any:
        # The variance of a gamma distribution is its shape as well.
        counts = raw.RandomPoissonV2(shape=[COUNT], rate=rates, dtype=tf.float32)
        return tf.stack([counts, tf.cast(raw.RandomGamma(shape=[COUNT], alpha=rates), tf.float32)])

    function = compiled(draw)
    first, second = function().numpy(), function().numpy()
    assert (first != second).any()
    spread = np.abs(first.mean(1) - rates) / np.sqrt(rates / COUNT)
    assert (spread < 5).all()
    fourth = np.array([rates + 3 * rates**2, 6 * rates + 3 * rates**2])
    assert (np.abs(first.var(1) - rates) < 5 * np.sqrt((fourth - rates**2) / COUNT)).all()


def test_rates_that_are_no_number_are_their_own_samples() -> None:
    # TensorFlow's kernel does not end for such a rate.
    for kind, wanted in ((tf.float32, [np.nan, np.inf]), (tf.int32, [0, 0])):
        rates = np.array([np.nan, np.inf])
        drawn = compiled(
            lambda kind=kind, rates=rates: raw.StatelessRandomPoisson(shape=[2], seed=[3, 4], lam=rates, dtype=kind)
        )()
        np.testing.assert_array_equal(drawn, wanted)
