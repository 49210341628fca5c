"""AMD's HIP, through ctypes. It has the functions of NVIDIA's driver API under other names, with the same operands and
result codes. Instead of contexts, each thread has a current device."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from trivium.backends.gpu.cuda_library import FUNCTIONS, Api, Library, started
from trivium.backends.gpu.lld import rocm

NAMES = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6")

OLDEST = 60_000_000
"""The oldest version. It is the first one that names the form in which it describes a device."""

_INT, _P = ctypes.c_int, ctypes.c_void_p

OWN: dict[str, tuple[type, ...]] = {
    "hipGetDevice": (_P,),
    "hipSetDevice": (_INT,),
    "hipGetDevicePropertiesR0600": (_P, _INT),
    "hipModuleLoadData": (_P, _P),
}
"""The functions that NVIDIA's API does not have, or not as simple."""

CHANGED: dict[str, tuple[type, ...]] = {
    "cuMemcpyPeerAsync": (ctypes.c_uint64, _INT, ctypes.c_uint64, _INT, ctypes.c_size_t, _P),
}
"""The functions that take numbers of devices in place of contexts."""

CONTEXTS = frozenset(
    ("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
)
"""The functions that HIP has none for, or only old ones."""

RENAMED = {
    "cuDeviceGetCount": "hipGetDeviceCount",
    "cuMemAllocFromPoolAsync": "hipMallocFromPoolAsync",
    "cuMemFreeAsync": "hipFreeAsync",
    "cuMemHostAlloc": "hipHostMalloc",
    "cuMemFreeHost": "hipHostFree",
    "cuStreamCreate": "hipStreamCreateWithFlags",
    "cuEventCreate": "hipEventCreateWithFlags",
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cuGetErrorName": "hipDrvGetErrorName",
    "cuGetErrorString": "hipDrvGetErrorString",
}
"""The functions whose names differ by more than their beginning, and the version at their end."""


def symbol(name: str) -> str:
    """Returns HIP's name of a function."""
    return name if name in OWN else RENAMED.get(name, "hip" + name.removeprefix("cu").removesuffix("_v2"))


OTHERS = frozenset(("cuModuleLoadDataEx", "cuFuncSetAttribute", "cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col"))
"""The functions that HIP has for other things, or none for: code is loaded without options, and kernels are neither
granted memory nor told of arrays that the device copies."""

SHARED = {name: kinds for name, kinds in FUNCTIONS.items() if name not in CONTEXTS | OTHERS}

API = Api("HIP", "AMD's HIP", SHARED | CHANGED | OWN, symbol, 10_000_000, 100_000)


@functools.cache
def library() -> Library:
    """Returns HIP, which is ready to use. Raises an `Error` that says why there is none."""
    return started([*NAMES, str(Path(rocm(), "lib", NAMES[0]))], API, OLDEST)
