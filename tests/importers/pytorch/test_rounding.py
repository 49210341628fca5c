"""How often results are rounded: PyTorch computes 16-bit floats in 32 bits, and rounds a whole op's result once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
functional = torch.nn.functional

pytestmark = pytest.mark.torch

OPS: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda x, y: functional.linear(x, y, y[0]),
    "addmm": lambda x, y: torch.addmm(x, x, y, beta=0.5, alpha=0.3),
    "baddbmm": lambda x, y: torch.baddbmm(x[None], x[None], y[None], alpha=0.3),
    "conv2d": lambda x, y: functional.conv2d(x.view(1, 8, 16, 32), y[:36].reshape(32, 8, 3, 3), y[0, :32]),
    "conv_transpose2d": lambda x, y: functional.conv_transpose2d(
        x.view(1, 8, 16, 32), y[:9].reshape(8, 8, 3, 3), y[0, :8]
    ),
    "avg_pool2d": lambda x, y: functional.avg_pool2d(x.view(1, 8, 16, 32), 3, 1, 1),
    "cumsum": lambda x, y: x.cumsum(1),
    "cumprod": lambda x, y: x.view(512, 8).cumprod(1),
    "add": lambda x, y: torch.add(x, y, alpha=0.3),
    "rsub": lambda x, y: torch.rsub(x, y, alpha=0.3),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.3),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3),
    "hypot": torch.hypot,
    "cube": lambda x, y: x**3,
    "std": lambda x, y: x.std(1),
    "log2": lambda x, y: x.abs().log2(),
}


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
def test_ops_round_once(kind: Any) -> None:
    """Double precision, rounded to 16 bits, gives the same numbers, but for a few halfway between two of them."""
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.randn(64, 64, generator=draw).to(kind) for _ in range(2))
    with torch.no_grad():
        found = torch.compile(lambda x, y: [op(x, y) for op in OPS.values()], backend="trivium")(x, y)
        wanted = [op(x.double(), y.double()).to(kind) for op in OPS.values()]
    for name, result, exact in zip(OPS, found, wanted, strict=True):
        assert result.dtype == kind
        assert (result != exact).float().mean() < 0.01, name


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_logarithms_of_powers_are_integers(kind: Any) -> None:
    twos, tens = torch.arange(-14, 16), torch.arange(0, 5)
    logarithms = torch.compile(lambda x, y: (x.log2(), y.log10()), backend="trivium")
    found, other = logarithms((2.0 ** twos.double()).to(kind), (10.0 ** tens.double()).to(kind))
    assert torch.equal(found, twos.to(kind))
    expected = torch.log10((10.0 ** tens.double()).to(kind))
    assert torch.equal(other, expected)
