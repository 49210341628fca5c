"""Backends, which compile programs to machine code and run them through PJRT's interface. Clients are created on first
use."""

from __future__ import annotations

import functools
from collections.abc import Callable

from trivium.backends.pjrt import Client, Device


def _cpu() -> Client:
    from trivium.backends.cpu.client import cpu_client

    return cpu_client()


_PLATFORMS: dict[str, Callable[[], Client]] = {"cpu": _cpu}


@functools.cache
def client(platform: str = "cpu") -> Client:
    """Returns the client of a platform, or of the PJRT plugin that has this name or path; the same object every
    time."""
    make = _PLATFORMS.get(platform)
    if make is not None:
        return make()
    from trivium.backends.table.discovery import plugin_client

    return plugin_client(platform)


def devices() -> list[Device]:
    """Returns all devices of all platforms that Trivium compiles for itself."""
    return [device for platform in _PLATFORMS for device in client(platform).devices]


__all__ = ["client", "devices"]
