"""Ops that PyTorch itself can express in terms of others: those without a rule of ours are decomposed before they reach
one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
import torch._prims
import torch._refs
from torch import Tensor
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._ops import OperatorBase, OpOverload
from torch._prims_common import suggest_memory_format
from torch.nn import functional

from trivium.importers.pytorch import (  # noqa: F401, they fill the table
    composed_arithmetic,
    composed_dirichlet,
    composed_distances,
    composed_foreach,
    composed_fractional,
    composed_linalg,
    composed_losses,
    composed_ordering,
    composed_pooling,
    composed_quantization,
    composed_resizing,
    composed_sampling,
    composed_segments,
    composed_special,
)
from trivium.importers.pytorch.composition import COMPOSED, composed
from trivium.importers.pytorch.context import rule

Result = Tensor | Sequence[Tensor]
"""The result of an op."""


@cache
def decompositions() -> dict[OpOverload, Callable[..., Result]]:
    """Returns PyTorch's decompositions of the ops that have no rule, and ours of those for which it has none. Ours come
    before a rule, for which they leave what they return as `NotImplemented`."""
    known = {**_primitives(), **decomposition_table, **core_aten_decompositions()}
    ruleless = {op: function for op, function in known.items() if isinstance(op, OpOverload) and str(op) not in rule}
    return {**ruleless, **COMPOSED}


def _primitives() -> dict[OpOverload, Callable[..., Result]]:
    """Returns how aten expresses PyTorch's primitives, to which some of its decompositions lead. Those that change an
    argument are left out: a graph has none."""
    found = (op for op in vars(torch._prims).values() if isinstance(op, OpOverload))
    return {op: getattr(op, "impl_aten") for op in found if not op._schema.is_mutable}  # noqa: B009, not declared


@cache
def export_decompositions() -> dict[OperatorBase, Callable[..., Result]]:
    """Returns the same for exported programs, where composite ops are still whole."""
    composite = torch.export.default_decompositions()
    return {**decompositions(), **{op: composite[op] for op in list(composite) if str(op) not in rule}}


@composed("aten._transformer_encoder_layer_fwd.default")
def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Decomposes the layer that `nn.TransformerEncoder` runs as one op in inference."""

    def attention(x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        heads = (batch, length, 3, num_heads, embed_dim // num_heads)
        query, key, value = functional.linear(x, qkv_weight, qkv_bias).view(heads).permute(2, 0, 3, 1, 4)
        allowed = None if mask is None else _allowed(mask, mask_type)
        found = functional.scaled_dot_product_attention(query, key, value, allowed)
        return functional.linear(found.transpose(1, 2).reshape(batch, length, embed_dim), proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    x = src
    for part, weight, bias in (
        (attention, norm_weight_1, norm_bias_1),
        (feed_forward, norm_weight_2, norm_bias_2),
    ):
        if norm_first:
            x = x + part(functional.layer_norm(x, (embed_dim,), weight, bias, eps))
        else:
            x = functional.layer_norm(x + part(x), (embed_dim,), weight, bias, eps)
    return x


@composed("aten.nan_to_num.default")
def nan_to_num(
    self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    if self.is_complex():
        return torch.view_as_complex(torch.nan_to_num(torch.view_as_real(self), nan, posinf, neginf))
    return torch._refs.nan_to_num(self, nan, posinf, neginf)


@composed("aten.channel_shuffle.default")
def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    # PyTorch's own decomposition forgets the order in memory, which its kernel for the CPU keeps.
    found = decomposition_table[torch.ops.aten.channel_shuffle.default](self, groups)
    return found if self.is_cuda else found.contiguous(memory_format=suggest_memory_format(self))


@composed("aten.log_sigmoid_forward.default")
def log_sigmoid_forward(self: Tensor) -> Result:
    # PyTorch's kernel for the CPU returns rows of contiguous elements whatever it is given.
    return decomposition_table[torch.ops.aten.log_sigmoid_forward.default](self if self.is_cuda else self.contiguous())


@composed("aten._weight_norm_interface_backward.default")
def weight_norm_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:  # fmt: skip
    others = [d for d in range(saved_v.dim()) if d != dim]
    norms = saved_norms.to(saved_g.dtype)
    along = (grad_w * saved_v).sum(others, keepdim=True)
    return saved_g / norms * (grad_w - saved_v * (along / norms.square())), along / norms


def _allowed(mask: Tensor, mask_type: int | None) -> Tensor:
    """Returns which keys a query sees. Nonzero elements of the op's masks are hidden; masks are for pairs of positions
    (0), for the positions of each example (1), or both (2)."""
    seen = mask.to(torch.bool).logical_not()
    return seen[:, None, None, :] if mask_type == 1 else seen
