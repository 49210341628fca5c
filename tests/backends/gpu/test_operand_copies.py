"""Large products of operands that the device cannot copy to shared memory as they are, on the simulator: another launch
copies them first, to rows that begin at multiples of 16 bytes, or transposed; its barrier may not be missing."""

from __future__ import annotations

import re

import pytest

import trivium
from tests.backends.gpu import products, simulator
from tests.backends.gpu.products import schedules
from tests.backends.gpu.test_bulk import client, compiled, expect_all_needed
from tests.backends.gpu.test_contraction import product
from tests.backends.gpu.test_persistent import small
from trivium.backends.gpu import tiles
from trivium.backends.gpu.client import GpuClient
from trivium.ir.func import Module

__all__ = ["client", "small"]

pytestmark = simulator.needs_simulator


@pytest.fixture(autouse=True)
def copies(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "COPIED_LEAST", 1)


def expect_exact(client: GpuClient, module: Module, copied: int) -> None:
    executable = compiled(client, module)
    assert len(re.findall(r"copied\([\d, ]+\)=16", schedules(executable))) == copied
    products.expect_exact(executable, module)


@pytest.mark.parametrize(
    ("shape", "layout", "dtype", "copied"),
    [
        ((136, 72, 97), (1, 0), "bf16", 1),
        ((131, 70, 65), (0, 0), "bf16", 2),
        ((67, 40, 130), (1, 1), "f16", 2),
        ((130, 64, 99), (1, 1), "f32", 2),
        ((130, 64, 99), (1, 0), "f32", 1),
        ((130, 72, 100), (0, 0), "f32", 1),
        ((131, 72, 2052), (0, 0), "f32", 1),
    ],
)
def test_matrices(
    client: GpuClient, shape: tuple[int, int, int], layout: tuple[int, int], dtype: str, copied: int
) -> None:
    expect_exact(client, product(*shape, layout, dtype, "negate"), copied)


@pytest.mark.parametrize(("dtype", "inner"), [("bf16", 41), ("f32", 40), ("f32", 41)])
def test_batches(client: GpuClient, dtype: str, inner: int) -> None:
    """Neither factor lies along the depth, and the batches lie inside the rows of one of them."""
    x, y, z = f"33x2x3x{inner}x{dtype}", f"3x2x33x{inner}x{dtype}", f"3x2x{inner}x{inner}xf32"
    module = trivium.parse(f"""func.func @main(%x: tensor<{x}>, %y: tensor<{y}>) -> tensor<{z}> {{
      %0 = stablehlo.dot_general %x, %y, batching_dims = [2, 1] x [0, 1], contracting_dims = [0] x [2]
        : (tensor<{x}>, tensor<{y}>) -> tensor<{z}>
      return %0 : tensor<{z}>
    }}""")
    products.expect_exact(compiled(client, module), module)


def test_the_barrier_is_needed(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is that of the product."""
    expect_all_needed("barrier", 2, client, product(72, 40, 68, (0, 0), "f32", "negate"), monkeypatch)


def test_few_products_are_not_worth_a_copy(client: GpuClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "COPIED_LEAST", 73)
    assert "copied" not in schedules(client.compile(product(136, 72, 97, (1, 0), "bf16", "negate")))
