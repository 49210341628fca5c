"""Numbers are scaled by powers of two with one rounding, compared and limited, in any number of lanes."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, F64, Code
from trivium.backends.llvm.memory import load_vector, store_vector
from trivium.backends.llvm.whole_vectors import extreme, limited, scaled

TYPES = {np.float32: (F32, 149), np.float64: (F64, 1074)}


@pytest.mark.skipif(not host().ldexp, reason="this processor has no instruction for it")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lanes", [1, 2, 8, 16, 64])
def test_every_number_of_lanes(dtype: type, lanes: int) -> None:
    scalar, smallest = TYPES[dtype]
    vector = ll.VectorType(scalar, lanes)

    def emit(code: Code, pointer: ll.Value) -> None:
        second = code.builder.gep(pointer, [ll.Constant(ll.IntType(64), lanes)], source_etype=scalar)
        if lanes == 1:
            a, exponent = (code.builder.load(place, typ=scalar) for place in (pointer, second))
            code.builder.store(scaled(code, a, exponent), pointer)
        else:
            a, exponent = (load_vector(code, place, vector) for place in (pointer, second))
            store_vector(code, scaled(code, a, exponent), pointer)

    random = np.random.default_rng(0)
    a = random.uniform(-4, 4, lanes).astype(dtype)
    exponent = random.integers(-smallest - 3, smallest - 20, lanes).astype(dtype)
    both = np.concatenate([a, exponent])
    of_memory(emit)(both.ctypes.data)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(both[:lanes], np.ldexp(a, exponent.astype(int)))


def in_lanes(function: Callable[..., ll.Value], a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns what a function of two vectors, or numbers, returns."""
    scalar, lanes = TYPES[a.dtype.type][0], a.size
    vector = ll.VectorType(scalar, lanes)

    def emit(code: Code, pointer: ll.Value) -> None:
        second = code.builder.gep(pointer, [ll.Constant(ll.IntType(64), lanes)], source_etype=scalar)
        if lanes == 1:
            operands = (code.builder.load(place, typ=scalar) for place in (pointer, second))
            code.builder.store(function(code, *operands), pointer)
        else:
            operands = (load_vector(code, place, vector) for place in (pointer, second))
            store_vector(code, function(code, *operands), pointer)

    both = np.concatenate([a, b])
    of_memory(emit)(both.ctypes.data)
    return both[:lanes]


@pytest.mark.skipif(not host().orders_zeros, reason="this processor has no instruction for it")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 64])
def test_extremes_and_limits(dtype: type, lanes: int) -> None:
    numbers = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1e-45, 3.5], dtype)
    random = np.random.default_rng(lanes)
    for _ in range(20):
        a, b = (random.choice(numbers, lanes) for _ in range(2))
        for operation, last in (("maximum", 1), ("minimum", 0)):
            # In total order of the bits, -0 is less than 0.
            pairs = [sorted(pair, key=lambda x: (x, not np.signbit(x)))[last] for pair in zip(a, b, strict=True)]
            got = in_lanes(lambda code, a, b, op=operation: extreme(code, op, a, b), a, b)
            np.testing.assert_array_equal((got, np.signbit(got)), (pairs, np.signbit(pairs)))
        got = in_lanes(lambda code, a, _: limited(code, a, 1.0), a, b)
        np.testing.assert_array_equal((got, np.signbit(got)), (np.clip(a, -1, 1), np.signbit(a)))
    a = np.full(lanes, np.nan, dtype)
    assert (np.abs(in_lanes(lambda code, a, _: limited(code, a, 1.0), a, a)) == 1).all()
