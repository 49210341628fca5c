"""Backends, which compile programs to machine code and run them through PJRT's interface. Clients are created on first
use."""

from __future__ import annotations

import functools
from collections.abc import Callable

from trivium.backends.pjrt import Client, Device
from trivium.ir.errors import Error


def _cpu() -> Client:
    from trivium.backends.cpu.client import CpuClient

    return CpuClient()


_PLATFORMS: dict[str, Callable[[], Client]] = {"cpu": _cpu}


@functools.cache
def client(platform: str = "cpu") -> Client:
    """Returns the client of a platform; the same object every time."""
    make = _PLATFORMS.get(platform)
    if make is None:
        raise Error(f"unknown device {platform!r}; expected one of {', '.join(_PLATFORMS)}")
    return make()


def devices() -> list[Device]:
    """Returns all devices of all platforms."""
    return [device for platform in _PLATFORMS for device in client(platform).devices]


__all__ = ["client", "devices"]
