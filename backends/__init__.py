"""Backends, which compile programs to machine code and run them through PJRT's interface. Clients are created on first
use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivium.backends.platforms import client_of, devices, discovered, is_platform, register_platform

if TYPE_CHECKING:
    from trivium.backends.pjrt import Client


def client(device: str = "cpu") -> Client:
    """Returns the client of a device such as "cpu" or "opencl:1", or of the PJRT plugin that has this name or path; the
    same object every time."""
    if not isinstance(device, str):
        from trivium.ir.errors import Error

        raise Error(f"the device is {device!r}, expected its name, such as 'cpu'")
    platform, _, number = device.partition(":")
    if is_platform(platform):
        if not (number or "0").isdecimal():
            from trivium.ir.errors import Error

            raise Error(f"unknown device {device!r}, expected a number, as in {platform}:0")
        return client_of(platform, int(number or "0"))
    from trivium.backends.table.discovery import plugin_client

    return plugin_client(device)


__all__ = ["client", "devices", "discovered", "register_platform"]
