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
RANDOM_CASES: list[Case] = [*KEYED, *KEYED_V2, *CATEGORIES, *GAMMAS]
