"""Trivium as a device of JAX: `JAX_PLATFORMS=trivium python train.py`, or `trivium_gpu`. JAX finds this module by its
entry point and calls `initialize` when it first needs a device."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import trivium

if TYPE_CHECKING:
    from trivium.backends.plugin.compiler import Compiled

PLATFORM, GPU = "trivium", "trivium_gpu"

PRIORITY = -1
"""Lower than those of JAX's own platforms, so that installing Trivium does not change the default platform."""

GPU_PLATFORMS = ("cuda", "hip", "opencl")
"""Those of `trivium.backends` whose devices JAX may have, the preferred one first."""

CHOICE = "TRIVIUM_GPU"
"""The variable of the environment that names one of them."""


def initialize() -> None:
    """Registers the platforms: this machine's processors, and GPUs, if there seem to be any or if they are asked for.
    Only the small native library is loaded for this, and nothing is compiled."""
    import jax
    from jax._src.lib import _profiler

    from trivium.backends import plugin
    from trivium.jax_plugin import compiler_options, dlpack, foreign, lowerings

    table = _capsule(plugin.api())
    _profiler.register_plugin_profiler(table)
    _register(PLATFORM, table)
    asked = GPU in (jax.config.jax_platforms or "").split(",") or CHOICE in os.environ
    if asked or _has_cuda():
        _register(GPU, table)
        dlpack.register_gpu(GPU)
    plugin.preparations.append(lowerings.register_callbacks)
    foreign.register(PLATFORM)
    dlpack.register(PLATFORM)
    plugin.foreign_functions.append(registered_with_jax)
    plugin.option_checks.append(compiler_options.check)
    plugin.sharding_inspectors.append(report_sharding)
    plugin.observers.append(tell_compiled)


def _register(platform: str, table: object) -> None:
    import jax

    # JAX has no public function that registers a plugin by its table, or that declares it as not experimental.
    from jax._src import xla_bridge

    from trivium.jax_plugin import compilation_cache, lowerings

    xla_bridge._nonexperimental_plugins.add(platform)
    options = functools.partial(_options, platform)
    xla_bridge.register_plugin(platform, priority=PRIORITY, c_api=table, options=options)
    # If nobody asked for it, a platform that has no devices is left out.
    factories = xla_bridge._backend_factories
    factories[platform] = dataclasses.replace(factories[platform], fail_quietly=True)
    lowerings.register(platform)
    compilation_cache.allow(platform)
    if jax.config.jax_platforms == platform:
        # Callbacks get their arguments as arrays of the CPU platform, which must be started too: while JAX reads its
        # list of platforms, this platform's name represents both.
        xla_bridge._alias_to_platforms[platform] = [platform, "cpu"]


def _options(platform: str) -> dict[str, str]:
    """Called when the platform's devices are started. Raises an `Error` if there is no GPU that was asked for."""
    from jax._src import xla_bridge

    xla_bridge._alias_to_platforms.pop(platform, None)
    options = {"platform_version": f"Trivium {trivium.__version__}"}
    return options | {"platform": _gpu_platform()} if platform == GPU else options


def _gpu_platform() -> str:
    from trivium.backends import platforms
    from trivium.ir.errors import Error

    if CHOICE in os.environ:
        if os.environ[CHOICE] not in GPU_PLATFORMS:
            raise Error(f"{CHOICE} has {os.environ[CHOICE]!r}, expected one of {', '.join(GPU_PLATFORMS)}")
        return os.environ[CHOICE]
    reasons = []
    for platform in GPU_PLATFORMS:
        try:
            platforms.count(platform)
            return platform
        except Error as error:
            reasons.append(f"{platform}: {error}")
    raise Error(f"there is no GPU that Trivium can use: {'; '.join(reasons)}")


def _has_cuda() -> bool:
    """Returns whether NVIDIA's driver is installed, which says nothing of devices."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def registered_with_jax(target: str) -> Mapping[str, object] | None:
    """Returns the capsules of a function that was registered for JAX's CPU platform, by JAX itself or through
    `jax.ffi`."""
    from trivium.jax_plugin.foreign import XLA, with_states

    found = with_states.get(target) or XLA.custom_call_targets("Host").get(target)
    return found if isinstance(found, Mapping) else None


def tell_compiled(executable: Compiled) -> None:
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
