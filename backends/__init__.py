"""Backends, which compile programs to machine code and run them through PJRT's interface. Clients are created on first
use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from trivium.backends.pjrt import Client, Device
from trivium.ir.errors import Error


def _cpu(number: int) -> Client:
    from trivium.backends.cpu.client import cpu_client

    if number:
        raise Error(f"there is no device cpu:{number}, expected cpu: all processors of a machine are one device")
    return cpu_client()


def _opencl(number: int) -> Client:
    from trivium.backends.gpu.client import GpuClient
    from trivium.backends.gpu.opencl import OpenCl

    return GpuClient(OpenCl(number), number)


def _opencl_devices() -> int:
    from trivium.backends.gpu import opencl

    return len(opencl.devices()) if opencl.is_installed() else 0


_PLATFORMS: dict[str, tuple[Callable[[int], Client], Callable[[], int]]] = {
    "cpu": (_cpu, lambda: 1),
    "opencl": (_opencl, _opencl_devices),
}
"""For each platform, the client of one of its devices, and how many devices there are."""


def client(device: str = "cpu") -> Client:
    """Returns the client of a device such as "cpu" or "opencl:1", or of the PJRT plugin that has this name or path; the
    same object every time."""
    platform, _, number = device.partition(":")
    if platform in _PLATFORMS:
        if not (number or "0").isdecimal():
            raise Error(f"unknown device {device!r}, expected a number, as in {platform}:0")
        return _client(platform, int(number or "0"))
    from trivium.backends.table.discovery import plugin_client

    return plugin_client(device)


@functools.cache
def _client(platform: str, number: int) -> Client:
    make, _ = _PLATFORMS[platform]
    return make(number)


def devices() -> Sequence[Device]:
    """Returns all devices of all platforms that Trivium compiles for itself."""
    found = ((platform, number) for platform, (_, count) in _PLATFORMS.items() for number in range(count()))
    return [device for platform, number in found for device in _client(platform, number).devices]


__all__ = ["client", "devices"]
