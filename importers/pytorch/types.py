"""PyTorch's dtypes as element types, and its tensors as arrays that share their memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from trivium.ir import types
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.types import FLOATS, TensorType

ELEMENT_TYPES = {
    torch.bool: types.I1,
    torch.uint8: types.UI8,
    torch.uint16: types.UI16,
    torch.uint32: types.UI32,
    torch.uint64: types.UI64,
    torch.int8: types.I8,
    torch.int16: types.I16,
    torch.int32: types.I32,
    torch.int64: types.I64,
    torch.float16: types.F16,
    torch.bfloat16: types.BF16,
    torch.float32: types.F32,
    torch.float64: types.F64,
    torch.complex64: types.C64,
    torch.complex128: types.C128,
    torch.float8_e4m3fn: FLOATS["f8E4M3FN"],
    torch.float8_e4m3fnuz: FLOATS["f8E4M3FNUZ"],
    torch.float8_e5m2: FLOATS["f8E5M2"],
    torch.float8_e5m2fnuz: FLOATS["f8E5M2FNUZ"],
    torch.float8_e8m0fnu: FLOATS["f8E8M0FNU"],
}
DTYPES = {element_type: dtype for dtype, element_type in ELEMENT_TYPES.items()}

# Formats that NumPy lacks: the integers of the same width that both sides have, and the dtype that reads them.
_CARRIERS = {
    torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e4m3fnuz: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fnuz)),
    torch.float8_e5m2: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2)),
    torch.float8_e5m2fnuz: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2fnuz)),
    torch.float8_e8m0fnu: (torch.uint8, np.dtype(ml_dtypes.float8_e8m0fnu)),
}
_CARRIED = {array_dtype: (dtype, carrier) for dtype, (carrier, array_dtype) in _CARRIERS.items()}


def element_type_of(dtype: torch.dtype) -> types.ElementType:
    """Returns the element type of a dtype."""
    try:
        return ELEMENT_TYPES[dtype]
    except KeyError:
        raise UnsupportedOpError(f"dtype {dtype} has no StableHLO element type") from None


def type_of(tensor: torch.Tensor) -> TensorType:
    """Returns the type of a tensor, which may be a fake one; its extents are numbers."""
    return TensorType(tuple(int(extent) for extent in tensor.shape), element_type_of(tensor.dtype))


def to_array(tensor: torch.Tensor) -> np.ndarray:
    """Returns a tensor as an array: over the same memory if its elements are in the host's, else over new memory."""
    if tensor.device.type not in ("cpu", "cuda"):
        raise Error(f"a tensor is on the device {tensor.device}, expected cpu or cuda")
    if tensor.layout is not torch.strided:
        raise Error(f"a tensor has the layout {tensor.layout}, expected a dense one")
    # AOTAutograd calls compilers while tensors are fake; this one, a constant of the graph, is real.
    with unset_fake_temporarily():
        tensor = resolved(tensor).cpu()
        carrier = _CARRIERS.get(tensor.dtype)
        return tensor.numpy() if carrier is None else tensor.view(carrier[0]).numpy().view(carrier[1])


def resolved(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor whose elements are in memory: those of lazily conjugated and negated tensors are not, and zeros
    of forward-mode differentiation have no memory."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.clone() if tensor._is_zerotensor() else tensor


def to_tensor(array: np.ndarray) -> torch.Tensor:
    """Returns a writable array as a tensor over the same memory."""
    if not array.size:
        return torch.empty(array.shape, dtype=DTYPES[types.element_type_of(array.dtype)])
    carried = _CARRIED.get(array.dtype)
    if carried is None:
        return torch.from_numpy(array)
    dtype, carrier = carried
    return torch.from_numpy(array.view(np.int16 if carrier is torch.int16 else np.uint8)).view(dtype)
