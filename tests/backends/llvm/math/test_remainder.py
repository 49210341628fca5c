"""The exact remainder, computed by integers and in vectors, compared with NumPy's bit for bit."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ll
import numpy as np
import pytest

from tests.backends.llvm.running import of_memory
from trivium.backends.llvm.code import F32, F64, Code
from trivium.backends.llvm.loops import counted
from trivium.backends.llvm.math.remainder import remainder, remainder_of_quotient
from trivium.backends.llvm.numbers import i64

TYPES = {"f32": (F32, np.float32), "f64": (F64, np.float64)}


Form = Callable[[Code, ll.Value, ll.Value], ll.Value]


def remainders(x: np.ndarray, y: np.ndarray, type_: ll.Type, lanes: int, form: Form) -> np.ndarray:
    """Returns the remainder of each pair. Vectors of `lanes` pairs are computed at once; 1 means scalars."""
    rest = -len(x) % lanes
    table = np.stack([np.pad(each, (0, rest), constant_values=1) for each in (x, y, x)])
    held = type_ if lanes == 1 else ll.VectorType(type_, lanes)

    def emit(code: Code, pointer: ll.Value) -> None:
        with counted(code, 0, table.shape[1], lanes) as loop:
            rows = (i64(loop.index + row * table.shape[1]) for row in range(3))
            places = [code.builder.gep(pointer, [row], source_etype=type_) for row in rows]
            given = [code.builder.load(place, typ=held, align=4) for place in places[:2]]
            code.builder.store(form(code, *given), places[2], align=4)

    of_memory(emit)(table.ctypes.data)
    return table[2, : len(x)]


@pytest.mark.parametrize(
    ("form", "lanes"),
    [(remainder, 1), (remainder_of_quotient, 1), (remainder_of_quotient, 2), (remainder_of_quotient, 8)],
)
@pytest.mark.parametrize("name", TYPES)
def test_every_magnitude_and_every_corner(name: str, form: Form, lanes: int) -> None:
    type_, dtype = TYPES[name]
    limits, random = np.finfo(dtype), np.random.default_rng(0)
    corners = [0.0, -0.0, 1, -3, np.inf, -np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal, 0.1]
    bits = random.integers(0, 2 ** (8 * limits.dtype.itemsize), 4000, np.uint64, endpoint=False)
    drawn = bits.astype(np.uint32 if name == "f32" else np.uint64).view(dtype)
    with np.errstate(all="ignore"):
        close = (drawn[:1000] * random.uniform(0.1, 30, 1000)).astype(dtype)
        whole = (drawn[:1000] * random.integers(1, 1 << 20, 1000)).astype(dtype)
        below = np.nextafter(whole, dtype(0))
    x = np.concatenate([np.repeat(np.array(corners, dtype), len(corners)), drawn[:3000], close, whole, below])
    y = np.concatenate([np.tile(np.array(corners, dtype), len(corners)), drawn[1000:], *[drawn[:1000]] * 3])
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    found = remainders(x, y, type_, lanes, form)
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])
