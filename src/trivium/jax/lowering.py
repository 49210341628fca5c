"""How JAX runs the primitive of `trivium.jit`. Where arrays are in the host's memory, on JAX's CPU platform and on
Trivium's own, XLA's program has one custom call, which runs the compiled program on XLA's buffers without Python. On
other platforms, it has a callback, which gets copies of the arrays.

This is for programs of `trivium.jit` alone, and their derivatives. Inside of another function of `jax.jit`, and in what
`jax.export` writes, the jaxpr is inlined."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import jax
import numpy as np
from jax._src import effects  # JAX has no public names for effects and their tokens
from jax._src.core import abstract_token
from jax.core import ShapedArray
from jax.experimental import io_callback
from jax.extend import core
from jax.interpreters import mlir
from jaxlib.mlir import ir

import trivium
from trivium import journal
from trivium.backends.plugin.foreign import register_foreign_functions
from trivium.backends.plugin.foreign_program import HANDLER, STATE, ForeignProgram, handlers, state_type
from trivium.executable import Executable
from trivium.importers.jax import import_jaxpr
from trivium.importers.jax.context import array_of, is_key
from trivium.jax.call import Options, trivium_call
from trivium.jax_plugin import PLATFORM, registered_with_jax
from trivium.jax_plugin.explaining import TRACED
from trivium.jax_plugin.lowerings import Lowered

ON_THE_HOST = ("cpu", PLATFORM)
"""The platforms whose arrays are in the host's memory."""

FLOAT4 = "float4_e2m1fn"
IN_BYTES = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8", FLOAT4: "uint8"}
"""Types with several elements in a byte in XLA's buffers, and with one in ours."""

_executables: WeakKeyDictionary[core.ClosedJaxpr, dict[Options, Executable]] = WeakKeyDictionary()


def register() -> None:
    """Registers the rules of the primitive, and its handler with XLA."""
    kinds = dict(zip(("type_id", "type_info"), map(jax.ffi.pycapsule, state_type()), strict=True))
    jax.ffi.register_ffi_type(STATE, kinds, platform="cpu")  # pyright: ignore[reportArgumentType]
    stages = {stage: jax.ffi.pycapsule(handler) for stage, handler in handlers().items()}
    jax.ffi.register_ffi_target(HANDLER, stages, platform="cpu")
    # Each program has its own address in the custom call: JAX must not take the code of one for another.
    mlir.register_lowering(trivium_call, _lower, cacheable=False)
    trivium_call.def_impl(_callback)  # outside of `jax.jit`, as where that is disabled


def _lower(
    context: mlir.LoweringRuleContext, *operands: ir.Value, jaxpr: core.ClosedJaxpr, options: Options
) -> Sequence[Lowered]:
    module = context.module_context
    if not _is_in_main() or module.lowering_parameters.for_export:
        rule = mlir.lower_fun(core.jaxpr_as_fun(jaxpr), multiple_results=True)
    elif set(module.platforms) <= set(ON_THE_HOST):
        return _custom_call(context, *operands, jaxpr=jaxpr, options=options)
    else:
        rule = mlir.lower_fun(functools.partial(_callback, jaxpr=jaxpr, options=options), multiple_results=True)
    return rule(context, *operands)


def _is_in_main() -> bool:
    """Whether the module is for the primitive: in other modules, what `jax.jit` has traced is a function of its own."""
    point: ir.InsertionPoint = ir.InsertionPoint.current  # pyright: ignore[reportAssignmentType]
    owner = point.block.owner.operation
    return owner.name == "func.func" and ir.StringAttr(owner.attributes["sym_name"]).value == "main"


