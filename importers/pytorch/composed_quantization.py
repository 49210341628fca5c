"""Quantization in training: numbers rounded to those that integers of few bits express; and steps of rows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.ao.quantization.fx import _decomposed  # noqa: F401  # pyright: ignore[reportUnusedImport], it registers ops

from trivium.importers.pytorch.composition import composed

Pair = tuple[Tensor, Tensor]


@composed("aten.fake_quantize_per_tensor_affine_cachemask.default")
def fake_quantize(self: Tensor, scale: float, zero_point: int, quant_min: int, quant_max: int) -> Pair:
    return _rounded(self, torch.full((), scale), torch.full((), zero_point), quant_min, quant_max)


@composed("aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default")
def fake_quantize_if(
    self: Tensor, scale: Tensor, zero_point: Tensor, fake_quant_enabled: Tensor, quant_min: int, quant_max: int
) -> Pair:
    found, kept = _rounded(self, scale.reshape(()), zero_point.reshape(()), quant_min, quant_max)
    off = fake_quant_enabled.reshape(()) == 0
    return torch.where(off, self, found), kept | off


@composed("aten.fake_quantize_per_channel_affine_cachemask.default")
def fake_quantize_channels(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Pair:
    if zero_point.is_floating_point():
        return NotImplemented  # PyTorch rounds in another order then
    shape = [-1 if d == axis else 1 for d in range(self.dim())]
    return _rounded(self, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


def _rounded(x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int) -> Pair:
    """Returns the nearest of the numbers that integers from `low` to `high` express, and which of `x` are in their
    range."""
    wide = x if x.dtype == torch.float64 else x.float()
    scale = scale.float()
    whole = (wide * (1 / scale)).round() + zero
    if zero.dim():  # PyTorch has integers here: those of infinities and NaN are the least ones
        whole = torch.where(whole.abs() < 2.0**63, whole, -(2.0**63))
    kept = (whole >= low) & (whole <= high)
    steps = whole.clamp(low, high) - zero
    return ((steps if zero.dim() else steps.float()) * scale).to(x.dtype), kept


# Scales and zero points that are trained


@composed("aten._fake_quantize_learnable_per_tensor_affine.default")
def fake_quantize_learnable(
    self: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    zero = zero_point.reshape(()).float().round().clamp(quant_min, quant_max)
    return _rounded(self, scale.reshape(()), zero.trunc(), quant_min, quant_max)[0]


@composed("aten._fake_quantize_learnable_per_channel_affine.default")
def fake_quantize_learnable_channels(
    self: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    shape = [-1 if d == axis else 1 for d in range(self.dim())]
    zero = _whole(zero_point, quant_min, quant_max)
    return _rounded(self, scale.reshape(shape), zero.reshape(shape), quant_min, quant_max)[0]


@composed("aten._fake_quantize_learnable_per_tensor_affine_backward.default")
def fake_quantize_learnable_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    zero = _whole(zero_point.reshape(()), quant_min, quant_max)
    found = _gradients(grad, self, scale.reshape(()), zero, (quant_min, quant_max), grad_factor)
    return found[0], found[1].sum().reshape(1), found[2].sum().reshape(1)


@composed("aten._fake_quantize_learnable_per_channel_affine_backward.default")
def fake_quantize_learnable_channels_backward(
    grad: Tensor,
    self: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    shape = [-1 if d == axis else 1 for d in range(self.dim())]
    others = [d for d in range(self.dim()) if d != axis]
    zero = _whole(zero_point, quant_min, quant_max).reshape(shape)
    found = _gradients(grad, self, scale.reshape(shape), zero, (quant_min, quant_max), grad_factor)
    # Of a tensor with one dimension, PyTorch sums all channels.
    return found[0], found[1].sum(others), found[2].sum(others)


def _whole(zero: Tensor, low: int, high: int) -> Tensor:
    return (zero.float() + 0.5).clamp(low, high).floor()


def _gradients(
    grad: Tensor, x: Tensor, scale: Tensor, zero: Tensor, limits: tuple[int, int], factor: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradients of the elements, and what each element adds to those of the scale and of the zero point."""
    whole = (x * (1 / scale)).round() + zero
    kept = (whole >= limits[0]) & (whole <= limits[1])
    steps = whole.clamp(*limits) - zero
    of_scale = torch.where(kept, (steps * scale - x) * (1 / scale), steps) * grad * factor
    return grad * kept, of_scale, torch.where(kept, 0.0, -grad * scale * factor)


@composed("quantized_decomposed.choose_qparams_per_token.default")
def choose_qparams_per_token(input: Tensor, dtype: torch.dtype) -> Pair:
    largest = input.abs().amax(-1, keepdim=True)
    largest = largest.float() if largest.dtype == torch.float16 else largest
    scales = largest.clamp(min=1e-5).div(127)
    return scales, torch.zeros_like(scales)


@composed("quantized_decomposed.choose_qparams_per_token_asymmetric.default")
def choose_qparams_per_token_asymmetric(input: Tensor, dtype: torch.dtype) -> Pair:
    return torch.ops.quantized_decomposed._choose_qparams_per_token_asymmetric_impl(input, dtype)
