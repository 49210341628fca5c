"""Cells of recurrent networks on CUDA tensors: PyTorch has one op for what follows the products of a cell, and one for
its gradient. The workspace that these pass on has PyTorch's contents. PyTorch does not describe the ops of the GRU to
its tracer, so they are described here."""

from __future__ import annotations

from trivium.importers.emit import accumulation_type
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.rnn import parts
from trivium.importers.pytorch.rnn_gradient import slope, tanh_slope
from trivium.ir import ops
from trivium.ir.core import Value


@rule("aten._thnn_fused_lstm_cell.default")
def lstm_cell(
    ctx: Context,
    input_gates: Value,
    hidden_gates: Value,
    cx: Value,
    input_bias: Value | None = None,
    hidden_bias: Value | None = None,
) -> tuple[Value, ...]:
    """_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None,
    Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)"""
    total = ctx.plus(_biased(ctx, input_gates, input_bias), _biased(ctx, hidden_gates, hidden_bias))
    enter, forget, candidate, leave = parts(ctx, total, 4)
    enter, forget, leave = (ctx.add(ops.Logistic(gate)) for gate in (enter, forget, leave))
    candidate = ctx.add(ops.Tanh(candidate))
    memory = ctx.plus(ctx.times(forget, _wide(ctx, cx)), ctx.times(enter, candidate))
    shown = ctx.times(leave, ctx.add(ops.Tanh(memory)))
    return _narrow(ctx, shown, memory, ctx.concatenate([enter, forget, candidate, leave], 1))


@rule("aten._thnn_fused_lstm_cell_backward_impl.default")
def lstm_cell_backward(
    ctx: Context,
    grad_hy: Value | None,
    grad_cy: Value | None,
    cx: Value,
    cy: Value,
    workspace: Value,
    has_bias: bool,
) -> tuple[Value | None, ...]:
    """_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor workspace,
    bool has_bias) -> (Tensor, Tensor, Tensor)"""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    enter, forget, candidate, leave = parts(ctx, _wide(ctx, workspace), 4)
    shown = ctx.add(ops.Tanh(_wide(ctx, cy)))
    of_shown, of_memory = (
        _wide(ctx, grad) if grad is not None else ctx.full_like(shown, 0) for grad in (grad_hy, grad_cy)
    )
    of_memory = ctx.plus(of_memory, ctx.times(ctx.times(of_shown, leave), tanh_slope(ctx, shown)))
    of_gates = [
        ctx.times(ctx.times(of_memory, candidate), slope(ctx, enter)),
        ctx.times(ctx.times(of_memory, _wide(ctx, cx)), slope(ctx, forget)),
        ctx.times(ctx.times(of_memory, enter), tanh_slope(ctx, candidate)),
        ctx.times(ctx.times(of_shown, shown), slope(ctx, leave)),
    ]
    gates = ctx.concatenate(of_gates, 1)
    found = _narrow(ctx, gates, ctx.times(of_memory, forget))
    return *found, _of_bias(ctx, found[0]) if has_bias else None


@rule("aten._thnn_fused_gru_cell.default")
def gru_cell(
    ctx: Context,
    input_gates: Value,
    hidden_gates: Value,
    hx: Value,
    input_bias: Value | None = None,
    hidden_bias: Value | None = None,
) -> tuple[Value, ...]:
    """_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None,
    Tensor? hidden_bias=None) -> (Tensor, Tensor)"""
    entering = parts(ctx, _biased(ctx, input_gates, input_bias), 3)
    kept = parts(ctx, _biased(ctx, hidden_gates, hidden_bias), 3)
    reset, update = (ctx.add(ops.Logistic(ctx.plus(a, b))) for a, b in zip(entering[:2], kept[:2], strict=True))
    candidate = ctx.add(ops.Tanh(ctx.plus(entering[2], ctx.times(reset, kept[2]))))
    hidden = _wide(ctx, hx)
    following = ctx.plus(candidate, ctx.times(update, ctx.minus(hidden, candidate)))
    return _narrow(ctx, following, ctx.concatenate([reset, update, candidate, hidden, kept[2]], 1))


@rule("aten._thnn_fused_gru_cell_backward.default")
def gru_cell_backward(ctx: Context, grad_hy: Value, workspace: Value, has_bias: bool) -> tuple[Value | None, ...]:
    """_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias)
    -> (Tensor, Tensor, Tensor, Tensor, Tensor)"""
    reset, update, candidate, hidden, kept = parts(ctx, _wide(ctx, workspace), 5)
    grad = _wide(ctx, grad_hy)
    rest = ctx.minus(ctx.scalar_like(1, update), update)
    of_update = ctx.times(ctx.times(grad, ctx.minus(hidden, candidate)), slope(ctx, update))
    of_candidate = ctx.times(ctx.times(grad, rest), tanh_slope(ctx, candidate))
    of_reset = ctx.times(ctx.times(of_candidate, kept), slope(ctx, reset))
    entering = ctx.concatenate([of_reset, of_update, of_candidate], 1)
    earlier = ctx.concatenate([of_reset, of_update, ctx.times(of_candidate, reset)], 1)
    found = _narrow(ctx, entering, earlier, ctx.times(grad, update))
    return *found, *(_of_bias(ctx, gates) if has_bias else None for gates in found[:2])


def _wide(ctx: Context, x: Value) -> Value:
    """Returns numbers in the type in which PyTorch's kernels compute."""
    return ctx.convert(x, accumulation_type(x.type.element_type))


def _narrow(ctx: Context, *values: Value) -> tuple[Value, ...]:
    """Returns results of the node in its own types."""
    kinds = [kind for kind in ctx.results if kind is not None]
    return tuple(ctx.convert(x, kind.element_type) for x, kind in zip(values, kinds, strict=False))


def _biased(ctx: Context, gates: Value, bias: Value | None) -> Value:
    wide = _wide(ctx, gates)
    return wide if bias is None else ctx.plus(wide, _wide(ctx, bias))


def _of_bias(ctx: Context, gates: Value) -> Value:
    return ctx.convert(ctx.reduce(ops.Add, _wide(ctx, gates), (0,)), gates.type.element_type)
