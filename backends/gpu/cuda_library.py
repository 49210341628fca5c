"""NVIDIA's driver API, by ctypes: the library that comes with the driver is all that a machine needs. Every function is
declared once, and its failures are errors."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trivium.ir.errors import Error, ExecutionError

NAME = "libcuda.so.1"

OLDEST = 12_000
"""The oldest version of the driver, for its version of PTX: 1000 times CUDA's major version plus 10 times the minor."""

OUT_OF_MEMORY, NOT_READY = 2, 600
"""Codes of results."""

_INT, _UINT, _SIZE, _P, _TEXT = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
_ADDRESS, _FLAGS = ctypes.c_uint64, ctypes.c_ulonglong

FUNCTIONS: dict[str, tuple[type, ...]] = {
    "cuInit": (_UINT,),
    "cuDriverGetVersion": (_P,),
    "cuDeviceGetCount": (_P,),
    "cuDeviceGet": (_P, _INT),
    "cuDeviceGetName": (_TEXT, _INT, _INT),
    "cuDeviceGetAttribute": (_P, _INT, _INT),
    "cuDeviceTotalMem_v2": (_P, _INT),
    "cuDevicePrimaryCtxRetain": (_P, _INT),
    "cuDevicePrimaryCtxRelease_v2": (_INT,),
    "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,),
    "cuMemGetInfo_v2": (_P, _P),
    "cuMemPoolCreate": (_P, _P),
    "cuMemPoolDestroy": (_P,),
    "cuMemPoolSetAttribute": (_P, _INT, _P),
    "cuMemPoolGetAttribute": (_P, _INT, _P),
    "cuMemAllocFromPoolAsync": (_P, _SIZE, _P, _P),
    "cuMemFreeAsync": (_ADDRESS, _P),
    "cuMemHostAlloc": (_P, _SIZE, _UINT),
    "cuMemFreeHost": (_P,),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, _P, _SIZE, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _ADDRESS, _SIZE, _P),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, _SIZE, _P),
    "cuStreamCreate": (_P, _UINT),
    "cuStreamDestroy_v2": (_P,),
    "cuStreamSynchronize": (_P,),
    "cuStreamWaitEvent": (_P, _P, _UINT),
    "cuStreamBeginCapture_v2": (_P, _INT),
    "cuStreamEndCapture": (_P, _P),
    "cuEventCreate": (_P, _UINT),
    "cuEventDestroy_v2": (_P,),
    "cuEventRecord": (_P, _P),
    "cuEventQuery": (_P,),
    "cuEventSynchronize": (_P,),
    "cuModuleLoadDataEx": (_P, _P, _UINT, _P, _P),
    "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, _TEXT),
    "cuFuncSetAttribute": (_P, _INT, _INT),
    "cuLaunchKernel": (_P, *[_UINT] * 7, _P, _P, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, _FLAGS),
    "cuGraphLaunch": (_P, _P),
    "cuGraphDestroy": (_P,),
    "cuGraphExecDestroy": (_P,),
}
"""The operands of the functions that are called. All of them return a code."""


class CudaError(ExecutionError):
    """A call of the driver that failed. `code` is what it returned, `what` tells what the driver was asked for."""

    def __init__(self, reason: str, code: int, what: str = ""):
        super().__init__(f"CUDA failed, {what}: {reason}" if what else f"CUDA failed: {reason}")
        self.reason, self.code, self.what = reason, code, what


class Library:
    """The driver's functions, as methods of the same names. Those that fail raise a `CudaError`."""

    def __init__(self, name: str):
        self._library = ctypes.CDLL(name)
        self._describe = [self._text_of("cuGetErrorName"), self._text_of("cuGetErrorString")]
        self._functions = {function: self._declared(function, kinds) for function, kinds in FUNCTIONS.items()}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self._functions[name]
        except KeyError:
            raise AttributeError(name) from None

    def value(self, name: str, kind: type, *operands: object) -> Any:
        """Returns what a function writes to where its first operand points; `operands` are all others."""
        result = kind()
        self._functions[name](ctypes.byref(result), *operands)
        return result.value

    def address(self, name: str) -> int:
        """Returns where a function is, for native code."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def _declared(self, name: str, kinds: tuple[type, ...]) -> Callable[..., Any]:
        function = getattr(self._library, name)
        function.argtypes, function.restype = kinds, _INT

        def check(code: int, *_: object) -> int:
            if code in (0, NOT_READY):
                return code
            what, meaning = (describe(code) for describe in self._describe)
            raise CudaError(f"{name} returned {what or code}{meaning and f', {meaning}'}", code)

        function.errcheck = check
        return function

    def _text_of(self, name: str) -> Callable[[int], str]:
        function = getattr(self._library, name)
        function.argtypes, function.restype = (_INT, _P), _INT

        def text(code: int) -> str:
            found = ctypes.c_char_p()
            function(code, ctypes.byref(found))
            return (found.value or b"").decode(errors="replace")

        return text


@functools.cache
def library() -> Library:
    """Returns the driver, which is ready to use. Raises an `Error` that says why there is none."""
    try:
        found = Library(NAME)
    except OSError as error:
        raise Error(f"NVIDIA's driver is not installed: {error}") from error
    except AttributeError as error:
        raise Error(f"NVIDIA's driver is too old, expected one for CUDA {version_text(OLDEST)}: {error}") from error
    with told("starting NVIDIA's driver"):
        found.cuInit(0)
        version = found.value("cuDriverGetVersion", ctypes.c_int)
    if version < OLDEST:
        has, expected = version_text(version), version_text(OLDEST)
        raise Error(f"NVIDIA's driver is one for CUDA {has}, expected at least {expected}")
    return found


def version_text(number: int) -> str:
    """Returns a version as people write it: 12.8 for 12080."""
    return f"{number // 1000}.{number % 1000 // 10}"


@contextmanager
def told(what: str) -> Iterator[None]:
    """Adds to the driver's errors what was being done: the innermost `what`."""
    try:
        yield
    except CudaError as error:
        if error.what:
            raise
        raise CudaError(error.reason, error.code, what) from error
