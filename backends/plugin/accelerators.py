"""Accelerators as devices of the native runtime: the functions of `AcceleratorFunctions`, with which it allocates
memory, copies arrays and runs programs. Native code knows memory by numbers."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from trivium.backends import native, platforms
from trivium.backends.gpu.client import GpuClient, GpuLoadedExecutable
from trivium.backends.gpu.dlpack import is_lent
from trivium.backends.gpu.driver import AnyDriver, Memory, copy_between
from trivium.backends.plugin.together import DividedProgram
from trivium.ir.errors import ExecutionError

_numbers = itertools.count(1)

_memories: dict[int, tuple[Memory, AnyDriver]] = {}

programs: WeakValueDictionary[int, GpuLoadedExecutable | DividedProgram] = WeakValueDictionary()
"""Programs that native code may run, by the handle with which it releases them."""


def client_of(device: str) -> GpuClient:
    """Returns the client of a device such as "cuda:0"."""
    platform, _, number = device.partition(":")
    client = platforms.client_of(platform, int(number))
    if not isinstance(client, GpuClient):
        raise ExecutionError(f"the device is {device!r}, expected an accelerator, such as 'cuda:0' or 'opencl:0'")
    return client


def open(platform: bytes, sink: int) -> None:
    name = platform.decode()
    found, reasons = platforms.discovered_of(name)
    if not found:
        raise ExecutionError("; ".join(f"{device}: {reason}" for device, reason in reasons.items()))
    text = "\n".join(f"{name}:{device.id} {device.kind}" for device in found).encode()
    native.load().trivium_pjrt_write(ctypes.c_void_p(sink), text, ctypes.c_size_t(len(text)))


def allocate(device: bytes, sizes: Any, count: int, memories: Any) -> None:
    driver = client_of(device.decode()).driver
    allocated = [driver.allocate(size) for size in sizes[:count]]
    for position, memory in enumerate(allocated):
        memories[position] = _numbered(memory, driver)


def borrow(device: bytes, address: int | None, nbytes: int, memory: Any) -> None:
    driver = client_of(device.decode()).driver
    alignment = driver.target.vector_bytes
    if (address or 0) % alignment:
        raise ExecutionError(f"memory of another library begins at {address:#x}, expected a multiple of {alignment}")
    memory[0] = _numbered(driver.at_address(address or 0, nbytes), driver)


def _numbered(memory: Memory, driver: AnyDriver) -> int:
    number = next(_numbers)
    _memories[number] = memory, driver
    return number


def release(numbers: Any, count: int) -> None:
    for position in range(count):
        del _memories[numbers[position]]


def upload(number: int, source: int | None, nbytes: int) -> None:
    memory, driver = _memories[number]
    driver.upload(memory, _host(source, nbytes))


def download(number: int, target: int | None, nbytes: int) -> None:
    memory, driver = _memories[number]
    driver.download(_host(target, nbytes), memory)


def copy(target: int, source: int) -> None:
    copy_between(*_memories[target], *_memories[source])


def _host(address: int | None, nbytes: int) -> np.ndarray:
    """Returns the host's memory as bytes."""
    if not nbytes:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address or 0))


def address(number: int, address: Any) -> None:
    memory, driver = _memories[number]
    address[0] = driver.address(memory)


def memory_at(address: int) -> tuple[Memory, AnyDriver]:
    """Returns the memory that begins at an address, and the driver of its device."""
    for memory, driver in list(_memories.values()):
        if driver.address(memory) == address:
            return memory, driver
    raise ExecutionError(f"no memory that is in use begins at {address:#x}")


def run(program: int, memories: Any, count: int) -> None:
    executable = programs[program]
    given: Sequence[Memory] = [_memories[number][0] for number in memories[:count]]
    if isinstance(executable, DividedProgram):
        executable.run_on(given)
        return
    taken = len(executable.inputs)
    arguments, results = given[:taken], zip(memories[taken:count], given[taken:], strict=True)
    executable.run_on(arguments, [_own(number, result, arguments) for number, result in results])


def _own(number: int, result: Memory, arguments: Sequence[Memory]) -> Memory:
    """Returns where a result goes: to other memory if it would be in that of an argument which another library uses,
    and of which native code does not know that. The number then is that of the new memory."""
    if not is_lent(result) or not any(result is argument for argument in arguments):
        return result
    _, driver = _memories[number]
    _memories[number] = driver.allocate(result.nbytes), driver
    return _memories[number][0]


def mark(device: bytes, event: Any) -> None:
    for name, address in client_of(device.decode()).driver.native_event().items():
        setattr(event[0], name, address)
