"""AMD GPUs, through HIP. It is used like NVIDIA's driver, except for the description of a device, and for how a thread
selects its device. It has never run on an AMD GPU: the tests use a fake driver."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import ClassVar

from trivium.backends.gpu import amdgcn, dlpack, hip_library, lld
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.cuda_library import Library, devices, during
from trivium.backends.gpu.dialect import Dialect

_UNITS, _POOLS, _MEMORY_CLOCK, _BUS = 63, 88, 60, 59
"""Attributes of a device."""


class Properties(ctypes.Structure):
    """hipDeviceProp_tR0600, which is the only source of the architecture's name."""

    _fields_ = (("others", ctypes.c_char * 1160), ("architecture", ctypes.c_char * 256), ("last", ctypes.c_char * 56))


def count() -> int:
    """Returns the number of devices. Raises an `Error` if there are none."""
    return devices(hip_library.library())


class Hip(Cuda):
    """An AMD device."""

    platform: ClassVar[str] = "hip"
    dlpack_device: ClassVar[int] = dlpack.ROCM
    _entering: ClassVar[Mapping[str, str]] = {}
    _context: int = 0

    def _library(self) -> Library:
        return hip_library.library()

    def _retain(self, opened: ExitStack) -> None:
        """HIP has no contexts, only a current device for each thread; events can be used with any device."""
        self._home = self._device

    def _describe(self) -> None:
        properties = Properties()
        self._cuda.hipGetDevicePropertiesR0600(ctypes.byref(properties), self._device)
        # The name of the architecture, and then what of it is turned on or off.
        self.architecture = properties.architecture.decode().partition(":")[0]
        self.target = amdgcn.target(self.architecture)
        self.dialect: Dialect = amdgcn.Amdgcn(self.target.warp)
        self.kind = self._kind(*self._attributes(_UNITS, _POOLS, _MEMORY_CLOCK, _BUS))
        version = self._cuda.value("cuDriverGetVersion", ctypes.c_int)
        self._assembler = None
        by = f"linked by {lld.installed()}" if lld.installed() else "without a linker"
        self.version = f"HIP {self._cuda.api.version_text(version)}, code {by}"

    @contextmanager
    def current(self) -> Iterator[None]:
        """Makes the device current in this thread: other libraries may have selected another one."""
        with during("choosing the device"):
            before = self._cuda.value("hipGetDevice", ctypes.c_int)
            self._cuda.hipSetDevice(self._device)
        try:
            yield
        finally:
            with during("choosing the device that was chosen before"):
                self._cuda.hipSetDevice(before)

    def _loaded(self, binary: bytes) -> int:
        return self._cuda.value("hipModuleLoadData", ctypes.c_void_p, binary)
