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


@composed("quantized_decomposed.choose_qparams_per_token.default")
def choose_qparams_per_token(input: Tensor, dtype: torch.dtype) -> Pair:
    largest = input.abs().amax(-1, keepdim=True)
    largest = largest.float() if largest.dtype == torch.float16 else largest
    scales = largest.clamp(min=1e-5).div(127)
    return scales, torch.zeros_like(scales)


@composed("quantized_decomposed.choose_qparams_per_token_asymmetric.default")
def choose_qparams_per_token_asymmetric(input: Tensor, dtype: torch.dtype) -> Pair:
    return torch.ops.quantized_decomposed._choose_qparams_per_token_asymmetric_impl(input, dtype)
