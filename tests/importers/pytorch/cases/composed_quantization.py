"""Quantization in training."""

import torch
import torch.ao.quantization.fx._decomposed  # registers the ops

from tests.importers.pytorch.cases import case, f, i, p, v

I32 = torch.int32
SPECIAL = torch.tensor([0.25, 0.75, -0.25, 1e9, -1e9, torch.inf, -torch.inf, 1.25, 1.75, -0.0])


def x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.cat([f(*shape) * 3, SPECIAL.expand(*shape[:-1], -1)], -1).to(dtype)


CASES = [
    case("fake_quantize_per_tensor_affine_cachemask.default", x(3, 9), 0.1, 3, -128, 127),
    case("fake_quantize_per_tensor_affine_cachemask.default", x(3, 9, dtype=torch.float64), 0.5, 0, 0, 15),
    *(
        case(
            "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default",
            *(x(3, 9), v(0.1), i(1, dtype=I32), torch.tensor([on]), -128, 127),
        )
        for on in (0, 1)
    ),
    *(
        case(
            "fake_quantize_per_channel_affine_cachemask.default",
            *(x(4, 9, dtype=dtype), p(4) / 4, i(4, dtype=I32), axis, -8, 7),
        )
        for dtype, axis in ((torch.float32, 0), (torch.float16, 0), (torch.float64, 0))
    ),
    *(
        case(f"_fake_quantize_learnable_per_tensor_affine{op}.default", *arrays, v(0.1), torch.tensor([zero]), *limits)
        for op, arrays in (("", (f(3, 9) * 3,)), ("_backward", (f(3, 9), f(3, 9) * 3)))
        for zero, limits in ((0.0, (-8, 7)), (2.5, (0, 15, 0.5)), (-9.7, (-8, 7, 0.25)))
    ),
    *(
        case(f"_fake_quantize_learnable_per_channel_affine{op}.default", *arrays, p(4) / 4, f(4) * 3, axis, -8, 7, 0.5)
        for op, arrays, axis in (
            ("", (f(4, 9) * 3,), 0),
            ("", (f(3, 4, 9) * 3,), 1),
            ("_backward", (f(4, 9), f(4, 9) * 3), 0),
            ("_backward", (f(3, 4, 9), f(3, 4, 9) * 3), 1),
            ("_backward", (f(4), f(4) * 3), 0),
        )
    ),
    case("quantized_decomposed.choose_qparams_per_token.default", f(4, 9), torch.int8),
    case("quantized_decomposed.choose_qparams_per_token.default", f(4, 9, dtype=torch.float16), torch.int8),
    case("quantized_decomposed.choose_qparams_per_token_asymmetric.default", f(4, 9), torch.int8),
]
