"""How a rule is called: the parameters in its signature, and the options of a node that it takes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import Parameter
from typing import Any, TypeVar

from trivium.importers.context import Context
from trivium.ir.errors import UnsupportedOpError

Option = TypeVar("Option")


@dataclass(frozen=True)
class Signature:
    """The parameters of a rule after the context: a number of operands by position, and options by name; all options,
    if it is open."""

    count: float
    names: frozenset[str]
    is_open: bool
    python: inspect.Signature


@cache
def signature_of(rule: Callable[..., Any]) -> Signature:
    """Returns the signature of a rule: a function that is never released, since the cache keeps it."""
    signature = inspect.signature(rule)
    _, *parameters = signature.parameters.values()
    positional = [parameter for parameter in parameters if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD]
    kinds = {parameter.kind for parameter in parameters}
    named = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    names = frozenset(parameter.name for parameter in parameters if parameter.kind in named)
    count = math.inf if Parameter.VAR_POSITIONAL in kinds else len(positional)
    return Signature(count, names, Parameter.VAR_KEYWORD in kinds, signature)


def options_of(
    ctx: Context[Any, Any], rule: Callable[..., Any], operands: int, given: Mapping[str, Option],
    without_meaning: Container[str] = (),
) -> dict[str, Option]:  # fmt: skip
    """Returns the options with which to call a node's rule for `operands` operands. An option that the rule does not
    take must be `None`, or one without meaning."""
    signature = signature_of(rule)
    if signature.is_open:
        return dict(given)
    for name, value in given.items():
        if name not in signature.names and name not in without_meaning and value is not None:
            ctx.unsupported(name, value, "none: no rule supports it")
    options = {name: value for name, value in given.items() if name in signature.names}
    try:
        signature.python.bind(ctx, *[None] * operands, **options)
    except TypeError as error:
        raise UnsupportedOpError(f"{ctx.op}: {error}") from None
    return options
