"""One case per line: an op and its arguments. The expected results are PyTorch's own. The files correspond to those of
the rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

_GENERATOR = torch.Generator().manual_seed(0)


@dataclass(frozen=True)
class Case:
    """A call of an op. `tolerance` is relative to the scale of the result."""

    op: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-5

    def __str__(self) -> str:
        return self.op.removeprefix("aten.")


def case(op: str, *args: Any, tolerance: float = 1e-5, **kwargs: Any) -> Case:
    """The case `case("add.Tensor", f(2, 3), f(3), alpha=2)`; ops are those of aten unless they name another library."""
    others = ("prims.", "torch_nn.", "quantized_decomposed.", "trivium.")
    return Case(op if op.startswith(others) else f"aten.{op}", args, kwargs, tolerance)


def f(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Floats of both signs."""
    return torch.randn(shape, generator=_GENERATOR, dtype=torch.float64).to(dtype)


def p(*shape: int) -> torch.Tensor:
    """Floats between 0.1 and 0.9."""
    return torch.rand(shape, generator=_GENERATOR) * 0.8 + 0.1


def i(*shape: int, low: int = -5, high: int = 6, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Integers from `low` to below `high`."""
    return torch.randint(low, high, shape, generator=_GENERATOR, dtype=dtype)


def n(*shape: int, below: int) -> torch.Tensor:
    """Indices: integers from 0 to below `below`."""
    return i(*shape, low=0, high=below)


def b(*shape: int) -> torch.Tensor:
    """Booleans."""
    return f(*shape) > 0


def v(*values: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The vector of these values."""
    return torch.tensor(values, dtype=dtype)


NAN, INF = float("nan"), float("inf")
