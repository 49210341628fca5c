"""Calls of Python functions, and of foreign functions. A Python function stays in this process: the program refers to
it by a number, and runs only here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jax._src import callback, debugging  # JAX has no public name for the behaviour of callbacks when they are called

from trivium.importers.jax.context import Context, Ints, is_key, rule
from trivium.ir import ops
from trivium.ir.attributes import Attribute, DenseElements, Dictionary, Float, Integer
from trivium.ir.core import Value
from trivium.ir.custom_calls import register_custom_call
from trivium.ir.errors import Error
from trivium.ir.types import F64, I64, INDEX, FloatType, IntegerType, TensorType, element_type_of

TARGET = "trivium_jax_callback"
"""The target of calls of Python; its attribute `index` identifies the function."""

Function = Callable[..., Sequence[np.ndarray]]

CALLS: Mapping[str, Function] = {
    "pure_callback": callback.pure_callback_impl,
    "io_callback": callback.io_callback_impl,
    "debug_callback": debugging.debug_callback_p.impl,
    "debug_print": debugging.debug_print_p.impl,
}
"""JAX's own implementations, which take the arrays and the parameters of an equation."""

_known: dict[int, tuple[Function, dict[str, object]]] = {}
"""Functions with their parameters, by number. They are never released, because programs that refer to them may live as
long as the process."""

_numbers: dict[object, int] = {}
"""The number of each primitive with its parameters."""

_next = itertools.count()


@rule(*CALLS)
def call_python(ctx: Context, *values: Value, **parameters: object) -> Sequence[Value]:
    """pure_callback(*values, callback), io_callback, debug_callback, debug_print: a call of Python"""
    if any(map(is_key, ctx.operands)):
        ctx.unsupported("operands", "random keys", "their words, as jax.random.key_data returns them")
    # Of several threads that arrive here, one assigns the number.
    number = _numbers.setdefault((ctx.op, tuple(sorted(parameters.items()))), next(_next))
    _known.setdefault(number, (CALLS[ctx.op], parameters))
    return ctx.add(
        ops.CustomCall(
            list(values),
            call_target_name=TARGET,
            has_side_effect=ctx.op != "pure_callback",
            backend_config=Dictionary({"index": Integer(number, I64)}),
            api_version=ops.CustomCallApiVersion.API_VERSION_TYPED_FFI,
            results=ctx.result_types,
        )
    )


def _call(op: ops.CustomCall, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    assert isinstance(op.backend_config, Mapping)
    index = op.backend_config["index"]
    assert isinstance(index, Integer), index
    if index.value not in _known:
        raise Error(f"custom_call @{TARGET} has the index {index.value}, of a function that this process does not have")
    function, parameters = _known[index.value]
    found = map(np.asarray, function(*arrays, **parameters))
    return tuple(array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False) for array in found)


register_custom_call(TARGET, evaluate=_call)


@rule("ffi_call")
def ffi_call(
    ctx: Context, *values: Value, target_name: str, has_side_effect: bool, input_layouts: Sequence[Ints | None],
    output_layouts: Sequence[Ints | None], input_output_aliases: Sequence[tuple[int, int]],
    custom_call_api_version: int, legacy_backend_config: str | None, attributes: Sequence[tuple[str, object]],
) -> Sequence[Value]:  # fmt: skip
    """ffi_call(*values, target_name, attributes): what the table of custom calls knows by that name"""
    config = Dictionary({name: _attribute(ctx, name, value) for name, value in attributes})
    results = ctx.result_types
    many = len(results) > 1
    aliases = tuple(
        ops.OutputOperandAlias((output,) if many else (), operand, ()) for operand, output in input_output_aliases
    )
    return ctx.add(
        ops.CustomCall(
            list(values),
            call_target_name=target_name,
            has_side_effect=has_side_effect,
            backend_config=config if custom_call_api_version >= 4 else legacy_backend_config,
            api_version=ops.CustomCallApiVersion(custom_call_api_version),
            operand_layouts=_layouts([value.type for value in values], input_layouts),
            result_layouts=_layouts(results, output_layouts),
            output_operand_aliases=aliases,
            results=results,
        )
    )


def _layouts(types: Sequence[TensorType], given: Sequence[Ints | None]) -> tuple[DenseElements, ...]:
    """Returns, for each tensor, its dimensions from the fastest to the slowest."""
    orders = [np.arange(kind.rank)[::-1] if order is None else order for kind, order in zip(types, given, strict=True)]
    return tuple(DenseElements(np.array(order, np.int64), TensorType((len(order),), INDEX)) for order in orders)


def _attribute(ctx: Context, name: str, value: object) -> Attribute:
    """Returns an attribute of a foreign call. Python's numbers have 64 bits, as JAX writes them."""
    value = getattr(value, "val", value)  # JAX's hashable array
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return Integer(value, I64)
    if isinstance(value, float) and not isinstance(value, np.generic):
        return Float(value, F64)
    if isinstance(value, np.ndarray) and value.ndim:
        return DenseElements(value)
    if isinstance(value, np.ndarray | np.generic):
        kind = element_type_of(value.dtype)
        if value.dtype == bool:
            return bool(value)
        if isinstance(kind, IntegerType):
            return Integer(int(value), kind)
        if isinstance(kind, FloatType):
            return Float(float(value), kind)
    if isinstance(value, Mapping):
        return Dictionary({key: _attribute(ctx, key, entry) for key, entry in value.items()})
    ctx.unsupported(name, repr(value), "a number, text, an array of numbers, or a dictionary of them")