def _custom_call(
    context: mlir.LoweringRuleContext, *operands: ir.Value, jaxpr: core.ClosedJaxpr, options: Options
) -> Sequence[Lowered]:
    program = ForeignProgram(_compiled(jaxpr, options).loaded)
    # Until XLA compiles the call, whose state keeps it alive then.
    context.module_context.add_keepalive(program)
    if jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        # JAX does not put what has callbacks into its persistent cache, where no other process could use it.
        context.module_context.add_host_callback(program)
    ordered = effects.ordered_effects.filter_in(jaxpr.effects)
    tokens = [context.tokens_in.get(effect) for effect in ordered]
    # Trivium's own platform keeps the order of calls with effects anyway.
    given = [] if PLATFORM in context.module_context.platforms else tokens
    arguments, results = list(map(array_of, context.avals_in)), list(map(array_of, context.avals_out))
    inputs, outputs = list(map(_in_bytes, arguments)), list(map(_in_bytes, results))
    inner = context.replace(
        avals_in=[*(abstract_token,) * len(given), *inputs], avals_out=[*(abstract_token,) * len(given), *outputs]
    )
    lower = jax.ffi.ffi_lowering(HANDLER, has_side_effect=bool(jaxpr.effects))
    values = lower(inner, *given, *_moved(context, operands, arguments, inputs), **program.attributes)
    if ordered:
        tokens = values[: len(given)] or tokens
        context.set_tokens_out(mlir.TokenSet(dict(zip(ordered, tokens, strict=True))))
    return _moved(context, values[len(given) :], outputs, results)


def _in_bytes(aval: ShapedArray) -> ShapedArray:
    """Returns the type in which a program of ours holds an array: XLA packs elements below 8 bits."""
    return aval.update(dtype=np.dtype(IN_BYTES[aval.dtype.name])) if aval.dtype.name in IN_BYTES else aval


def _moved(
    context: mlir.LoweringRuleContext,
    values: Sequence[Lowered],
    before: Sequence[ShapedArray],
    after: Sequence[ShapedArray],
) -> list[Lowered]:
    """Converts those values whose type changes between packed elements and bytes."""
    moved = []
    for value, old, new in zip(values, before, after, strict=True):
        if old.dtype != new.dtype:
            move = mlir.lower_fun(functools.partial(_converted, dtype=new.dtype), multiple_results=False)
            (value,) = move(context.replace(avals_in=[old], avals_out=[new]), value)
        moved.append(value)
    return moved


def _converted(x: jax.Array, dtype: np.dtype) -> jax.Array:
    if x.dtype.name == FLOAT4:
        return jax.lax.bitcast_convert_type(x, jax.numpy.uint4).astype(dtype)
    if dtype.name == FLOAT4:
        return jax.lax.bitcast_convert_type(x.astype(jax.numpy.uint4), dtype)
    return x.astype(dtype)


def _callback(*arrays: jax.Array, jaxpr: core.ClosedJaxpr, options: Options) -> list[jax.Array]:
    """Runs the program on copies of the arrays, from Python."""
    run = _compiled(jaxpr, options)
    kinds = tuple(jax.ShapeDtypeStruct(slot.type.static_shape, slot.type.dtype) for slot in run.signature.results)
    call = io_callback if jaxpr.effects else jax.pure_callback
    words = [jax.random.key_data(array) if is_key(array) else array for array in arrays]
    results = zip(call(run, kinds, *words), jaxpr.out_avals, strict=True)
    return [jax.random.wrap_key_data(x, impl=aval.dtype._impl) if is_key(aval) else x for x, aval in results]


def _compiled(jaxpr: core.ClosedJaxpr, options: Options) -> Executable:
    compiled = _executables.setdefault(jaxpr, {})
    if options not in compiled:
        module = import_jaxpr(jaxpr)
        register_foreign_functions(module, [registered_with_jax])
        run = trivium.compile(module, **options._asdict())
        about = jaxpr.jaxpr.debug_info.func_src_info or "a function"
        given = ", ".join(aval.str_short() for aval in jaxpr.in_avals) or "no arguments"
        journal.compiled(about, about, given, run.loaded, TRACED)
        compiled[options] = run
    return compiled[options]
