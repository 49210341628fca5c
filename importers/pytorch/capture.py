"""Ops that PyTorch keeps out of graphs, because it does not know the shapes of their results before they run, or does
not describe these to its tracer, although graphs for Trivium may have them. For other compilers nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor
from torch._dynamo.symbolic_convert import InstructionTranslator
from torch._ops import OpOverload
from torch._prims_common import suggest_memory_format
from torch._subclasses import FakeTensorMode
from torch._subclasses.fake_impls import op_implementations_dict, register_op_impl
from torch._subclasses.fake_tensor import DynamicOutputShapeException

BACKENDS: set[Callable[..., object]] = set()
"""The backends of `torch.compile` that convert graphs by our rules."""

_describes = ContextVar("describes", default=False)


@contextmanager
def describing() -> Iterator[None]:
    """While it is open, such ops are described for us."""
    token = _describes.set(True)
    try:
        yield
    finally:
        _describes.reset(token)


def is_ours() -> bool:
    """Whether what PyTorch traces at the moment is for us."""
    try:
        given = InstructionTranslator.current_tx().output.compiler_fn
    except AttributeError:  # nothing is traced by Dynamo
        return _describes.get()
    return _describes.get() or getattr(given, "compiler_fn", given) in BACKENDS


def _require_ours(op: OpOverload) -> None:
    if not is_ours():
        raise DynamicOutputShapeException(op)


@register_op_impl(torch.ops.aten._ctc_loss.Tensor)
def ctc_loss(
    mode: FakeTensorMode,
    op: OpOverload,
    log_probs: Tensor,
    targets: Tensor,
    *given: Tensor | Sequence[int] | int,
    **options: int,
) -> tuple[Tensor, Tensor]:
    """The loss of each sequence, and what the gradient needs: in eager for the longest sequence of labels, here for the
    longest one that there may be."""
    _require_ours(op)
    steps, count, _ = log_probs.shape
    with mode:
        return log_probs.new_empty(count), log_probs.new_empty(count, steps, 2 * targets.shape[-1] + 1)


@register_op_impl(torch.ops.aten._ctc_loss_backward.Tensor)
def ctc_loss_backward(mode: FakeTensorMode, op: OpOverload, grad: Tensor, log_probs: Tensor, *given: object) -> Tensor:
    _require_ours(op)
    with mode:
        return torch.empty_like(log_probs, memory_format=torch.contiguous_format)


def _described(op: OpOverload) -> Callable[[Callable[..., object]], None]:
    """Registers a description of an op that PyTorch does not describe, or not for all arguments that it takes."""

    def register(function: Callable[..., object]) -> None:
        def described(mode: FakeTensorMode, op: OpOverload, *given: object, **named: object) -> object:
            if not is_ours():
                return NotImplemented
            with mode:
                return function(*given, **named)

        register_op_impl(op)(described)

    return register


@_described(torch.ops.aten._thnn_fused_lstm_cell.default)
def _lstm_cell(gates: Tensor, _: Tensor, cx: Tensor, *biases: Tensor | None) -> tuple[Tensor, ...]:
    return cx.new_empty(cx.shape), cx.new_empty(cx.shape), gates.new_empty(gates.shape)


@_described(torch.ops.aten._thnn_fused_gru_cell.default)
def _gru_cell(gates: Tensor, _: Tensor, hx: Tensor, *biases: Tensor | None) -> tuple[Tensor, ...]:
    return hx.new_empty(hx.shape), hx.new_empty(hx.shape[0], 5 * hx.shape[1])


@_described(torch.ops.aten._thnn_fused_gru_cell_backward.default)
def _gru_cell_backward(grad_hy: Tensor, workspace: Tensor, has_bias: bool) -> tuple[Tensor | None, ...]:
    width = 3 * grad_hy.shape[1]
    of_gates = [grad_hy.new_empty(grad_hy.shape[0], width) for _ in range(2)]
    return *of_gates, grad_hy.new_empty(grad_hy.shape), *(grad_hy.new_empty(width) if has_bias else None for _ in "ab")


@_described(torch.ops.aten.mkldnn_rnn_layer_backward.default)
def _rnn_layer_backward(*given: object) -> tuple[Tensor, ...]:
    """PyTorch's kernel returns gradients of f32, and those of a GRU's biases together."""
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in given[:7])  # type: ignore[arg-type]


@_described(torch.ops.aten.roll.default)
def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """PyTorch describes results in another order in memory than that of its kernels, which join two parts."""
    if x.is_cuda or not x.numel() or not dims:
        return torch.empty_like(x, memory_format=None if x.is_cuda or not x.numel() else torch.contiguous_format)
    return x.new_empty(x.shape).contiguous(memory_format=suggest_memory_format(x))


@_described(torch.ops.aten.floor_divide.default)
def _floor_divide(x: Tensor, other: Tensor) -> Tensor:
    """PyTorch describes quotients step by step, and then in another order in memory; sums have theirs."""
    return torch.add(x, other)


@_described(torch.ops.aten.div.Tensor_mode)
def _rounded_quotient(x: Tensor, other: Tensor, *, rounding_mode: str | None = None) -> Tensor:
    return torch.true_divide(x, other) if rounding_mode is None else torch.add(x, other)


_UNIQUE = torch.ops.aten.unique_consecutive.default
_described_from_the_front = op_implementations_dict[_UNIQUE]


def _unique_consecutive(
    mode: FakeTensorMode,
    op: OpOverload,
    x: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> object:
    """PyTorch describes the result wrongly if the dimension counts from the end."""
    if dim is not None and dim < 0 and is_ours():
        dim %= max(x.dim(), 1)
    return _described_from_the_front(mode, op, x, return_inverse, return_counts, dim)


op_implementations_dict[_UNIQUE] = _unique_consecutive
