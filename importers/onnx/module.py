"""An ONNX model as a whole: its operator sets, its signature, and the function that it becomes."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import SupportsIndex

import onnx

from trivium.importers.common import role
from trivium.importers.onnx.context import Context, Operand, element_type
from trivium.importers.onnx.files import read_model
from trivium.importers.onnx.functions import opsets_of, require_bounded
from trivium.importers.onnx.graph import OnnxImporter, fits
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.errors import Error, UnsupportedOpError
from trivium.ir.func import Function, Module
from trivium.ir.stack import with_stack
from trivium.ir.types import TensorType


@with_stack
def import_module(
    model: onnx.ModelProto | str | PathLike[str], *, shapes: Mapping[str, Sequence[int | None]] | None = None,
    folder: str | PathLike[str] | None = None,
) -> Module:  # fmt: skip
    """Returns the module of an ONNX model: a path, or a `ModelProto`.

    Initializers are constants: views of the model's bytes, or of files in its folder, which is `folder` for a
    `ModelProto`. Dynamic sizes of the model stay dynamic in the module;
    `shapes` maps inputs to shapes that fix them. Raises `Error` if the model is not valid, `UnsupportedOpError` with
    every operator that has no rule."""
    model, place = read_model(model, folder)
    opsets = _opsets(model)
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    require_bounded(model.graph, functions)
    graph = model.graph
    initializers = {tensor.name for tensor in graph.initializer}
    inputs = [info for info in graph.input if info.name not in initializers]
    names = [info.name for info in inputs]
    if len(set(names)) < len(names):
        raise Error(f"the model has the inputs {', '.join(names)}, expected no name twice")
    if not isinstance(shapes or {}, Mapping):
        raise Error(f"shapes is a {type(shapes).__name__}, expected a dictionary from inputs to shapes")
    types = [_input_type(info, shapes or {}) for info in inputs]
    unknown = sorted(map(str, set(shapes or {}) - set(names)))
    if unknown:
        raise Error(f"shapes has {', '.join(unknown)}, expected inputs: {', '.join(names)}")

    def body(builder: Builder, *arguments: Value) -> tuple[Value, ...]:
        importer = OnnxImporter(Context(builder.block), functions, place, opsets)
        importer.environment.update(zip((info.name for info in inputs), arguments, strict=True))
        return tuple(_result(info.name, value) for info, value in zip(graph.output, importer.run(graph), strict=True))

    main = Function.build(
        "main",
        types,
        body,
        arg_attrs=[role("input", info.name) for info in inputs],
        res_attrs=[role("output", info.name) for info in graph.output],
    )
    return Module.build(functions=[main])


def _opsets(model: onnx.ModelProto) -> dict[str, int]:
    opsets = opsets_of(model.opset_import)
    if not opsets:
        raise Error("the model names no version of the ONNX operator set")
    newest = onnx.defs.onnx_opset_version()
    if opsets.get("", 0) > newest:
        has = f"the model is written in version {opsets['']} of the ONNX operator set"
        raise Error(f"{has}, expected at most {newest}, the newest that onnx {onnx.__version__} defines")
    return opsets


def _input_type(info: onnx.ValueInfoProto, shapes: Mapping[str, Sequence[int | None]]) -> TensorType:
    if not info.type.HasField("tensor_type"):
        kind = info.type.WhichOneof("value") or "no type"
        raise UnsupportedOpError(f"input {info.name} has {kind}, expected a tensor")
    tensor = info.type.tensor_type
    kind = element_type(tensor.elem_type)
    extents = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
    if not tensor.HasField("shape") and info.name not in shapes:
        raise Error(f"input {info.name} has no shape; give it as shapes={{'{info.name}': ...}}")
    if info.name in shapes:
        given = _given(info.name, shapes[info.name])
        if tensor.HasField("shape") and not fits(given, extents):
            raise Error(f"shapes gives input {info.name} {given}, expected a shape like {extents}")
        return TensorType(given, kind)
    known = tuple(extent if isinstance(extent, int) else None for extent in extents)
    if min((extent for extent in known if extent is not None), default=0) < 0:
        raise Error(f"input {info.name} has shape {extents}, expected no negative extents")
    return TensorType(known, kind)


def _given(name: str, shape: object) -> tuple[int | None, ...]:
    """Returns a shape that the caller gives; `None` is a size that stays dynamic."""
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise Error(f"shapes gives input {name} {shape!r}, expected a sequence of numbers")
    for extent in shape:
        if extent is not None and (not isinstance(extent, SupportsIndex) or isinstance(extent, bool)):
            raise Error(f"shapes gives input {name} {tuple(shape)}, expected numbers, or None for a dynamic size")
    given = tuple(None if extent is None else operator.index(extent) for extent in shape)
    if any(extent is not None and extent < 0 for extent in given):
        raise Error(f"shapes gives input {name} {given}, expected no negative extents")
    return given


def _result(name: str, value: Operand) -> Value:
    if not isinstance(value, Value):
        raise UnsupportedOpError(f"output {name} is a sequence, or an optional without a value, expected a tensor")
    return value
