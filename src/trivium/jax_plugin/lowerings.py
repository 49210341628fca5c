"""Lowerings that JAX has for its own platforms only. For other platforms, it has no factorizations and no callbacks:
here they are lowered as for its CPU platform, to custom calls that Trivium serves."""

from __future__ import annotations

import contextlib
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src import buffer_callback, callback, config, core, custom_partitioning, mesh
from jax._src.export._export import Exported, call_exported_p
from jax._src.interpreters import mlir
from jax._src.lax import lax as lax_internal
from jax._src.lax import slicing
from jax._src.lax.control_flow import conditionals
from jaxlib.mlir import ir

if TYPE_CHECKING:
    from trivium.ir.ops import CustomCall

LIKE_CPU = ("geqrf", "householder_product", "lu", "ormqr", "svd", "tridiagonal_solve")
"""Primitives whose rule for the CPU is used although there is one for all platforms. For other primitives that have
both, the latter gives better code: that of Cholesky is an op of StableHLO, those of random numbers become one
kernel."""

SCATTERS = (
    lax.scatter_p, lax.scatter_add_p, lax.scatter_mul_p, lax.scatter_min_p, lax.scatter_max_p, slicing.scatter_sub_p
)  # fmt: skip

PYTHON_CALLBACKS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
BUFFER_CALLBACK = "xla_buffer_python_cpu_callback"
"""The targets with which JAX's rules for the CPU call Python, on arrays and on memory."""

Lowered = ir.Value | Sequence[ir.Value]
"""The form of a JAX value in MLIR: keys of random numbers are several values."""

Lowering = Callable[..., Sequence[Lowered]]

_callbacks: weakref.WeakValueDictionary[int, Callable[..., object]] = weakref.WeakValueDictionary()
"""Callbacks by their number in the program. JAX keeps them alive together with the program."""

_numbers = itertools.count()


def register(platform: str) -> None:
    """Registers all rules that the platform lacks. JAX has no public table of rules, nor of platforms with donation."""
    mlir._platform_specific_lowerings[platform] = _Rules(mlir._platform_specific_lowerings[platform])
    rules = mlir._platform_specific_lowerings["cpu"]
    for primitive, entry in [(primitive, entry) for primitive, entry in rules.items() if primitive.name in LIKE_CPU]:
        mlir.register_lowering(primitive, _like_cpu(entry.rule), platform=platform, inline=entry.inline)
    mlir.register_lowering(lax.dot_general_p, _dot_general, platform=platform)
    mlir.register_lowering(lax_internal.ragged_dot_general_p, _ragged_dot_general, platform=platform)
    for primitive in SCATTERS:
        mlir.register_lowering(primitive, _scatter(mlir._lowerings[primitive].rule), platform=platform)
    for primitive in (callback.pure_callback_p, callback.io_callback_p):
        rule = _like_cpu(mlir._lowerings[primitive].rule)
        mlir.register_lowering(primitive, rule, platform=platform, cacheable=False)
    for primitive, name in ((conditionals.platform_index_p, "platforms"), (conditionals.cond_p, "branches_platforms")):
        mlir.register_lowering(primitive, _with_branch(primitive, name, platform), platform=platform)
    buffers = _like_cpu(mlir._lowerings[buffer_callback.buffer_callback_p].rule)
    mlir.register_lowering(buffer_callback.buffer_callback_p, buffers, platform=platform, cacheable=False)
    mlir.register_lowering(call_exported_p, _call_exported(platform), platform=platform)
    mlir.register_lowering(custom_partitioning.custom_partitioning_p, _custom_partitioning, platform=platform)
    mlir._platforms_with_donation.append(platform)


def register_callbacks() -> None:
    """Registers the custom calls with which JAX's programs call Python."""
    from trivium.ir.custom_calls import register_custom_call

    for target in PYTHON_CALLBACKS:
        register_custom_call(target, evaluate=_call_python, replace=True)
    register_custom_call(BUFFER_CALLBACK, evaluate=_call_on_buffers, replace=True)


class _Rules(dict):
    """Returns the rules for this platform. A primitive that has rules only for certain platforms, such as a
    user-defined one, gets the rule for the CPU, whose foreign functions Trivium serves."""

    def __contains__(self, primitive: object) -> bool:
        others = mlir._platform_specific_lowerings["cpu"]
        return super().__contains__(primitive) or (primitive not in mlir._lowerings and primitive in others)

    def __missing__(self, primitive: core.Primitive) -> Any:
        entry = mlir._platform_specific_lowerings["cpu"][primitive]
        return mlir.LoweringRuleEntry(_like_cpu(entry.rule), entry.inline)


