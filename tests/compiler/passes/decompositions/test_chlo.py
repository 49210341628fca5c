"""Functions that kernels do not have, compiled: equal to their evaluation, at large and small arguments."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.compiler.passes.decompositions.running import program, three_ways
from tests.ir.ops.records import Record
from trivium.ir import ops

SOME = np.concatenate([[0.0], np.logspace(-6, 1, 15), np.linspace(0.25, 6, 24)])
PLANE = (np.concatenate([SOME, -SOME])[:, None] + 1j * np.concatenate([SOME, -SOME])[None]).ravel()
INVERSE = (ops.Acos, ops.Acosh, ops.Asin, ops.Asinh, ops.Atan, ops.Atanh)


def relative(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    found, wanted = (each[finite].astype(np.clongdouble) for each in (found, wanted))
    return np.abs(found - wanted) / np.maximum(np.abs(wanted), 1e-300)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("op", [*INVERSE, ops.Cosh, ops.Sinh], ids=lambda op: op.short_name())
def test_functions_of_complex_numbers(op, dtype):
    x = PLANE.astype(dtype)
    wanted, expanded, compiled = three_ways(program(op, x), x)
    assert relative(expanded, wanted).max() < 64 * np.finfo(dtype).eps
    assert relative(compiled, wanted).max() < 64 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_bessel(dtype):
    x = np.concatenate([SOME, -SOME, [30, 700, -1e4, np.inf, np.nan]]).astype(dtype)
    wanted, _, compiled = three_ways(program(ops.BesselI1e, x), x)
    assert relative(compiled, wanted).max() < 16 * ml_dtypes.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeta_and_polygamma(dtype):
    x, q = (each.ravel().astype(dtype) for each in np.meshgrid([1, 1.5, 2, 3, 7.25, 30, np.inf, 0.5], SOME[1:]))
    wanted, _, compiled = three_ways(program(ops.Zeta, x, q), x, q)
    assert relative(compiled, wanted).max() < 64 * np.finfo(dtype).eps
    n = np.resize(np.arange(6), q.size).astype(dtype)
    wanted, _, compiled = three_ways(program(ops.Polygamma, n, q), n, q)
    assert relative(compiled, wanted).max() < 512 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_mulhi(dtype):
    limits = np.iinfo(dtype)
    few = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, limits.max // 3]
    x, y = (each.ravel().astype(dtype) for each in np.meshgrid(few, few))
    exact = [int(a) * int(b) >> limits.bits for a, b in zip(x, y, strict=True)]
    for found in three_ways(program(ops.Mulhi, x, y), x, y):
        np.testing.assert_array_equal(found, np.array(exact, object).astype(dtype))


NARROW = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float4_e2m1fn")


@pytest.mark.parametrize("name", NARROW)
def test_next_after(name):
    """Tests all neighbours for types of one byte, and some for wider ones."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    count = 1 << min(ml_dtypes.finfo(dtype).bits, 8)
    every = np.arange(count).astype(f"u{dtype.itemsize}") * (1 if dtype.itemsize == 1 else 257)
    every = every.astype(f"u{dtype.itemsize}").view(dtype)
    x, y = np.repeat(every, every.size), np.tile(every, every.size)
    wanted, expanded, compiled = three_ways(program(ops.NextAfter, x, y), x, y)
    for found in (expanded, compiled):
        same = found.view(f"u{dtype.itemsize}") == wanted.view(f"u{dtype.itemsize}")
        assert (same | (np.isnan(found.astype(np.float32)) & np.isnan(wanted.astype(np.float32)))).all()


def test_ragged_dot():
    rng = np.random.default_rng(0)
    lhs, rhs = rng.standard_normal((7, 4)).astype(np.float32), rng.standard_normal((3, 4, 5)).astype(np.float32)
    sizes = np.array([2, 0, 4], np.int32)
    numbers = ops.RaggedDotDimensionNumbers((), (), (1,), (1,), (0,), (0,))
    record = Record(ops.RaggedDot, (lhs, rhs, sizes), {"ragged_dot_dimension_numbers": numbers})
    wanted = np.concatenate([lhs[:2] @ rhs[0], lhs[2:6] @ rhs[2], np.zeros((1, 5))])
    np.testing.assert_allclose(trivium.compile(record.module())(lhs, rhs, sizes)[0], wanted, rtol=1e-5, atol=1e-6)
