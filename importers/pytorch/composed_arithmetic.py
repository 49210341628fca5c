"""Arithmetic that PyTorch's decompositions compute in other types than its kernels, or round at other places."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trivium.importers.pytorch.composition import composed


@composed("aten.ldexp.Tensor")
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    if not self.is_floating_point() or other.is_floating_point() or other.is_complex():
        return self * torch.pow(2.0, other)
    # The power itself may be outside of the type where the product is within: a third of the exponent is not.
    wide = self.float() if self.dtype in (torch.float16, torch.bfloat16) else self
    most = 2100 if wide.dtype == torch.float64 else 300
    other = other.to(torch.int64).clamp(-most, most)
    third = torch.div(other, 3, rounding_mode="floor")
    two = wide.new_full((), 2)
    power = torch.pow(two, third)
    return (wide * power * power * torch.pow(two, other - 2 * third)).to(self.dtype)


@composed("aten.pow.Tensor_Scalar")
def pow(self: Tensor, exponent: Any) -> Tensor:
    """Decomposes powers of booleans, which are booleans; others have a rule."""
    if self.dtype != torch.bool or not isinstance(exponent, bool):
        return NotImplemented
    return self.clone() if exponent else torch.ones_like(self)


def _rounded(number: float, like: Tensor) -> Tensor:
    """Returns a number in the type of floats that it is combined with, in which it may be infinite."""
    dtype = like.dtype if like.is_floating_point() else torch.get_default_dtype()
    return torch.full((), number, dtype=torch.float64, device=like.device).to(dtype)


@composed("aten.xlogy.Scalar_Self")
def xlogy_of_number(self: float, other: Tensor) -> Tensor:
    return torch.xlogy(_rounded(self, other), other)


@composed("aten.xlogy.Scalar_Other")
def xlogy_with_number(self: Tensor, other: float) -> Tensor:
    return torch.xlogy(self, _rounded(other, self))


@composed("aten.special_xlog1py.self_scalar")
def xlog1py_of_number(self: float, other: Tensor) -> Tensor:
    return torch.special.xlog1py(_rounded(self, other), other)


@composed("aten.special_xlog1py.other_scalar")
def xlog1py_with_number(self: Tensor, other: float) -> Tensor:
    return torch.special.xlog1py(self, _rounded(other, self))


SIXTH = 0.16666667163372040
"""The slope of `hardsigmoid` between its limits, which PyTorch's kernels round to 32 bits in every type."""


@composed("aten.hardsigmoid_backward.default")
def hardsigmoid_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return torch.where((self > -3) & (self < 3), grad_output * SIXTH, 0.0)
