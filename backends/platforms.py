"""The platforms that Trivium compiles for itself. Clients are created on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trivium.backends.pjrt import Client, Device


def _cpu(number: int) -> Client:
    from trivium.backends.cpu.client import cpu_client
    from trivium.ir.errors import Error

    if number:
        raise Error(f"there is no device cpu:{number}, expected cpu: all processors of a machine are one device")
    return cpu_client()


def _opencl(number: int) -> Client:
    from trivium.backends.gpu.client import GpuClient
    from trivium.backends.gpu.opencl import OpenCl

    return GpuClient(OpenCl(number), number)


def _opencl_devices() -> int:
    from trivium.backends.gpu import opencl

    return opencl.count()


def _cuda(number: int) -> Client:
    from trivium.backends.gpu.client import GpuClient
    from trivium.backends.gpu.cuda import Cuda

    return GpuClient(Cuda(number), number)


def _cuda_devices() -> int:
    from trivium.backends.gpu import cuda

    return cuda.count()


def _hip(number: int) -> Client:
    from trivium.backends.gpu.client import GpuClient
    from trivium.backends.gpu.hip import Hip

    return GpuClient(Hip(number), number)


def _hip_devices() -> int:
    from trivium.backends.gpu import hip

    return hip.count()


_PLATFORMS: dict[str, tuple[Callable[[int], Client], Callable[[], int]]] = {
    "cpu": (_cpu, lambda: 1),
    "cuda": (_cuda, _cuda_devices),
    "hip": (_hip, _hip_devices),
    "opencl": (_opencl, _opencl_devices),
}
"""For each platform, the client of one of its devices, and how many devices there are; an `Error` says why there are
none."""

_CLIENTS: dict[tuple[str, int], Client] = {}
_LOCK = threading.RLock()


def register_platform(name: str, make: Callable[[int], Client], count: Callable[[], int] = lambda: 1) -> None:
    """Makes devices available as `name:0`, `name:1`, and so on, and the first one also as `name`. `make` returns the
    client of one device, by its number, and is called once for each; `count` returns how many there are, or raises an
    `Error` that says why there are none."""
    from trivium.ir.errors import Error

    if not name.isidentifier() or name in _PLATFORMS:
        reason = "there is such a platform" if name in _PLATFORMS else "expected an identifier"
        raise Error(f"cannot register the platform {name!r}: {reason}")
    _PLATFORMS[name] = make, count


def is_platform(name: str) -> bool:
    """Returns whether there is a platform of that name, with or without devices."""
    return name in _PLATFORMS


def client_of(platform: str, number: int) -> Client:
    """Returns the client of a device of a platform; the same object every time."""
    with _LOCK:
        if (platform, number) not in _CLIENTS:
            make, _ = _PLATFORMS[platform]
            _CLIENTS[platform, number] = make(number)
        return _CLIENTS[platform, number]


def count(platform: str) -> int:
    """Returns how many devices a platform has. Raises an `Error` that says why there are none."""
    if platform not in _PLATFORMS:
        from trivium.ir.errors import Error

        raise Error(f"there is no platform {platform!r}, expected one of {', '.join(_PLATFORMS)}")
    return _PLATFORMS[platform][1]()


def devices() -> Sequence[Device]:
    """Returns all devices of all platforms that Trivium compiles for itself."""
    return discovered()[0]


def discovered() -> tuple[Sequence[Device], Mapping[str, str]]:
    """Returns all devices, and why platforms, or single devices, cannot be used."""
    from trivium.ir.errors import Error

    found: list[Device] = []
    reasons: dict[str, str] = {}
    for platform in _PLATFORMS:
        try:
            usable, unusable = discovered_of(platform)
        except Error as error:
            reasons[platform] = str(error)
            continue
        found.extend(usable)
        reasons.update(unusable)
    return found, reasons


def discovered_of(platform: str) -> tuple[Sequence[Device], Mapping[str, str]]:
    """Returns the devices of a platform, and why others cannot be used. Raises an `Error` that says why there are
    none."""
    from trivium.ir.errors import Error

    found: list[Device] = []
    reasons: dict[str, str] = {}
    for number in range(count(platform)):
        try:
            found.extend(client_of(platform, number).devices)
        except Error as error:
            reasons[f"{platform}:{number}"] = str(error)
    return found, reasons
