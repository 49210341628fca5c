"""Integers that express numbers, and products of integers of 8 bits."""

import torch
import torch.ao.quantization.fx._decomposed  # registers the ops

from tests.importers.pytorch.cases import case, f, i, p, v

I8, U8, BF16 = torch.int8, torch.uint8, torch.bfloat16


def q(op: str, *args: object, **kwargs: object):
    return case(f"quantized_decomposed.{op}", *args, **kwargs)


def bytes_(*shape: int) -> torch.Tensor:
    return i(*shape, low=-128, high=128, dtype=I8)


CASES = [
    q("quantize_per_tensor.default", f(4, 9) * 9, 0.07, 3, -128, 127, I8),
    q("quantize_per_tensor.default", f(4, 9, dtype=BF16), 0.02, 128, 0, 255, U8),
    q("quantize_per_tensor.tensor", f(4, 9) * 9, v(0.07), v(3), -127, 127, I8),
    q("quantize_per_channel.default", f(4, 9), p(9) / 20, i(9), 1, -128, 127, I8),
    q("quantize_per_channel.default", f(4, 9), p(4).double() / 20, i(4), -2, -128, 127, I8),
    q("quantize_per_token.default", f(4, 9), p(4, 1).double() / 20, i(4, 1), -128, 127, I8),
    q("dequantize_per_tensor.default", bytes_(4, 9), 0.07, 3, -128, 127, I8),
    q("dequantize_per_tensor.default", bytes_(4, 9), 0.07, 3, -128, 127, I8, out_dtype=BF16),
    q("dequantize_per_tensor.tensor", bytes_(4, 9), v(0.07), v(3), -128, 127, I8),
    q("dequantize_per_channel.default", bytes_(4, 9), p(9), i(9), 1, -128, 127, I8),
    q("dequantize_per_channel.default", bytes_(4, 9), p(4), None, 0, -128, 127, I8),
    q("dequantize_per_token.default", bytes_(4, 9), p(4, 1).double(), i(4, 1), -128, 127, I8, torch.float32),
    q("dequantize_per_channel_group.default", bytes_(4, 8), p(4, 2), i(4, 2), -128, 127, I8, 4, torch.float32),
    q("dequantize_per_channel_group.default", bytes_(4, 2), p(4, 1), None, -128, 127, I8, 4, torch.float32),
    q("choose_qparams.tensor", f(4, 9), -128, 127, 1e-6, I8),
    q("choose_qparams.tensor", f(4, 9).abs() + 1, 0, 255, 1e-6, U8),
    q("choose_qparams_symmetric.tensor", f(4, 9), -127, 127, 1e-6, I8),
    q("_choose_qparams_per_token_asymmetric_impl.default", f(4, 9), I8),
    case("_int_mm.default", bytes_(18, 16), bytes_(16, 8)),
    case("_weight_int8pack_mm.default", f(4, 32, dtype=BF16), bytes_(16, 32), p(16).to(BF16), tolerance=2e-2),
]
