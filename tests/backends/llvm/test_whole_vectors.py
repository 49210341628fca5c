"""Numbers are scaled by powers of two with one rounding, in any number of lanes."""

from __future__ import annotations

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, F64, Code
from trivium.backends.llvm.memory import load_vector, store_vector
from trivium.backends.llvm.whole_vectors import scaled

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