def _call_exported(platform: str) -> Lowering:
    """The rule for calls of exported functions: a function that was exported for the CPU, but not for this platform, is
    called as on the CPU."""
    rule = mlir._lowerings[call_exported_p].rule

    def lowering(context: mlir.LoweringRuleContext, *args: Lowered, exported: Exported) -> Sequence[Lowered]:
        if platform in exported.platforms or tuple(context.module_context.platforms) != (platform,):
            return rule(context, *args, exported=exported)
        return _like_cpu(rule)(context, *args, exported=exported)

    return lowering


def _custom_partitioning(
    context: mlir.LoweringRuleContext, *args: Lowered, call: core.ClosedJaxpr, **_: Any
) -> Sequence[Lowered]:
    """The function itself, on whole arrays: its partitions are for XLA's partitioner, which calls Python."""
    return mlir.lower_fun(core.jaxpr_as_fun(call), multiple_results=True)(context, *args)


def _like_cpu(rule: Lowering) -> Lowering:
    def lowering(context: mlir.LoweringRuleContext, *args: Lowered, **params: Any) -> Sequence[Lowered]:
        module = context.module_context
        numbered = module.replace(platforms=("cpu",), backend=None, host_callbacks=_Numbered(module))
        inner = context.replace(module_context=numbered)
        results = rule(inner, *args, **params)
        if inner.tokens_out is not None:
            context.set_tokens_out(inner.tokens_out)
        return results

    return lowering


def _dot_general(context: mlir.LoweringRuleContext, lhs: ir.Value, rhs: ir.Value, **params: Any) -> Sequence[Lowered]:
    """As for the CPU, but with operands of one type, as StableHLO requires: XLA accepts two types, where an algorithm
    or two kinds of 8-bit floats lead to them. The common type contains all their numbers."""
    left, right = cast(list[core.ShapedArray], context.avals_in)
    rule = _like_cpu(mlir._platform_specific_lowerings["cpu"][lax.dot_general_p].rule)
    narrow = all(aval.dtype.itemsize == 1 and jnp.issubdtype(aval.dtype, jnp.floating) for aval in (left, right))
    algorithm = isinstance(params["precision"], lax.DotAlgorithm | lax.DotAlgorithmPreset)
    if left.dtype == right.dtype or not (narrow or algorithm):
        return rule(context, lhs, rhs, **params)
    dtype = np.dtype(np.float32) if narrow else jnp.promote_types(left.dtype, right.dtype)
    wide = [aval.update(dtype=dtype) for aval in (left, right)]
    lhs, rhs = (mlir.convert_hlo(context, *args) for args in zip((lhs, rhs), (left, right), wide, strict=True))
    return rule(context.replace(avals_in=wide), lhs, rhs, **params)


def _ragged_dot_general(
    context: mlir.LoweringRuleContext,
    *args: ir.Value,
    ragged_dot_dimension_numbers: lax.RaggedDotDimensionNumbers,
    precision: object,
    **params: object,
) -> Sequence[Lowered]:
    """As for TPUs, where groups are multiplied with their own matrices only. Of batches, JAX's groups have no meaning,
    and algorithms are for whole products."""
    _, (batching, _) = ragged_dot_dimension_numbers.dot_dimension_numbers
    in_groups: Lowering = functools.partial(lax_internal._ragged_dot_general_lower, platform="cpu")
    whole: Lowering = mlir._lowerings[lax_internal.ragged_dot_general_p].rule
    is_whole = isinstance(precision, lax.DotAlgorithm | lax.DotAlgorithmPreset)
    is_whole = is_whole or not set(batching).isdisjoint(ragged_dot_dimension_numbers.lhs_ragged_dimensions)
    numbers = {"ragged_dot_dimension_numbers": ragged_dot_dimension_numbers, "precision": precision}
    return (whole if is_whole else in_groups)(context, *args, **numbers, **params)


def _scatter(rule: Lowering) -> Lowering:
    """The rule for scatters that drop windows which are not whole in the operand, as XLA does: StableHLO only drops
    their elements outside. JAX relies on it even where it promises that there are none, as in some derivatives."""

    def lowering(context: mlir.LoweringRuleContext, *args: Lowered, **params: Any) -> Sequence[Lowered]:
        operand, indices, updates = cast(list[core.ShapedArray], context.avals_in)
        numbers = params["dimension_numbers"]
        sizes = _windows(operand, updates, numbers)
        scattered = numbers.scatter_dims_to_operand_dims
        if params["mode"] == lax.GatherScatterMode.CLIP or all(core.definitely_equal(sizes[d], 1) for d in scattered):
            return rule(context, *args, **params)
        limits = [operand.shape[d] - sizes[d] for d in scattered]
        wide = np.dtype(np.int64 if _is_large(operand.shape) else np.int32)
        move = mlir.lower_fun(functools.partial(_outside_or_inside, limits=limits, dtype=wide), multiple_results=False)
        moved = core.ShapedArray(indices.shape, wide)
        (places,) = move(context.replace(avals_in=[indices], avals_out=[moved]), args[1])
        params["indices_are_sorted"] = False
        return rule(context.replace(avals_in=[operand, moved, updates]), args[0], places, args[2], **params)

    return lowering


