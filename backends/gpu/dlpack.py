"""Shares arrays in GPU memory with other libraries through DLPack, without a copy. DLPack is a C structure, which an
array exports in a capsule, with a function that releases the array. The other library gets our stream, and orders its
work before ours. We wait for our own work before an array is released, and before one of our arrays is exported."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from trivium.backends.gpu.cuda_memory import CudaMemory
from trivium.ir.errors import ExecutionError

CUDA, ROCM = 2, 10
"""The numbers of kinds of devices: NVIDIA and AMD."""

Place = tuple[int, int]
"""A device: its kind and its number."""

NAME, USED = b"dltensor", b"used_dltensor"
"""The names of capsules, before and after somebody has taken the array."""

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
_Give = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("give_back", _Give))


def _python(name: str, result: Any, *kinds: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *kinds)((name, ctypes.pythonapi))


_new = _python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_pointer_of_dying = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


@dataclass(frozen=True)
class Borrowed:
    """An array of another library: its memory, which is released with the last reference, and its type and shape."""

    memory: CudaMemory
    dtype: np.dtype
    shape: tuple[int, ...]


def borrow(array: Any, place: Place, stream: int, finished: Callable[[], None]) -> Borrowed | None:
    """Returns an array that is on this device; None for anything else. `finished` waits for our work."""
    if not hasattr(array, "__dlpack_device__") or tuple(map(int, array.__dlpack_device__())) != place:
        return None
    capsule = array.__dlpack__(stream=stream)
    managed = ctypes.cast(_pointer(capsule, NAME), ctypes.POINTER(_Managed)).contents
    tensor = managed.tensor
    shape = tuple(tensor.shape[d] for d in range(tensor.rank))
    dtype = _dtype(tensor)
    if not _is_dense(tensor, shape):
        strides = tuple(tensor.strides[d] for d in range(tensor.rank))
        raise ExecutionError(f"an array on the GPU has strides {strides}, expected those of a contiguous array")
    memory = CudaMemory((tensor.data or 0) + tensor.offset, dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
    _rename(capsule, USED)

    def give_back() -> None:
        finished()
        if managed.give_back:
            managed.give_back(ctypes.addressof(managed))

    weakref.finalize(memory, give_back).atexit = False
    return Borrowed(memory, dtype, shape)


def _dtype(tensor: _Tensor) -> np.dtype:
    if tensor.lanes == 1 and (tensor.code, tensor.bits) == (_BFLOAT, 16):
        return np.dtype(ml_dtypes.bfloat16)
    found = next((kind for kind, code in _CODES.items() if code == tensor.code), None)
    if found is None or tensor.lanes != 1 or tensor.bits % 8:
        kind = f"type code {tensor.code}, {tensor.bits} bits and {tensor.lanes} lanes"
        raise ExecutionError(f"an array on the GPU has {kind}, expected a type of NumPy's or bf16")
    return np.dtype(f"{found}{tensor.bits // 8}")


def _is_dense(tensor: _Tensor, shape: tuple[int, ...]) -> bool:
    """Whether elements follow one another in row-major order."""
    if not tensor.strides or 0 in shape:
        return True
    step = 1
    for dimension in reversed(range(tensor.rank)):
        if shape[dimension] != 1 and tensor.strides[dimension] != step:
            return False
        step *= shape[dimension]
    return True


# Our own arrays

_lent: dict[int, tuple[_Managed, object, CudaMemory]] = {}
"""What must be kept alive while another library uses one of our arrays, by the address of its structure."""


@_Give
def _taken_back(address: int) -> None:
    _lent.pop(address, None)


@_Give
def _dropped(capsule: int) -> None:
    """Releases an array that nobody has taken out of its capsule."""
    if _is_valid(capsule, NAME):
        _lent.pop(_pointer_of_dying(capsule, NAME), None)


def is_lent(memory: object) -> bool:
    """Whether another library has one of our arrays in this memory."""
    return any(memory is lent for _, _, lent in list(_lent.values()))


def lend(memory: CudaMemory, dtype: np.dtype, shape: tuple[int, ...], place: Place) -> object:
    """Returns the capsule of one of our arrays, on which no work is pending."""
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    code = _BFLOAT if dtype == ml_dtypes.bfloat16 else _CODES.get(dtype.kind)
    if code is None:
        raise ExecutionError(f"an array of {dtype} cannot be shared with another library: DLPack has no such type")
    tensor = _Tensor(memory.address, *place, len(shape), code, 8 * dtype.itemsize, 1, extents, None, 0)
    managed = _Managed(tensor, None, _taken_back)
    address = ctypes.addressof(managed)
    _lent[address] = managed, extents, memory
    return _new(address, NAME, ctypes.cast(_dropped, ctypes.c_void_p))
