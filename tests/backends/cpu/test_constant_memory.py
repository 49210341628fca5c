"""Constants are snapshots in aligned memory, and are copied at most once."""

import numpy as np
import pytest

import trivium
from trivium.backends.cpu.constant_memory import CACHE_LINE, HUGE_PAGE, aligned, frozen, kept
from trivium.backends.cpu.packed import packed
from trivium.compiler.artifact import Axis, Packing


@pytest.mark.parametrize(("count", "boundary"), [(1, CACHE_LINE), (3, CACHE_LINE), (1 << 20, HUGE_PAGE)])
def test_aligned(count: int, boundary: int) -> None:
    array = aligned(count, np.dtype(np.float32))
    assert array.shape == (count,)
    assert array.ctypes.data % boundary == 0
    assert not array.any()


def test_what_is_writeable_is_copied() -> None:
    weights = np.arange(24, dtype=np.float32).reshape(4, 6)
    constant = kept(weights[1:, ::2])
    weights[:] = 0
    assert constant.ctypes.data % CACHE_LINE == 0
    np.testing.assert_array_equal(constant, [[6, 8, 10], [12, 14, 16], [18, 20, 22]])


def test_what_is_frozen_is_not_copied() -> None:
    array = frozen(aligned(8, np.dtype(np.float64)).reshape(2, 4))
    assert kept(array) is array
    with pytest.raises(ValueError, match="read-only"):
        array.base[0] = 1


def test_packed_weights_are_not_copied() -> None:
    weights = np.ones((20, 7), np.float32).reshape(-1).view(np.uint8)
    array = packed(weights, Packing(4, 0, (), (Axis(20, 7),), (Axis(7, 1),), (16, 8)))
    assert kept(array) is array
    assert array.ctypes.data % CACHE_LINE == 0


def test_packed_weights_lie_on_cache_lines_in_a_program() -> None:
    weights = np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32)
    text = f"""
    func.func @main(%x: tensor<8x64xf32>) -> tensor<8x96xf32> {{
      %w = stablehlo.constant dense<"0x{weights.tobytes().hex()}"> : tensor<64x96xf32>
      %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x64xf32>, tensor<64x96xf32>) -> tensor<8x96xf32>
      return %y : tensor<8x96xf32>
    }}"""
    run = trivium.compile(trivium.parse(text))
    assert [array.ctypes.data % CACHE_LINE for array in run.loaded._constants] == [0]
    x = np.ones((8, 64), np.float32)
    np.testing.assert_allclose(run(x)[0], x @ weights, rtol=1e-5, atol=1e-5)
