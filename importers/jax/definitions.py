"""Primitives that JAX itself defines in terms of others: where JAX would lower one by tracing a function, the importer
traces the same function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import jax
from jax._src.interpreters import mlir  # JAX has no public table of the lowerings of primitives
from jax.extend import core

from trivium.importers.jax.context import Context
from trivium.ir.core import Value

_BY_TRACING = "lower_fun.<locals>.f_lowered"


@dataclass(frozen=True)
class Definition:
    """A rule that traces the function that defines a primitive."""

    function: Callable[..., object]

    def __call__(self, ctx: Context, *values: Value, **parameters: object) -> Sequence[Value]:
        examples = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.operands]
        return ctx.inline(jax.make_jaxpr(partial(self.function, **parameters))(*examples), *values)


@cache
def definition_of(primitive: core.Primitive) -> Definition | None:
    """Returns the function by which JAX defines a primitive on every platform, or else on CPUs; `None` if there is
    none."""
    for table in (mlir._lowerings, mlir._platform_specific_lowerings["cpu"]):
        entry = table.get(primitive)
        lowering = getattr(entry, "rule", entry)
        if inspect.isfunction(lowering) and lowering.__qualname__ == _BY_TRACING:
            return Definition(inspect.getclosurevars(lowering).nonlocals["fun"])
    return None