def _windows(operand: core.ShapedArray, updates: core.ShapedArray, numbers: lax.ScatterDimensionNumbers) -> list[Any]:
    """Returns the extents of a window in the dimensions of the operand."""
    absent = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    windows = iter(updates.shape[d] for d in numbers.update_window_dims)
    return [1 if d in absent else next(windows) for d in range(operand.ndim)]


def _is_large(shape: Sequence[Any]) -> bool:
    return any(isinstance(extent, int) and extent >= 2**31 for extent in shape)


def _outside_or_inside(indices: jax.Array, *, limits: Sequence[Any], dtype: np.dtype) -> jax.Array:
    """Returns indices moved so that a window that is not whole in the operand is outside."""
    largest = jnp.iinfo(indices.dtype).max
    inside = [
        (indices[..., k] >= 0) & (indices[..., k] <= (min(limit, largest) if isinstance(limit, int) else limit))
        for k, limit in enumerate(limits)
    ]
    return jnp.where(functools.reduce(jnp.logical_and, inside)[..., None], indices.astype(dtype), jnp.iinfo(dtype).min)


def _with_branch(primitive: core.Primitive, name: str, platform: str) -> Lowering:
    """The rule of an op of `platform_dependent`, whose parameter `name` lists the platforms of each branch: if no
    branch is for this platform or for all others, the CPU's is used."""
    rule = mlir._lowerings[primitive].rule

    def lowering(context: mlir.LoweringRuleContext, *args: Lowered, **params: Any) -> Sequence[Lowered]:
        platforms = params.get(name)
        if platforms is not None and not any(names is None or platform in names for names in platforms):
            params[name] = tuple((*names, platform) if "cpu" in names else names for names in platforms)
        return rule(context, *args, **params)

    return lowering


class _Numbered(list):
    """Replaces the list of a module's callbacks, whose last index JAX writes into the program: here it is a number that
    no other callback of this process has."""

    def __init__(self, module: mlir.ModuleContext):
        super().__init__()
        self._module = module
        self._length = 0

    def append(self, function: Callable[..., object]) -> None:
        number = next(_numbers)
        _callbacks[number] = function
        self._module.add_keepalive(function)
        self._length = number + 1

    def __len__(self) -> int:
        return self._length


def _call_python(op: CustomCall, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    with _without_mesh():
        return tuple(_callback(op)(*arrays))


@contextlib.contextmanager
def _without_mesh() -> Iterator[None]:
    """Hides the caller's mesh: a callback may run in its thread, and computes on JAX's CPU platform."""
    # JAX 0.11 has moved the settings from one module to the other.
    place = mesh if hasattr(mesh, "device_context") else config
    without = {
        place.abstract_mesh_context_manager: mesh.empty_abstract_mesh,
        place.device_context: mesh.empty_concrete_mesh if place is mesh else None,
    }
    before = {setting: setting.swap_local(value) for setting, value in without.items()}
    try:
        yield
    finally:
        for setting, value in before.items():
            setting.set_local(value)


def _callback(op: CustomCall) -> Callable[..., object]:
    attributes = op.backend_config or op.extra["mhlo.backend_config"]
    return _callbacks[attributes["index"].value]


class _Context:
    """The information about a run that a callback on memory receives."""

    stage = buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        # XLA raises the same error.
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


class _Buffer(np.ndarray):
    """An array with the methods of JAX's buffers."""

    @property
    def writeable(self) -> bool:
        return self.flags.writeable


def _call_on_buffers(op: CustomCall, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Results are written in place; those that alias an operand start with its contents."""
    results = [np.empty(result.type.static_shape, result.type.dtype) for result in op.results]
    for alias in op.output_operand_aliases:
        results[alias.output_tuple_indices[0] if alias.output_tuple_indices else 0] = arrays[alias.operand_index]
    given = [array.view(_Buffer) for array in arrays]
    for array in given:
        array.flags.writeable = False
    _callback(op)(_Context(), *given, *(result.view(_Buffer) for result in results))
    return tuple(results)
