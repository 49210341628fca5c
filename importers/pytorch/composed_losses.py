"""Losses that PyTorch computes in pieces, as one program that the compiler divides, and products of groups."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.fx.experimental.symbolic_shapes import statically_known_true
from torch.nn.modules import linear_cross_entropy  # noqa: F401, it registers the ops

from trivium.importers.pytorch.composition import composed

ATEN = torch.ops.aten
AVERAGED = ATEN.mse_loss_backward.default, ATEN.smooth_l1_loss_backward.default, ATEN.huber_loss_backward.default


def _of_any_count(gradient: Any) -> Any:
    """Returns PyTorch's decomposition of the gradient of a loss, which divides by the number of elements, for no
    elements as well."""

    def of_any_count(grad_output: Tensor, self: Tensor, *given: Any) -> Tensor:
        is_empty = statically_known_true(self.numel() == 0)
        return torch.zeros_like(self) if is_empty else gradient(grad_output, self, *given)

    return of_any_count


for op in AVERAGED:
    composed(str(op))(_of_any_count(decomposition_table[op]))


def _rows(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    kind: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the logarithms of probabilities, the targets' own, the targets, and the weights of rows."""
    logits = input.to(kind) @ linear_weight.to(kind).t()
    logits = logits if linear_bias is None else logits + linear_bias.to(kind)
    scores = logits.log_softmax(-1)
    counted = target != ignore_index
    place = torch.where(counted, target, 0)
    shares = counted.to(kind) if weight is None else torch.where(counted, weight.to(kind).index_select(0, place), 0)
    return scores, scores.gather(1, place.unsqueeze(1)).squeeze(1), place, shares


@composed("torch_nn._linear_cross_entropy_batch_chunked.default")
def linear_cross_entropy_chunked(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: torch.dtype,
    allow_retain_graph: bool,
    compute_input_grad: bool,
    compute_linear_weight_grad: bool,
    compute_linear_bias_grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if label_smoothing:
        return NotImplemented
    kind, wide = input.dtype, torch.promote_types(input.dtype, torch.float32)
    scores, chosen, place, shares = _rows(input, linear_weight, target, linear_bias, weight, ignore_index, wide)
    if reduction == "mean":
        shares = shares / shares.sum()
    loss = -(chosen * shares).sum()
    hit = torch.arange(scores.shape[1]) == place.unsqueeze(1)
    of_logits = (scores.exp() - hit.to(wide)) * shares.unsqueeze(1)
    of_input = of_logits @ linear_weight.to(wide) if compute_input_grad else input.new_empty(0, 0)
    of_weight = of_logits.t() @ input.to(wide) if compute_linear_weight_grad else input.new_empty(0, 0)
    of_bias = of_logits.sum(0) if compute_linear_bias_grad else input.new_empty(0)
    return loss.to(kind), of_input.to(kind), of_weight.to(kind), of_bias.to(kind)


@composed("torch_nn._linear_cross_entropy_batch_chunked_no_reduction.default")
def linear_cross_entropy_rows(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: torch.dtype,
) -> Tensor:
    wide = torch.promote_types(input.dtype, torch.float32)
    _, chosen, _, shares = _rows(input, linear_weight, target, linear_bias, weight, ignore_index, wide)
    return -(chosen * shares).to(input.dtype)


@composed("aten._grouped_mm.default")
def grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    kind = out_dtype or self.dtype
    if bias is not None or (offs is None and (self.dim() != 3 or mat2.dim() != 3)):
        return NotImplemented
    if offs is None:
        return (self @ mat2).to(kind)
    groups = offs.shape[0]

    def members(extent: int) -> Tensor:
        """Returns which positions are in which group."""
        places, ends = torch.arange(extent), offs.to(torch.int64)
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1]])
        return (places >= starts.unsqueeze(1)) & (places < ends.unsqueeze(1))

    if self.dim() == 2 and mat2.dim() == 3:  # rows of the left side are in groups
        held = members(self.shape[0]).unsqueeze(2)
        return sum(torch.where(held[g], self, 0) @ mat2[g] for g in range(groups)).to(kind)  # type: ignore[union-attr]
    if self.dim() == 3 and mat2.dim() == 2:  # columns of the right side
        held = members(mat2.shape[1]).unsqueeze(1)
        return sum(self[g] @ torch.where(held[g], mat2, 0) for g in range(groups)).to(kind)  # type: ignore[union-attr]
    if self.dim() == 2 and mat2.dim() == 2:  # what is summed
        held = members(self.shape[1])
        return torch.stack(
            [torch.where(held[g], self, 0) @ torch.where(held[g].unsqueeze(1), mat2, 0) for g in range(groups)]
        ).to(kind)
    return NotImplemented
