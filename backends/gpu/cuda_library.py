"""NVIDIA's driver API, through ctypes: a machine needs only the library that comes with the driver. Every function is
declared once, and its failures raise errors. Another vendor's library with the same functions is called by the same
names."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

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
    "cuDeviceCanAccessPeer": (_P, _INT, _INT),
    "cuDevicePrimaryCtxRetain": (_P, _INT),
    "cuDevicePrimaryCtxRelease_v2": (_INT,),
    "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,),
    "cuMemGetInfo_v2": (_P, _P),
    "cuMemPoolCreate": (_P, _P),
    "cuMemPoolDestroy": (_P,),
    "cuMemPoolSetAttribute": (_P, _INT, _P),
    "cuMemPoolGetAttribute": (_P, _INT, _P),
    "cuMemPoolTrimTo": (_P, _SIZE),
    "cuMemPoolSetAccess": (_P, _P, _SIZE),
    "cuMemAllocFromPoolAsync": (_P, _SIZE, _P, _P),
    "cuMemFreeAsync": (_ADDRESS, _P),
    "cuMemHostAlloc": (_P, _SIZE, _UINT),
    "cuMemFreeHost": (_P,),
    "cuMemcpyHtoDAsync_v2": (_ADDRESS, _P, _SIZE, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _ADDRESS, _SIZE, _P),
    "cuMemcpyDtoDAsync_v2": (_ADDRESS, _ADDRESS, _SIZE, _P),
    "cuMemcpyPeerAsync": (_ADDRESS, _P, _ADDRESS, _P, _SIZE, _P),
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
    "cuTensorMapEncodeTiled": (_P, _INT, _UINT, _ADDRESS, _P, _P, _P, _P, *[_INT] * 4),
    "cuTensorMapEncodeIm2col": (_P, _INT, _UINT, _ADDRESS, _P, _P, _P, _P, _UINT, _UINT, _P, *[_INT] * 4),
    "cuLaunchKernel": (_P, *[_UINT] * 7, _P, _P, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, _FLAGS),
    "cuGraphLaunch": (_P, _P),
    "cuGraphDestroy": (_P,),
    "cuGraphExecDestroy": (_P,),
}
"""The operands of the functions that are called. All of them return a code."""


class CudaError(ExecutionError):
    """A call of the driver that failed. `code` is what it returned, `what` tells what the driver was asked for."""

    def __init__(self, reason: str, code: int, what: str = "", api: str = "CUDA"):
        super().__init__(f"{api} failed, {what}: {reason}" if what else f"{api} failed: {reason}")
        self.reason, self.code, self.what, self.api = reason, code, what, api


@dataclass(frozen=True)
class Api:
    """NVIDIA's driver API, or one like it: its name, whose library has it, and its functions, which have the names that
    `symbol` returns. A version is `major` times the first number plus `minor` times the second one."""

    name: str
    owner: str
    functions: Mapping[str, tuple[type, ...]]
    symbol: Callable[[str], str]
    major: int
    minor: int

    def version_text(self, number: int) -> str:
        """Returns a version as people write it: 12.8 for 12080."""
        return f"{number // self.major}.{number % self.major // self.minor}"


API = Api("CUDA", "NVIDIA's driver", FUNCTIONS, str, 1000, 10)


class Library:
    """The functions of an API, as methods of the names that NVIDIA's have. Those that fail raise a `CudaError`."""

    def __init__(self, name: str, api: Api):
        self.api = api
        self._library = ctypes.CDLL(name)
        self._describe = [self._text_of("cuGetErrorName"), self._text_of("cuGetErrorString")]
        self._functions = {function: self._declared(function, kinds) for function, kinds in api.functions.items()}
        # Attributes of the instance are found at once.
        vars(self).update(self._functions)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...

    def value(self, name: str, kind: type, *operands: object) -> Any:
        """Returns what a function writes to where its first operand points; `operands` are all others."""
        result = kind()
        self._functions[name](ctypes.byref(result), *operands)
        return result.value

    def address(self, name: str) -> int:
        """Returns where a function is, for native code."""
        return ctypes.cast(getattr(self._library, self.api.symbol(name)), ctypes.c_void_p).value or 0

    def _declared(self, name: str, kinds: tuple[type, ...]) -> Callable[..., Any]:
        symbol = self.api.symbol(name)
        function = getattr(self._library, symbol)
        function.argtypes, function.restype = kinds, _INT

        def check(code: int, *_: object) -> int:
            if code in (0, NOT_READY):
                return code
            what, meaning = (describe(code) for describe in self._describe)
            raise CudaError(f"{symbol} returned {what or code}{meaning and f', {meaning}'}", code, api=self.api.name)

        function.errcheck = check
        return function

    def _text_of(self, name: str) -> Callable[[int], str]:
        function = getattr(self._library, self.api.symbol(name))
        function.argtypes, function.restype = (_INT, _P), _INT

        def text(code: int) -> str:
            found = ctypes.c_char_p()
            function(code, ctypes.byref(found))
            return (found.value or b"").decode(errors="replace")

        return text


@functools.cache
def library() -> Library:
    """Returns the driver, which is ready to use. Raises an `Error` that says why there is none."""
    return started([NAME], API, OLDEST)


def started(names: Sequence[str], api: Api, oldest: int) -> Library:
    """Returns the first of these libraries that there is, ready to use. Raises an `Error` that says why there is
    none."""
    expected = api.version_text(oldest)
    try:
        found = _opened(names, api)
    except OSError as error:
        raise Error(f"{api.owner} is not installed: {error}") from error
    except AttributeError as error:
        raise Error(f"{api.owner} is too old, expected one for {api.name} {expected}: {error}") from error
    with during(f"starting {api.owner}"):
        found.cuInit(0)
        version = found.value("cuDriverGetVersion", ctypes.c_int)
    if version < oldest:
        raise Error(f"{api.owner} is one for {api.name} {api.version_text(version)}, expected at least {expected}")
    return found


def _opened(names: Sequence[str], api: Api) -> Library:
    """Returns the first library that there is; the error is that of the first name."""
    for name in names:
        with suppress(OSError):
            return Library(name, api)
    return Library(names[0], api)


def devices(found: Library) -> int:
    """Returns the number of devices. Raises an `Error` if there are none."""
    with during("counting devices"):
        count = found.value("cuDeviceGetCount", ctypes.c_int)
    if not count:
        raise Error(f"{found.api.owner} finds no device")
    return count


class During:
    """Adds to the driver's errors what was being done: the innermost one. A class, because a call enters many, and a
    generator takes several times as long. `what` is formatted with `facts` when there is an error."""

    __slots__ = ("_facts", "_what")

    def __init__(self, what: str, *facts: object) -> None:
        self._what, self._facts = what, facts

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, CudaError) and not error.what:
            what = self._what.format(*self._facts) if self._facts else self._what
            raise CudaError(error.reason, error.code, what, error.api) from error


during = During


class Current:
    """Makes a context current in this thread for a while, any number of times."""

    __slots__ = ("_context", "_cuda", "_left")

    def __init__(self, cuda: Library, context: int) -> None:
        self._cuda, self._context = cuda, context
        # Where the driver tells which context was left, which nobody reads.
        self._left = ctypes.byref(ctypes.c_void_p())

    def __enter__(self) -> None:
        with _ENTERING:
            self._cuda.cuCtxPushCurrent_v2(self._context)

    def __exit__(self, *_: object) -> None:
        with _LEAVING:
            self._cuda.cuCtxPopCurrent_v2(self._left)


_ENTERING, _LEAVING = during("entering the device's context"), during("leaving the device's context")
