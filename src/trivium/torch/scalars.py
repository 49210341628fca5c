"""Tensors without dimensions that PyTorch takes for numbers. AOTAutograd replaces floats that a program computes with
by tensors, and lets Dynamo capture the program again if it cannot replace one, with that float as a constant. Tensors
of double precision without dimensions count as such floats, although they stay tensors; and a capture with a constant
in place of one leaves out the ops that change it, as those of an optimizer's step (in PyTorch 2.13,
`OutputGraph.remove_tensorify_specialized_graphargs`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch._dynamo.source import CallMethodItemSource
from torch._dynamo.symbolic_convert import TensorifyState
from torch._guards import TracingContext


@contextmanager
def keeping_tensors() -> Iterator[None]:
    """A context in which AOTAutograd does not ask for a capture with such tensors as constants."""
    context = TracingContext.try_get()
    environment = context.fake_mode.shape_env if context is not None and context.fake_mode is not None else None
    sources = environment.var_to_sources.items() if environment is not None else ()
    elements = {str(symbol) for symbol, found in sources if any(isinstance(x, CallMethodItemSource) for x in found)}
    constants = TensorifyState.force_specializations
    added = elements - constants
    constants |= added
    try:
        yield
    finally:
        constants -= added
