"""Functions of the host that programs call by name. Each is an `int32_t function(void* routine, void** pointers, const
int64_t* attributes)`, with pointers to arguments and then results; it returns 0, or a status that ends the run. The
artifact holds their names; their addresses are looked up when it is loaded: functions of the native runtime, with a
routine of SciPy's LAPACK if they need one, and one Python function for all custom calls that users registered."""

from __future__ import annotations

import ctypes
import functools
import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from trivium.backends import native
from trivium.compiler.artifact import NativeFunction, PythonFunction
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.types import TensorType

Addresses = tuple[int, int]
"""The addresses of a function, and of the routine that it receives, or the Python function; 0 for none."""


class HostFunctions:
    """The functions that a program calls, valid for as long as this object lives."""

    def __init__(self, calls: Sequence[NativeFunction | PythonFunction]):
        self._python: dict[int, _Python] = {}
        self._native: list[object] = []
        self._entry = self._call
        self.addresses: list[Addresses] = [
            self._registered(number, call) if isinstance(call, PythonFunction) else _native(call)
            for number, call in enumerate(calls)
        ]

    def _registered(self, number: int, call: PythonFunction) -> Addresses:
        """Returns what is registered for a custom call: a C function, or else a Python function."""
        definition = CUSTOM_CALLS.get(call.target)
        if definition is not None and definition.native is not None:
            from trivium.compiler.host import called_op

            function = definition.native(called_op(call))
            self._native.append(function)
            return function.addresses
        self._python[number] = _Python(call)
        # In CPython, the id of an object is its address.
        return native.address("trivium_call_python"), id(self._entry)

    def _call(self, number: int, address: int) -> None:
        """Called from native code, with the address of the pointers. If it raises, the run ends."""
        self._python[number](address)


def _native(call: NativeFunction) -> Addresses:
    return native.address(call.function), _routine(call.routine) if call.routine else 0


@functools.cache
def _routine(name: str) -> int:
    """Returns the address of a LAPACK or BLAS routine, which SciPy exports to Cython."""
    capsule = _exports()[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def _exports() -> Mapping[str, object]:
    import scipy.linalg.cython_blas
    import scipy.linalg.cython_lapack

    return ChainMap(scipy.linalg.cython_lapack.__pyx_capi__, scipy.linalg.cython_blas.__pyx_capi__)


class _Python:
    """A call of a Python function on memory."""

    def __init__(self, call: PythonFunction):
        from trivium.compiler.host import python_function

        self._function, arguments, results = python_function(call)
        self._views = [view_of(kind) for kind in (*arguments, *results)]
        self._count = len(arguments)

    def __call__(self, address: int) -> None:
        pointers = (ctypes.c_void_p * len(self._views)).from_address(address)
        arrays = [view(pointers[position]) for position, view in enumerate(self._views)]
        for array, result in zip(arrays[self._count :], self._function(arrays[: self._count]), strict=True):
            array[...] = result


def view_of(kind: TensorType) -> Callable[[int], np.ndarray]:
    """Returns a function that makes an array over a pointer."""
    dtype, shape = kind.dtype, kind.static_shape
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes == 0:
        return lambda pointer: np.empty(shape, dtype)
    memory = ctypes.c_char * nbytes
    # NumPy's stubs do not know that a ctypes array is a buffer.
    return lambda pointer: np.frombuffer(memory.from_address(pointer), dtype).reshape(shape)  # pyright: ignore[reportCallIssue, reportArgumentType]
