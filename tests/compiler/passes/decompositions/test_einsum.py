"""Einstein summation, compared with NumPy's."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.passes.decompositions.running import module_of, three_ways
from trivium.ir.ops import Einsum, UnaryEinsum
from trivium.ir.types import type_of

UNARY = [
    ("ab->a", (3, 4)), ("ab->ba", (3, 4)), ("aa->a", (4, 4)), ("aa->", (4, 4)), ("abc->", (2, 3, 4)),
    ("abab->ab", (3, 2, 3, 2)), ("aaa->a", (3, 3, 3)), ("...ab->...ba", (2, 5, 3, 4)), ("a...->...", (2, 3, 4)),
    ("...aa->...a", (2, 3, 3)), ("a->a", (5,)), ("aab->b", (2, 2, 0)), ("->", ()),
]  # fmt: skip
BINARY = [
    ("ab,bc->ac", (3, 4), (4, 5)), ("ab,bc->ca", (3, 4), (4, 5)), ("abc,acd->abd", (2, 3, 4), (2, 4, 5)),
    ("ab,cd->acbd", (2, 3), (4, 5)), ("ab,ab->", (3, 4), (3, 4)), ("ab,ab->ab", (3, 4), (3, 4)),
    ("aab,bc->ac", (3, 3, 4), (4, 5)), ("ab,cd->ad", (2, 3), (4, 5)), ("...ab,...bc->...ac", (2, 1, 3, 4), (6, 4, 5)),
    ("...a,a->...", (2, 3, 4), (4,)), ("ab,bb->a", (3, 4), (4, 4)), ("a,a->", (0,), (0,)), (",ab->ba", (), (2, 3)),
]  # fmt: skip


def numbers(*shape: int, dtype: object) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


def agree(build, wanted: np.ndarray, *arrays: np.ndarray) -> None:
    """Expects exact results: the numbers are small integers, so all sums are exact."""
    for found in three_ways(module_of(build, *arrays), *arrays):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.astype(wanted.dtype), wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("config", "shape"), UNARY)
def test_unary(config, shape, dtype):
    x = numbers(*shape, dtype=dtype)
    wide = np.complex128 if dtype is np.complex64 else np.float64
    wanted = np.einsum(config, x.astype(wide)).astype(dtype)
    agree(lambda x: UnaryEinsum(x, einsum_config=config, result=type_of(wanted)), wanted, x)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("config", "left", "right"), BINARY)
def test_binary(config, left, right, dtype):
    x, y = numbers(*left, dtype=dtype), numbers(*right, dtype=dtype)
    wide = np.complex128 if dtype is np.complex64 else np.float64
    wanted = np.einsum(config, x.astype(wide), y.astype(wide)).astype(dtype)
    agree(lambda x, y: Einsum(x, y, einsum_config=config, result=type_of(wanted)), wanted, x, y)


def test_the_result_may_be_wider():
    x, y = numbers(3, 100, dtype=np.int8), numbers(100, 2, dtype=np.int8)
    wanted = np.einsum("ab,bc->ac", x.astype(np.int32) * 10, y.astype(np.int32) * 10)
    x, y = x * np.int8(10), y * np.int8(10)
    agree(lambda x, y: Einsum(x, y, einsum_config="ab,bc->ac", result=type_of(wanted)), wanted, x, y)


def test_booleans():
    x = np.array([[True, False], [False, False]])
    agree(lambda x: UnaryEinsum(x, einsum_config="ab->a", result=type_of(x0)), x0 := x.any(1), x)
    wanted = (x[:, :, None] & x[None]).any(1)
    agree(lambda x, y: Einsum(x, y, einsum_config="ab,bc->ac", result=type_of(wanted)), wanted, x, x)
