"""Measures the accuracy of inline math in units in the last place of the type, compared with more precise
references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import llvmlite.ir as ll
import mpmath
import numpy as np

from tests.backends.harness import elementwise, run
from tests.backends.llvm.running import of_memory
from trivium.backends.cpu.target import host
from trivium.backends.llvm.code import F32, Code
from trivium.backends.llvm.lookup import SHORT, SIZE
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.memory import load_vector, store_vector
from trivium.backends.llvm.numbers import i64

TYPES = {"f32": np.float32, "f64": np.float64}
EVERYTHING = (-np.inf, np.inf)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-40, 89, -104, 2, 1e30, 3e38]
NAN, INF = np.nan, np.inf

WAYS = [size for size in (0, SHORT, SIZE) if size <= host().looks_up]
"""How many coefficients the instructions look up that a function uses, as far as this processor has them; those that
look up most also scale."""

Reference = Callable[[np.ndarray], np.ndarray]
Exact = Callable[[mpmath.mpf], mpmath.mpf]


def compiled(op: str, name: str, *operands: object) -> np.ndarray:
    """Returns the results of the compiled operation for numbers of one type."""
    arrays = [np.array(operand, TYPES[name]) for operand in operands]
    return run(elementwise(op, [name] * len(arrays), name, arrays[0].size), *arrays)


def samples(count: int) -> np.ndarray:
    """Returns numbers of f32: some of each exponent and sign, as many of the middle, and special ones. A few thousand
    would not do: the error of a function may exceed a limit at one number in a hundred thousand."""
    random = np.random.default_rng(0)
    step = 2**32 // count
    everything = np.arange(0, 2**32, step, dtype=np.int64) + random.integers(0, step, -(-(2**32) // step))
    middle = [random.uniform(-limit, limit, count // 3) for limit in (1, 10, 104)]
    patterns = everything.astype(np.uint32).view(np.float32)
    return np.concatenate([patterns, *(part.astype(np.float32) for part in middle), np.array(SPECIAL, np.float32)])


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Returns distances in units in the last place of f32 (of its smallest normal number, for smaller ones)."""
    magnitude = np.maximum(np.abs(exact.astype(np.float32)), np.finfo(np.float32).tiny)
    return np.abs(got - exact) / np.spacing(magnitude)


def expect_f32(op: str, reference: Reference, tolerance: float, zeros: float = 0, signs: bool = True) -> None:
    """Compares f32 with a reference in f64, including special values and the signs of zeros, but not where the result
    is closer to 0 than `zeros`, for references that are not exact there."""
    x = samples(500_000)
    got = compiled(op, "f32", x)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        expected = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(got[~finite], expected[~finite])
    checked = finite & (np.abs(expected) > zeros) if zeros else finite
    assert ulps(got[checked], exact[checked]).max() <= tolerance
    if signs:
        both = (x == 0) & (expected == 0)
        np.testing.assert_array_equal(np.signbit(got[both]), np.signbit(expected[both]))


def everywhere(dtype: type, domain: tuple[float, float]) -> np.ndarray:
    """Returns numbers of all exponents in the domain, and many from its middle."""
    random, kind = np.random.default_rng(0), np.finfo(dtype)
    exponents = random.uniform(kind.minexp - kind.nmant, kind.maxexp - 0.01, 500)
    numbers = np.concatenate([np.exp2(exponents), np.exp2(random.uniform(-10, 10, 400)), random.uniform(0, 3, 200)])
    numbers = np.concatenate([numbers, -numbers, random.uniform(max(domain[0], -1e4), min(domain[1], 1e4), 300)])
    numbers = numbers.astype(dtype)
    return numbers[(numbers >= domain[0]) & (numbers <= domain[1])]


def distance(value: float, exact: mpmath.mpf, dtype: type) -> float:
    """In units in the last place; below the smallest normal number, those of that number."""
    kind = np.finfo(dtype)
    if not np.isfinite(value):
        return 0.0 if abs(exact) > mpmath.mpf(float(kind.max)) else np.inf
    magnitude = max(abs(exact), mpmath.mpf(float(kind.tiny)))
    unit = mpmath.mpf(2) ** (mpmath.floor(mpmath.log(magnitude, 2)) - kind.nmant)
    return float(abs(mpmath.mpf(value) - exact) / unit)


def worst(op: str, name: str, exact: Exact, domain: tuple[float, float] = EVERYTHING, bits: int = 200) -> float:
    """Returns the largest distance, at numbers of all exponents, from a reference computed with `bits` bits."""
    x = everywhere(TYPES[name], domain)
    got = compiled(op, name, x)
    with mpmath.workprec(bits):
        pairs = zip(x.tolist(), got.tolist(), strict=True)
        return max(distance(value, exact(mpmath.mpf(argument)), TYPES[name]) for argument, value in pairs)


def expect_limits(op: str, name: str, values: Sequence[float]) -> None:
    """Requires `values` at 0, -0, inf and -inf, with the signs of zeros, and NaN for NaN."""
    got = compiled(op, name, [0.0, -0.0, INF, -INF, NAN])
    wanted = np.array([*values, NAN], TYPES[name])
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


def in_lanes(function: Callable[[Code, ll.Value], ll.Value], x: np.ndarray, lanes: int, looks_up: int) -> np.ndarray:
    """Returns a function of numbers of f32, computed in `lanes`, which divide them."""
    vector = ll.VectorType(F32, lanes)

    def emit(code: Code, pointer: ll.Value) -> None:
        code.target = replace(code.target, looks_up=looks_up, ldexp=looks_up == SIZE, orders_zeros=looks_up == SIZE)
        with counted(code, 0, x.size, lanes) as loop:
            place = code.builder.gep(pointer, [i64(loop.index)], source_etype=F32)
            if lanes == 1:
                code.builder.store(function(code, code.builder.load(place, typ=F32)), place)
            else:
                store_vector(code, function(code, load_vector(code, place, vector)), place)

    result = x.copy()
    of_memory(emit)(result.ctypes.data)
    return result


def expect_lanes_not_to_matter(
    function: Callable[[Code, ll.Value], ll.Value], looks_up: int, wanted: Sequence[float], edge: float
) -> None:
    """Requires the same bits on any number of lanes, and `wanted` for NaN, inf, -inf, -0 and 0."""
    numbers = [NAN, INF, -INF, -0.0, 0.0, 1e-45, -1e-40, edge]
    x = np.concatenate([numbers, np.random.default_rng(0).normal(0, 2, 120)]).astype(np.float32)
    expected = in_lanes(function, x, 16, looks_up)
    np.testing.assert_array_equal(expected[:5], np.array(wanted, np.float32))
    for lanes in (1, 2, 4, 8, 32, 64):
        got = in_lanes(function, x, lanes, looks_up)
        np.testing.assert_array_equal(got.view(np.int32), expected.view(np.int32))
