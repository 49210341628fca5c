"""References: arrays that a function of JAX creates and changes in place (`jax.new_ref`). As JAX's own lowering does,
a program holds each of their values instead."""

from __future__ import annotations

from jax._src.core import InternalMutableArrayEffect  # JAX has no public names for the effects of references
from jax._src.interpreters.pxla import _discharge_internal_refs
from jax.extend import core


def without_references(closed: core.ClosedJaxpr) -> core.ClosedJaxpr:
    """Returns a jaxpr without the references that it creates itself. Those that are its arguments stay."""
    creates = any(isinstance(effect, InternalMutableArrayEffect) for effect in closed.effects)
    return _discharge_internal_refs(closed) if creates else closed
