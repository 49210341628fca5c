"""Foreign functions that JAX's users register for this platform (`jax.ffi.register_ffi_target`), and types of the
objects that handlers keep (`jax.ffi.register_ffi_type`). JAX passes them on, including those registered earlier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlib import xla_client

XLA = xla_client._xla  # pyright: ignore[reportPrivateImportUsage]

TYPED = 1
"""JAX's number of the interface that handlers have here; the older one has no description of its arguments."""

NO_TRAITS = xla_client.CustomCallTargetTraits.DEFAULT

with_states: dict[str, Mapping[str, object]] = {}
"""The capsules of functions for the CPU whose calls have a state: JAX does not tell later of the stage that sets it."""


def register(platform: str) -> None:
    """Receives what is registered for the platform; and for the CPU, whose handlers run here too, what JAX does not
    tell when a program calls them: that calls have states, and how these are deleted."""
    xla_client.register_custom_type_handler("cpu", register_type)
    xla_client.register_custom_type_handler(platform, register_type)
    xla_client.register_custom_call_handler("cpu", _register_for_cpu)
    xla_client.register_custom_call_handler(platform, register_target)


def _register_for_cpu(name: str, fn: Any, platform: str, /, api_version: int = 0, traits: Any = NO_TRAITS) -> None:
    XLA.register_custom_call_target(name, fn, platform, api_version, traits)
    if isinstance(fn, Mapping) and "instantiate" in fn:
        with_states[name] = fn


def register_target(name: str, fn: Any, platform: str, /, api_version: int = 0, traits: Any = NO_TRAITS) -> None:
    """Called by JAX with a capsule, or with one for each stage."""
    from trivium.backends.plugin.foreign import handlers_of
    from trivium.backends.plugin.foreign import register as register_handlers
    from trivium.ir.errors import ExecutionError

    if api_version != TYPED:
        raise ExecutionError(f"foreign function {name} has api_version {api_version}, expected {TYPED}")
    register_handlers(name, handlers_of(fn if isinstance(fn, Mapping) else {"execute": fn}))


def register_type(name: str, registration: Any) -> None:
    """Called by JAX with capsules. XLA gives the number, so that it is the same on the CPU platform, whose handlers run
    here too."""
    from trivium.backends.plugin.foreign import address_in
    from trivium.backends.plugin.foreign import register_type as register_own

    XLA.register_custom_type(name, registration)
    info = registration.get("type_info")
    register_own(name, address_in(registration["type_id"]), None if info is None else address_in(info))
