"""`flex_attention`: attention whose scores and mask are the user's functions of one score and its position. They are
traced for all positions at once; the compiler recognizes what remains as attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, fx
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from trivium.importers.emit import accumulation_type
from trivium.importers.pytorch.attention import repeated_heads, softmax_of
from trivium.importers.pytorch.context import Context, Operand, rule
from trivium.importers.pytorch.decompositions import decompositions
from trivium.importers.pytorch.types import DTYPES
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32

POSITIONS = 4
"""A score has a batch, a head, a query and a key."""


@rule("higher_order.flex_attention")
def flex_attention(
    ctx: Context,
    query: Value,
    key: Value,
    value: Value,
    score_mod: fx.GraphModule,
    block_mask: Sequence[Operand],
    scale: float,
    kernel_options: Mapping[str, Operand],
    score_mod_other_buffers: Sequence[Value] = (),
    mask_mod_other_buffers: Sequence[Value] = (),
) -> tuple[Value, ...]:
    """flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers,
    mask_mod_other_buffers) -> (result, logsumexp, highest score): the last two in units of log(2). The mask's function
    is what counts; its table of blocks says where kernels can save work."""
    mask_mod = block_mask[-1]
    assert isinstance(mask_mod, fx.GraphModule), "a block mask ends with the function it was made from"
    wide = accumulation_type(query.type.element_type)
    batch, heads, *_ = query.type.static_shape
    key, value = (_of_batch(ctx, repeated_heads(ctx, ctx.convert(x, wide), heads), batch) for x in (key, value))
    scores = ctx.scaled(ctx.matmul(ctx.convert(query, wide), ctx.transpose(key, [0, 1, 3, 2])), scale)
    changed = _for_all_positions(ctx, score_mod, scores, [scores], score_mod_other_buffers)
    seen = _for_all_positions(ctx, mask_mod, scores, [], mask_mod_other_buffers)
    scores = ctx.select(seen, ctx.convert(changed, wide), ctx.scalar(-math.inf, wide))
    weights, logsumexp = softmax_of(ctx, scores, masked=True)
    result, highest = ctx.matmul(weights, value), ctx.reduce(ops.Maximum, scores, (POSITIONS - 1,))
    found = result, *(ctx.scaled(x, 1 / math.log(2)) for x in (logsumexp(), highest))
    return tuple(ctx.convert(x, kind.element_type) for x, kind in zip(found, ctx.result_types, strict=True))


def _of_batch(ctx: Context, x: Value, batch: int) -> Value:
    """Repeats the keys or values of a batch of one."""
    return ctx.broadcast(x, (batch, *x.type.static_shape[1:]))


def _for_all_positions(
    ctx: Context, graph: fx.GraphModule, scores: Value, given: Sequence[Value], buffers: Sequence[Value]
) -> Value:
    """Returns the results of a graph for each position of `scores`: of the elements of `given` there, the position,
    and all of each of `buffers`."""
    positions = [ctx.iota((extent,), 0, I32) for extent in scores.type.static_shape]
    operands = [*given, *positions, *buffers]
    with FakeTensorMode(allow_non_fake_inputs=True):
        examples = [torch.empty(x.type.static_shape, dtype=DTYPES[x.type.element_type]) for x in operands]
        traced = make_fx(_vectorized(graph, len(given), len(buffers)), decompositions())(*examples)
    (found,) = ctx.inline(traced, *operands)
    assert isinstance(found, Value), "a score or a mask is a tensor"
    return found


def _vectorized(graph: Callable[..., Tensor], given: int, buffers: int) -> Callable[..., Tensor]:
    """Returns the graph for all positions at once, of which the last one is the innermost loop."""
    for position in reversed(range(POSITIONS)):
        mapped = (0 if other == position else None for other in range(POSITIONS))
        graph = torch.vmap(graph, in_dims=(*[0] * given, *mapped, *[None] * buffers))
    return graph
