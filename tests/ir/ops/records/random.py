"""Random bits, compared with those of XLA on its CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ir.ops.records import Record
from tests.ir.ops.records.reduction import LaxCall
from trivium.ir.ops import Rng, RngAlgorithm, RngBitGenerator, RngDistribution
from trivium.ir.types import F32, I32, UI64, element_type_of, tensor

_STATE = np.array([123456789012345678, 9876543210123456789], np.uint64)
_LAST = np.array([123456789012345678, 2**64 - 2], np.uint64)
_SHAPES = ((), (1,), (4,), (5,), (3, 5), (3, 4), (4, 3), (7, 2, 3))


def _bits(algorithm: RngAlgorithm, state: np.ndarray, shape: tuple[int, ...], dtype: Any) -> Record:
    def oracle(lax, state):
        name = "RNG_" + algorithm.value
        return lax.rng_bit_generator(state, shape, dtype=dtype, algorithm=lax.RandomAlgorithm.__members__[name])

    attributes = {
        "rng_algorithm": algorithm,
        "output_state": tensor(*state.shape, of=UI64),
        "output": tensor(*shape, of=element_type_of(dtype)),
    }
    return Record(RngBitGenerator, (state,), attributes, oracle=LaxCall(oracle))


RECORDS = [
    *(_bits(algorithm, _STATE, shape, np.uint32) for algorithm in RngAlgorithm for shape in _SHAPES),
    *(
        _bits(algorithm, _STATE, (3, 4), dtype)
        for algorithm in RngAlgorithm
        for dtype in (np.uint8, np.uint16, np.uint64)
    ),
    *(_bits(algorithm, _LAST, (37,), dtype) for algorithm in RngAlgorithm for dtype in (np.uint32, np.uint64)),
    # JAX passes two words to Philox. With three, the counter has a high word of its own; these are the known answers
    # that Random123 publishes.
    Record(
        RngBitGenerator,
        (np.array([0, 0, 0], np.uint64),),
        {
            "rng_algorithm": RngAlgorithm.PHILOX,
            "output_state": tensor(3, of=UI64),
            "output": tensor(4, of=element_type_of(np.uint32)),
        },
        oracle=lambda _: (
            np.array([0, 1, 0], np.uint64),
            np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], np.uint32),
        ),
    ),
    Record(
        RngBitGenerator,
        (np.array([2**64 - 1] * 3, np.uint64),),
        {
            "rng_algorithm": RngAlgorithm.PHILOX,
            "output_state": tensor(3, of=UI64),
            "output": tensor(4, of=element_type_of(np.uint32)),
        },
        oracle=lambda _: (
            np.array([2**64 - 1, 0, 0], np.uint64),
            np.array([0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], np.uint32),
        ),
    ),
    Record(
        Rng,
        (np.array(0, np.int32), np.array(2, np.int32), np.array([3, 3])),
        {"rng_distribution": RngDistribution.UNIFORM},
        result=tensor(3, 3, of=I32),
    ),
    Record(
        Rng,
        (np.array(-1, np.float32), np.array(2, np.float32), np.array([3, 3])),
        {"rng_distribution": RngDistribution.UNIFORM},
        result=tensor(3, 3, of=F32),
    ),
    Record(
        Rng,
        (np.array(0, np.float32), np.array(1, np.float32), np.array([4])),
        {"rng_distribution": RngDistribution.NORMAL},
        result=tensor(4, of=F32),
    ),
]
