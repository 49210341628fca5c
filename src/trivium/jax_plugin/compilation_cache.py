"""JAX's persistent compilation cache on Trivium's device. JAX has a list of the platforms whose executables it caches,
and a plugin cannot add itself to it. The plugin has what the cache needs: executables as bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

LISTED = SimpleNamespace(platform="cpu", supports_executable_serialization=True)
"""What JAX asks a client before it uses the cache, as one of a platform in its list answers."""


def allow(platform: str) -> None:
    """Lets JAX use its cache for this platform too, if the user has enabled it."""
    from jax._src import compilation_cache

    others = compilation_cache.is_cache_used

    def is_cache_used(backend: Any) -> bool:
        return others(LISTED if backend.platform == platform else backend)

    compilation_cache.is_cache_used = is_cache_used
