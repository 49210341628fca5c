"""JAX's persistent compilation cache on Trivium's device. JAX has a list of the platforms whose executables it keeps,
and no way for a plugin to be on it; what the cache needs, executables as bytes, the plugin has."""

from __future__ import annotations

from typing import Any


def allow(platform: str) -> None:
    """Lets JAX use its cache for this platform too, wherever the user has it switched on."""
    from jax._src import compilation_cache

    others = compilation_cache.is_cache_used

    def is_cache_used(backend: Any) -> bool:
        return compilation_cache._is_cache_enabled() if backend.platform == platform else others(backend)

    compilation_cache.is_cache_used = is_cache_used
