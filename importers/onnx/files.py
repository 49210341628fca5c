"""ONNX models in files: the protocol buffer, and tensors whose bytes are in it or in files beside it. Nothing outside
the model's folder is read, and no memory is allocated for data that does not exist."""

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


def read_model(model: onnx.ModelProto | str | PathLike[str]) -> tuple[onnx.ModelProto, str]:
    """Returns the model, and the folder of its external data."""
    if isinstance(model, onnx.ModelProto):
        return model, ""
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
    folder = str(path.parent)
    for tensor in _constants(proto):
        if external_data_helper.uses_external_data(tensor):
            tensor.CopyFrom(numpy_helper.from_array(array_of(tensor, folder), tensor.name))
    return proto, folder


def array_of(tensor: onnx.TensorProto, folder: str = "") -> np.ndarray:
    """Returns the elements of a tensor, which may be in a file of the folder."""
    try:
        _require_held(tensor, folder)
        return np.asarray(numpy_helper.to_array(tensor, folder))
    except (OSError, LookupError, ValueError, TypeError, MemoryError, onnx.checker.ValidationError) as error:
        raise Error(f"tensor {tensor.name} cannot be read: {error}") from None


def _require_held(tensor: onnx.TensorProto, folder: str) -> None:
    """Rejects negative sizes, and sizes with more elements than the tensor's bytes can hold, or fewer than would be
    read."""
    if min(tensor.dims, default=0) < 0:
        raise ValueError(f"it has shape {list(tensor.dims)}, expected no negative extents")
    count, held = math.prod(tensor.dims), tensor.ByteSize()
    if external_data_helper.uses_external_data(tensor):
        held = _external_size(external_data_helper.ExternalDataInfo(tensor), folder)
        needed = count * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        if held > needed:
            raise ValueError(f"it has {held} bytes of external data, expected {needed} for {list(tensor.dims)}")
    if count > 8 * held:
        raise ValueError(f"it has shape {list(tensor.dims)}, expected no more elements than its {held} bytes hold")


def _external_size(info: external_data_helper.ExternalDataInfo, folder: str) -> int:
    """Returns how many bytes ONNX would read; ONNX itself rejects paths outside the folder, and links."""
    path = Path(folder) / info.location
    require_regular(path)
    held = path.stat().st_size - (info.offset or 0)
    return held if info.length is None else min(info.length, held)


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """Yields all names in a graph, and in the graphs inside it."""
    yield from (entry.name for entry in (*graph.input, *graph.output, *graph.initializer))
    for node in graph.node:
        yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
        for attribute in node.attribute:
            yield attribute.name
            yield from _names(attribute.g)


def _constants(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yields the tensors in the attributes of nodes."""
    stack: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    while stack:
        for node in stack.pop().node:
            for attribute in node.attribute:
                yield from (attribute.t, *attribute.tensors)
                stack += [attribute.g, *attribute.graphs]
