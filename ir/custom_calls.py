"""The table of custom calls: what the targets of `stablehlo.custom_call` mean. One table for the project, its tests and
its users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trivium.ir.errors import Error, Unsupported, UnsupportedOpError


@dataclass(frozen=True)
class CustomCallDefinition:
    """What one target means. Each function gets the op first, with its attributes and types.

    `evaluate(op, *arrays)` gives the result's array, or a tuple of one for each result. `infer(op)` gives the result
    types. `lower(op, ...)` is for compilers. `native(op)` gives an object for backends whose memory is the host's: its
    `addresses` are those of a C function, as `trivium.backends.cpu.host` has them, and of what that is given.
    `effects` tells whether it does more than compute its results.
    """

    target: str
    evaluate: Callable[..., Any] | None = None
    infer: Callable[..., Any] | None = None
    lower: Callable[..., Any] | None = None
    native: Callable[..., Any] | None = None
    effects: bool = False


CUSTOM_CALLS: dict[str, CustomCallDefinition] = {}
"""Every known target."""


def register_custom_call(
    target: str,
    *,
    evaluate: Callable[..., Any] | None = None,
    infer: Callable[..., Any] | None = None,
    lower: Callable[..., Any] | None = None,
    native: Callable[..., Any] | None = None,
    effects: bool = False,
    replace: bool = False,
) -> CustomCallDefinition:
    """Tells what a target means. A target is registered once, unless `replace` says that the new meaning holds."""
    if target in CUSTOM_CALLS and not replace:
        raise Error(f"the custom call {target!r} is registered already; pass replace=True to give it a new meaning")
    definition = CustomCallDefinition(target, evaluate, infer, lower, native, effects)
    CUSTOM_CALLS[target] = definition
    return definition


def evaluate_custom_call(op: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Runs what the table says of a custom call; an `UnsupportedOpError` names the target if it says nothing."""
    known = CUSTOM_CALLS.get(op.call_target_name)
    if known is None or known.evaluate is None:
        missing = Unsupported(f"custom_call @{op.call_target_name}", first=op.location.describe())
        raise UnsupportedOpError("custom calls that are not registered with a meaning", [missing])
    returned = known.evaluate(op, *arrays)
    return tuple(returned) if isinstance(returned, tuple | list) else (returned,)


def _identity(op: Any, *arrays: Any) -> tuple[Any, ...]:
    return arrays


for _target in ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"):
    # Annotations of where a value shall live: on one device they change nothing.
    register_custom_call(_target, evaluate=_identity, infer=lambda op: op.operand_types)
