"""Attention: masks of both kinds, causal, grouped heads, and the gradient."""

import torch

from tests.importers.pytorch.cases import INF, case, f

Q, K, V = f(2, 4, 5, 8), f(2, 4, 6, 8), f(2, 4, 6, 8)
MASK = f(5, 6) > -0.5
ADDED = torch.where(MASK, f(5, 6), -INF).expand(2, 4, 5, 6)
SDPA, FLASH = "scaled_dot_product_attention.default", "_scaled_dot_product_flash_attention_for_cpu"


def _backward(causal, **kwargs):
    out, sums = getattr(torch.ops.aten, FLASH)(Q, K, V, 0.0, causal, **kwargs)
    return case(f"{FLASH}_backward.default", f(*out.shape), Q, K, V, out, sums, 0.0, causal, **kwargs)


CASES = [
    case(SDPA, Q, K, V),
    case(SDPA, Q, K, V, MASK),
    case(SDPA, Q, K, V, torch.zeros(5, 6, dtype=torch.bool)),
    case(SDPA, Q, K, V, f(5, 6), 0.0, False, scale=0.5),
    case(SDPA, Q, f(2, 4, 5, 8), f(2, 4, 5, 8), None, 0.0, True),
    case(SDPA, Q, f(2, 2, 6, 8), f(2, 2, 6, 8), enable_gqa=True),
    case(SDPA, f(5, 8), f(6, 8), f(6, 8)),
    case(f"{FLASH}.default", Q, K, V),
    case(f"{FLASH}.default", Q, K, V, attn_mask=ADDED, scale=0.3),
    case(f"{FLASH}.default", Q, f(2, 4, 5, 8), f(2, 4, 5, 8), 0.0, True),
    _backward(False),
    _backward(True),
    _backward(False, attn_mask=ADDED, scale=0.3),
]
