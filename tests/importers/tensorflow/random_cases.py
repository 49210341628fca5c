"""Cases of random numbers, as in `cases`: the bits are TensorFlow's."""

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import Case, case, ints, normal, raw

SEED = ints(7, -3)
FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
PHILOX = 1


KEYED = [
    case(op, lambda seed, op=op, dtype=dtype, shape=shape: getattr(raw, op)(shape=shape, seed=seed, dtype=dtype), SEED)
    for op in ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
    for dtype, shape in zip(FLOATS, ((3, 5), (7,), (300,), (301,)), strict=True)
]
KEYED_V2 = [
    case(
        "StatelessTruncatedNormalV2",
        lambda key, counter: raw.StatelessTruncatedNormalV2(shape=[2, 1001], key=key, counter=counter, alg=PHILOX),
        np.array([2**40 + 9], np.uint64),
        np.array([2**64 - 7, 3], np.uint64),
    )
]
CATEGORIES = [
    case(
        "StatelessMultinomial",
        lambda x, seed: raw.StatelessMultinomial(logits=x, num_samples=33, seed=seed),
        np.where(normal(3, 6) > 1.2, -np.inf, normal(3, 6)).astype(np.float32),
        SEED,
    )
]
ALPHAS = np.array([0.1, 1, 2, 30, 0.9])
GAMMAS = [
    *(
        case(
            "StatelessRandomGammaV3",
            lambda seed, alpha: tf.random.stateless_gamma([40, 5], seed, alpha, dtype=alpha.dtype),
            *(SEED, ALPHAS.astype(kind)),
        )
        for kind in (np.float16, np.float32, np.float64)
    ),
    case("StatelessRandomGammaV3", lambda seed: tf.random.stateless_gamma([0], seed, 2.5), SEED),
    case(
        "StatelessRandomGammaV2",
        lambda alpha, seed: raw.StatelessRandomGammaV2(shape=[3, 4, 5], seed=seed, alpha=alpha),
        *(ALPHAS.astype(np.float32), SEED),
    ),
]
RATES = np.array([0, 0.5, 3, 9.9, 10, 40, 1000, np.inf])
COUNTS = np.array([[0], [1], [15], [40], [1000]])
CHANCES = np.array([-1, 0, 0.05, 0.3, 0.5, 0.7, 0.99, 1, 2])
DISCRETE = [
    *(
        case(
            "StatelessRandomPoisson",
            lambda seed, rates, dtype=dtype: raw.StatelessRandomPoisson(
                shape=[3, 20, 8], seed=seed, lam=rates, dtype=dtype
            ),
            *(SEED, RATES.astype(kind)),
        )
        for kind, dtype in ((np.float16, tf.float32), (np.float32, tf.int32), (np.float64, tf.float64))
    ),
    case(
        "StatelessRandomPoisson",
        lambda seed, rates: raw.StatelessRandomPoisson(shape=[40, 2], seed=seed, lam=rates, dtype=tf.int64),
        *(SEED, ints(3, 25)),
    ),
    *(
        case(
            "StatelessRandomBinomial",
            lambda seed, counts, probs, dtype=dtype: raw.StatelessRandomBinomial(
                shape=[30, 5, 9], seed=seed, counts=counts, probs=probs, dtype=dtype
            ),
            *(SEED, COUNTS.astype(kind), CHANCES.astype(kind)),
        )
        for kind, dtype in ((np.float16, tf.float32), (np.float32, tf.int64), (np.float64, tf.float16))
    ),
]
SHUFFLED = [
    case(
        "StatelessShuffle",
        lambda x, key, counter: raw.StatelessShuffle(value=x, key=key, counter=counter, alg=PHILOX),
        *(normal(*shape), np.array([2**40 + 9], np.uint64), np.array([2**64 - 7, 3], np.uint64)),
    )
    for shape in ((23,), (12, 3, 2), (1, 4), (0, 2), ())
]
RANDOM_CASES: list[Case] = [*KEYED, *KEYED_V2, *CATEGORIES, *GAMMAS, *DISCRETE, *SHUFFLED]
