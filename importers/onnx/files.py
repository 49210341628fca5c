"""ONNX models in files: the protocol buffer, and tensors whose bytes are in it or in files beside it, which are mapped
and not read. Nothing outside the model's folder is opened, and no memory is allocated for data that does not exist."""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import external_data_helper, numpy_helper

from trivium.importers.common import require_regular
from trivium.ir.errors import Error


def read_model(
    model: onnx.ModelProto | str | PathLike[str], folder: str | PathLike[str] | None = None
) -> tuple[onnx.ModelProto, str]:
    """Returns the model, and the folder of its external data: by default, that of the model's file."""
    if folder is not None and not Path(folder).is_dir():
        raise Error(f"the folder of external data is {folder}, expected one that exists")
    if isinstance(model, onnx.ModelProto):
        return model, "" if folder is None else str(folder)
    if not isinstance(model, str | PathLike):
        raise Error(f"the model is a {type(model).__name__}, expected a path or a ModelProto")
    path = Path(model)
    require_regular(path)
    try:
        proto = onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from None
    except DecodeError as error:
        raise Error(f"{path} is not an ONNX model, or is truncated: {error}") from None
    if not proto.graph.output:
        raise Error(f"{path} is not an ONNX model: its graph has no outputs")
    for name in _names(proto.graph):
        if not isinstance(name, str):  # protocol buffers return text that is not UTF-8 as bytes
            raise Error(f"{path} is not an ONNX model, or is damaged: the name {name!r} is not text")
    return proto, str(path.parent if folder is None else folder)


def array_of(tensor: onnx.TensorProto, folder: str = "") -> np.ndarray:
    """Returns the elements of a tensor, which may be in a file of the folder."""
    try:
        if external_data_helper.uses_external_data(tensor):
            return _external(tensor, folder)
        _require_held(tensor, tensor.ByteSize())
        return np.asarray(numpy_helper.to_array(tensor))
    except (OSError, LookupError, ValueError, TypeError, MemoryError, onnx.checker.ValidationError) as error:
        raise Error(f"tensor {tensor.name} cannot be read: {error}") from None


def _external(tensor: onnx.TensorProto, folder: str) -> np.ndarray:
    """Returns elements in a file: those of whole bytes as a view of it."""
    if not folder:
        raise ValueError("its elements are in a file, expected `folder=` beside the ModelProto")
    info = external_data_helper.ExternalDataInfo(tensor)
    path = _inside(folder, info.location)
    held = _external_size(info, path)
    _require_held(tensor, held)
    count, dtype = math.prod(tensor.dims), onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    is_packed, whole = tensor.data_type in PACKED, count * dtype.itemsize
    if held > whole or (held < whole and not is_packed):
        raise ValueError(f"it has {held} bytes of external data, expected {whole} for {list(tensor.dims)}")
    if is_packed:
        return np.asarray(numpy_helper.to_array(tensor, folder))
    if not count:
        return np.empty(tensor.dims, dtype)
    return np.asarray(np.memmap(path, dtype, "r", info.offset or 0, tuple(tensor.dims)))


PACKED = frozenset(
    code
    for name, code in onnx.TensorProto.DataType.items()
    if name in ("STRING", "INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")
)
"""Element types that are not one or several whole bytes."""


def _inside(folder: str, location: str) -> Path:
    """Returns the path of a file in a folder: not one elsewhere, and no link, which could lead elsewhere."""
    path = Path(folder, location)
    require_regular(path)
    if path.resolve(strict=True) != Path(folder).resolve() / location or not path.is_relative_to(folder):
        raise ValueError(f"its file is {location!r}, expected one in the model's folder, and no link")
    if path.stat().st_nlink > 1:
        raise ValueError(f"its file {location!r} has several names, expected one")
    return path


def _require_held(tensor: onnx.TensorProto, held: int) -> None:
    """Rejects negative sizes, and sizes with more elements than the tensor's bytes can hold."""
    if min(tensor.dims, default=0) < 0:
        raise ValueError(f"it has shape {list(tensor.dims)}, expected no negative extents")
    if math.prod(tensor.dims) > 8 * held:
        raise ValueError(f"it has shape {list(tensor.dims)}, expected no more elements than its {held} bytes hold")


def _external_size(info: external_data_helper.ExternalDataInfo, path: Path) -> int:
    """Returns how many bytes of a file belong to a tensor."""
    behind = path.stat().st_size - (info.offset or 0)
    if behind < 0 or (info.length is not None and info.length > behind):
        raise ValueError(f"it has {info.length} bytes from {info.offset} on, and its file {path.stat().st_size} bytes")
    return behind if info.length is None else info.length


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """Yields all names in a graph, and in the graphs inside it."""
    yield from (entry.name for entry in (*graph.input, *graph.output, *graph.initializer))
    for node in graph.node:
        yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
        for attribute in node.attribute:
            yield attribute.name
            yield from _names(attribute.g)
