"""The table of custom calls: what the targets of `stablehlo.custom_call` mean. One table for the project, its tests and
its users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trivium.ir.arrays import Datum
from trivium.ir.attributes import DenseElements
from trivium.ir.core import Value
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.types import TensorType, Type

if TYPE_CHECKING:
    from trivium.ir.ops.control import CustomCall


@dataclass(frozen=True)
class CustomCallDefinition:
    """What one target means. The first argument of each function is the op, with its attributes and types.

    `evaluate(op, *arrays)` returns the result's array, or a tuple with one array for each result. `infer(op)` returns
    the result types. `lower(op, ...)` is for compilers. `native(op)` returns an object for backends that share the
    host's memory: its `addresses` are those of a C function, with the signature defined in `trivium.backends.cpu.host`,
    and of that function's argument. `effects` says whether the call does more than compute its results.
    """

    target: str
    evaluate: Callable[..., Datum | Sequence[Datum]] | None = None
    infer: Callable[..., Sequence[Type]] | None = None
    lower: Callable[..., Any] | None = None
    native: Callable[..., Any] | None = None
    effects: bool = False


CUSTOM_CALLS: dict[str, CustomCallDefinition] = {}
"""Every known target."""


def register_custom_call(
    target: str,
    *,
    evaluate: Callable[..., Datum | Sequence[Datum]] | None = None,
    infer: Callable[..., Sequence[Type]] | None = None,
    lower: Callable[..., Any] | None = None,
    native: Callable[..., Any] | None = None,
    effects: bool = False,
    replace: bool = False,
) -> CustomCallDefinition:
    """Defines what a target means. A target can be registered only once, unless `replace` is set."""
    if target in CUSTOM_CALLS and not replace:
        raise Error(f"the custom call {target!r} is registered already; pass replace=True to give it a new meaning")
    definition = CustomCallDefinition(target, evaluate, infer, lower, native, effects)
    CUSTOM_CALLS[target] = definition
    return definition


def evaluate_custom_call(op: CustomCall, arrays: Sequence[Datum]) -> tuple[Datum, ...]:
    """Evaluates a custom call as the table defines it. Raises `UnsupportedOpError` if the target has no meaning
    there."""
    known = CUSTOM_CALLS.get(op.call_target_name)
    if known is None or known.evaluate is None:
        missing = Unsupported(f"custom_call @{op.call_target_name}", first=op.location.describe())
        raise UnsupportedOpError("custom calls that are not registered with a meaning", [missing])
    returned = known.evaluate(op, *arrays)
    return tuple(returned) if isinstance(returned, Sequence) else (returned,)


SHAPES_OF_RESULTS = "indices_of_shape_operands"
"""The attribute by which JAX says that some operands are not the target's: they are the shapes of the results."""


def states_shapes(op: CustomCall) -> bool:
    """Whether the last operands are the shapes of the results, one each."""
    indices = op.extra.get(SHAPES_OF_RESULTS)
    count = len(op.operands)
    return (
        isinstance(indices, DenseElements)
        and len(op.results) > 0
        and indices.array.tolist() == list(range(count - len(op.results), count))
    )


def with_known_results(op: CustomCall, operands: Sequence[Value], shapes: Sequence[np.ndarray]) -> CustomCall:
    """Returns a call with the target's operands alone, and with these shapes of results."""
    given = {name: value for name, value in op.attributes.items() if value is not None}
    if op.operand_layouts is not None:
        given["operand_layouts"] = op.operand_layouts[: len(operands)]
    kinds = cast(Sequence[TensorType], op.result_types)
    results = [kind.with_shape(shape.tolist()) for kind, shape in zip(kinds, shapes, strict=True)]
    extra = {name: value for name, value in op.extra.items() if name != SHAPES_OF_RESULTS}
    return type(op)(operands, **given, results=results, extra=extra, location=op.location)


def _identity(op: CustomCall, *arrays: Datum) -> tuple[Datum, ...]:
    return arrays


_TARGETS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "LayoutConstraint")

for _target in _TARGETS:
    # Annotations of where a value should live, and in which layout: on one device they change nothing.
    register_custom_call(_target, evaluate=_identity, infer=lambda op: op.operand_types)
