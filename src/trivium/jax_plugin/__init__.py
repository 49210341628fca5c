"""Trivium as a device of JAX: `JAX_PLATFORMS=trivium python train.py`. JAX finds this module by its entry point and
calls `initialize` when it first needs a device."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trivium

if TYPE_CHECKING:
    from trivium.backends.cpu.client import CpuLoadedExecutable

PLATFORM = "trivium"

PRIORITY = -1
"""Lower than those of JAX's own platforms, so that installing Trivium does not change the default platform."""


def initialize() -> None:
    """Registers the platform. Only the small native library is loaded for this, and nothing is compiled."""
    import jax

    # JAX has no public function that registers a plugin by its table, or that declares it as not experimental.
    from jax._src import xla_bridge
    from jax._src.lib import _profiler

    from trivium.backends import plugin
    from trivium.jax_plugin import compilation_cache, foreign, lowerings

    xla_bridge._nonexperimental_plugins.add(PLATFORM)
    table = _capsule(plugin.api())
    xla_bridge.register_plugin(PLATFORM, priority=PRIORITY, c_api=table, options=_client_options)
    _profiler.register_plugin_profiler(table)
    lowerings.register(PLATFORM)
    plugin.preparations.append(lowerings.register_callbacks)
    compilation_cache.allow(PLATFORM)
    foreign.register(PLATFORM)
    plugin.foreign_functions.append(registered_with_jax)
    plugin.sharding_inspectors.append(report_sharding)
    plugin.observers.append(tell_compiled)
    if jax.config.jax_platforms == PLATFORM:
        # Callbacks get their arguments as arrays of the CPU platform, which must be started too: while JAX reads its
        # list of platforms, this platform's name represents both.
        xla_bridge._alias_to_platforms[PLATFORM] = [PLATFORM, "cpu"]


def _client_options() -> dict[str, str]:
    """Called when the device is started."""
    from jax._src import xla_bridge

    xla_bridge._alias_to_platforms.pop(PLATFORM, None)
    return {"platform_version": f"Trivium {trivium.__version__}"}


def registered_with_jax(target: str) -> Mapping[str, object] | None:
    """Returns the capsules of a function that was registered for JAX's CPU platform, by JAX itself or through
    `jax.ffi`."""
    from trivium.jax_plugin.foreign import XLA, with_states

    found = with_states.get(target) or XLA.custom_call_targets("Host").get(target)
    return found if isinstance(found, Mapping) else None


def tell_compiled(executable: CpuLoadedExecutable) -> None:
    """Tells `trivium.explain` of a program; what that takes is imported when the first one has been compiled."""
    from trivium.jax_plugin.explaining import tell_compiled

    tell_compiled(executable)


def report_sharding(asker: str, sharding: str) -> None:
    """Answers `jax.debug.inspect_array_sharding`, which passes the addresses of a C function and of a Python function
    as text. JAX keeps both alive together with the program."""
    from jaxlib import xla_client

    address = asker.encode(errors="surrogateescape")[ctypes.sizeof(ctypes.c_void_p) :]
    callback = ctypes.cast(int.from_bytes(address, sys.byteorder), ctypes.py_object).value
    callback(xla_client.HloSharding.from_string(sharding))


def _capsule(address: int) -> object:
    """Returns the table in JAX's form: a capsule of that name, which need not be freed."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, b"pjrt_c_api", None)
