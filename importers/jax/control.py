"""Calls, branches and loops. Calls are converted in place; regions can use the values around them."""

from __future__ import annotations

from collections.abc import Sequence

from jax import export
from jax.extend import core

from trivium.importers import loops
from trivium.importers.jax.context import Context, Jaxpr, rule, type_of
from trivium.importers.programs import inline_program, platform_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I32, TensorType


@rule("jit", "pjit", "remat", "remat2", "checkpoint", "trivium_call")
def call(ctx: Context, *values: Value, jaxpr: Jaxpr) -> Sequence[Value]:
    """jit(jaxpr)(*values), and the calls that mean something to autodiff only"""
    return ctx.inline(jaxpr, *values)


@rule("core_call", "call", "closed_call", "core_closed_call", "custom_jvp_call", "custom_vjp_call")
def call_of(ctx: Context, *values: Value, call_jaxpr: Jaxpr) -> Sequence[Value]:
    """custom_jvp_call(call_jaxpr)(*values): the function itself; its derivative was taken before, if at all"""
    return ctx.inline(call_jaxpr, *values)


@rule("custom_partitioning")
def custom_partitioning(ctx: Context, *values: Value, call: core.ClosedJaxpr) -> Sequence[Value]:
    """custom_partitioning(call)(*values): a program runs on one device"""
    return ctx.inline(call, *values)


@rule("composite")
def composite(
    ctx: Context, *values: Value, jaxpr: core.ClosedJaxpr, version: int, attributes: object
) -> Sequence[Value]:
    """composite(jaxpr, name, version, attributes)(*values): the jaxpr that the composite stands for"""
    return ctx.inline(jaxpr, *values)


@rule("call_exported")
def call_exported(ctx: Context, *values: Value, exported: export.Exported) -> Sequence[Value]:
    """call_exported(*values, exported): the program of an exported function"""
    kept = [values[i] for i in exported.module_kept_var_idx]
    platform = platform_of(ctx, exported.platforms, "cpu")
    return inline_program(ctx, exported.mlir_module_serialized, [*platform, *kept])


@rule("platform_index")
def platform_index(ctx: Context, platforms: Sequence[Sequence[str] | None]) -> Value:
    """platform_index(platforms): the branch of CPUs, or the one for all others"""
    fitting = [i for i, names in enumerate(platforms) if names is not None and "cpu" in names]
    fitting += [i for i, names in enumerate(platforms) if names is None]
    if not fitting:
        ctx.unsupported("platforms", platforms, "a branch for CPUs, or for all others")
    return ctx.scalar(fitting[0], I32)


@rule("cond")
def cond(ctx: Context, index: Value, *values: Value, branches: Sequence[core.ClosedJaxpr]) -> Sequence[Value]:
    """cond(index, *operands, branches): an index out of range is clamped"""
    last = len(branches) - 1
    kind = index.type.element_type
    clamped = ctx.add(ops.Clamp(ctx.scalar(0, kind), index, ctx.scalar(last, kind)))
    regions = [ctx.region([], lambda emit, jaxpr=jaxpr: emit.inline(jaxpr, *values)) for jaxpr in branches]
    return ctx.add(ops.Case(ctx.convert(clamped, I32), regions))


@rule("while")
def while_loop(
    ctx: Context,
    *values: Value,
    cond_jaxpr: core.ClosedJaxpr,
    body_jaxpr: core.ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> Sequence[Value]:
    """while(cond_consts, body_consts, *state)"""
    cond_constants = values[:cond_nconsts]
    body_constants = values[cond_nconsts : cond_nconsts + body_nconsts]
    state = list(values[cond_nconsts + body_nconsts :])
    types = [value.type for value in state]

    if cond_jaxpr.out_avals[0].shape:
        return _batched_while(ctx, cond_jaxpr, body_jaxpr, cond_constants, body_constants, state)
    condition = ctx.region(types, lambda emit, *carried: emit.inline(cond_jaxpr, *cond_constants, *carried))
    body = ctx.region(types, lambda emit, *carried: emit.inline(body_jaxpr, *body_constants, *carried))
    return ctx.add(ops.While(state, condition, body))


def _batched_while(
    ctx: Context,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    cond_constants: Sequence[Value],
    body_constants: Sequence[Value],
    state: list[Value],
) -> Sequence[Value]:
    """Emits a loop whose predicate has dimensions: elements that have finished keep their state while others
    continue."""
    types = [value.type for value in state]

    def condition(emit: Context, *carried: Value) -> Value:
        (pred,) = emit.inline(cond_jaxpr, *cond_constants, *carried)
        return emit.reduce(ops.Or, pred, range(pred.type.rank))

    def body(emit: Context, *carried: Value) -> list[Value]:
        (pred,) = emit.inline(cond_jaxpr, *cond_constants, *carried)
        updated = emit.inline(body_jaxpr, *body_constants, *carried)
        chosen = []
        for old, new in zip(carried, updated, strict=True):
            going = emit.broadcast_in_dim(pred, new.type.static_shape, range(pred.type.rank))
            chosen.append(emit.select(going, new, old))
        return chosen

    return ctx.add(ops.While(state, ctx.region(types, condition), ctx.region(types, body)))


@rule("scan")
def scan(
    ctx: Context,
    *values: Value,
    jaxpr: core.ClosedJaxpr,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
) -> Sequence[Value]:
    """scan(consts, carry, xs): a loop that reads a slice of each of `xs`, and writes one of each result, per step"""
    constants, carry = values[:num_consts], values[num_consts : num_consts + num_carry]
    rows = values[num_consts + num_carry :]
    made = (type_of(aval) for aval in jaxpr.out_avals[num_carry:])
    collected = [TensorType((length, *kind.static_shape), kind.element_type) for kind in made]

    def step(emit: Context, state: Sequence[Value], taken: Sequence[Value]) -> Sequence[Value]:
        return emit.inline(jaxpr, *constants, *state, *taken)

    return loops.scan(ctx, step, carry, rows, collected, length, reverse, unroll)
