"""Bits of booleans and of complex numbers as other elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.passes.decompositions.running import module_of, three_ways
from trivium.ir.ops import BitcastConvert
from trivium.ir.types import C64, C128, I1, TensorType, tensor, type_of

BITS = np.random.default_rng(0).integers(0, 2, (3, 64)).astype(np.bool_)


def agree(x: np.ndarray, kind: TensorType) -> None:
    wanted, expanded, compiled = three_ways(module_of(lambda x: BitcastConvert(x, result=kind), x), x)
    assert wanted.dtype == kind.dtype
    for found in (expanded, compiled):
        # For an element of half a byte, the other half is unspecified.
        same = found == wanted if wanted.dtype == ml_dtypes.int4 else found.tobytes() == wanted.tobytes()
        assert np.all(same)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64, np.float32, np.float64, ml_dtypes.bfloat16])
def test_booleans(dtype):
    wide = np.dtype(dtype)
    few = BITS[:, : 8 * wide.itemsize]
    agree(few, TensorType((3,), type_of(np.zeros((), wide)).element_type))
    words = np.packbits(few, axis=1, bitorder="little").view(wide).reshape(3)
    agree(words, tensor(3, 8 * wide.itemsize, of=I1))


@pytest.mark.parametrize("dtype", [ml_dtypes.uint4, ml_dtypes.int4, ml_dtypes.float4_e2m1fn])
def test_booleans_of_half_a_byte(dtype):
    agree(BITS[:, :4], TensorType((3,), type_of(np.zeros((), dtype)).element_type))
    agree(np.arange(16, dtype=np.uint8).astype(ml_dtypes.uint4).view(dtype), tensor(16, 4, of=I1))


def test_complex_numbers():
    parts = np.random.default_rng(1).standard_normal((2, 3, 2)).astype(np.float32)
    agree((parts[0] + 1j * parts[1]).astype(np.complex64), tensor(3, of=C128))
    agree((parts[0] + 1j * parts[1]).astype(np.complex128), tensor(3, 2, 2, of=C64))


def test_of_one_type():
    agree(BITS, tensor(3, 64, of=I1))
