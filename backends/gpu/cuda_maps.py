"""The arguments of kernels for NVIDIA's driver, and array descriptors (tensor maps), which it encodes for kernels that
use TMA. They contain addresses, and are therefore encoded again when an array has moved."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from trivium.backends.gpu.cuda_library import library
from trivium.backends.gpu.plan import TensorMap

NBYTES, ALIGNMENT = 128, 64
"""The size of a description, and the alignment that the driver asks for."""

TYPES = {"i8": 0, "ui8": 0, "f16": 6, "bf16": 9, "tf32": 11}
"""CUtensorMapDataType: integers of 8 bits are only copied, and have no sign; f32 is rounded to tf32, halves to even."""

_PLAIN, _PERMUTED, _BY_256, _ZEROS = 0, 3, 3, 0
"""No interleaving; lines of 128 bytes are permuted; the cache reads 256 bytes; what is beyond the end is zero."""


class CudaMaps:
    """The array descriptors of one kernel, at fixed addresses."""

    def __init__(self, maps: Sequence[TensorMap]):
        self._maps = maps
        self._memory = (ctypes.c_char * (NBYTES * len(maps) + ALIGNMENT))()
        begin = -(-ctypes.addressof(self._memory) // ALIGNMENT) * ALIGNMENT
        self.places = tuple(begin + NBYTES * number for number in range(len(maps)))
        self._written: list[int | None] = [None] * len(maps)

    def write(self, addresses: Sequence[int]) -> None:
        """Encodes the descriptors whose arrays have moved, for the addresses of a launch's arguments."""
        for number, one in enumerate(self._maps):
            address = addresses[one.argument] + one.offset
            if self._written[number] != address:
                self._written[number] = None
                _encode(self.places[number], one, address)
                self._written[number] = address


class CudaKernel:
    """A function of a module, with space for its arguments and for array descriptors. `granted`:
    the bytes of memory that a launch grants each block. The `module` lives as long."""

    def __init__(self, name: str, function: int, granted: int, module: object, maps: Sequence[TensorMap] = ()):
        self.name, self.function, self.granted = name, function, granted
        self._module = module
        self._maps = CudaMaps(maps)
        self._values: ctypes.Array[ctypes.c_uint64] = (ctypes.c_uint64 * 0)()
        self._pointers: ctypes.Array[ctypes.c_void_p] = (ctypes.c_void_p * 0)()

    def given(self, addresses: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
        """Returns pointers to the arguments, which point to the same memory in every call."""
        count = len(addresses)
        if len(self._values) != count:
            self._values = (ctypes.c_uint64 * count)()
            begin = ctypes.addressof(self._values)
            places = (*(begin + 8 * position for position in range(count)), *self._maps.places)
            self._pointers = (ctypes.c_void_p * len(places))(*places)
        self._values[:] = addresses
        if self._maps.places:
            self._maps.write(addresses)
        return self._pointers


def _encode(place: int, one: TensorMap, address: int) -> None:
    rank = len(one.extents)
    extents, strides = (ctypes.c_uint64 * rank)(*one.extents), (ctypes.c_uint64 * (rank - 1))(*one.strides)
    array, how = (TYPES[one.dtype], rank, address, extents, strides), (_PLAIN, _PERMUTED, _BY_256, _ZEROS)
    if not one.corners:
        box, steps = (ctypes.c_uint32 * rank)(*one.box), (ctypes.c_uint32 * rank)(*[1] * rank)
        library().cuTensorMapEncodeTiled(place, *array, box, steps, *how)
        return
    # The innermost dimension comes first, in corners, too.
    low, high = ((ctypes.c_int * len(one.corners))(*found) for found in zip(*one.corners, strict=True))
    steps = (ctypes.c_uint32 * rank)(1, *one.steps, 1)
    library().cuTensorMapEncodeIm2col(place, *array, low, high, *one.box, steps, *how)
