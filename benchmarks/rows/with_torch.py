"""Contenders of PyTorch's modules: our backend of `torch.compile` and Inductor, with parameters that may change and
with frozen ones, our programs compiled ahead of time, PyTorch itself, and ONNX Runtime, which always freezes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch

import trivium
from benchmarks.row import OURS, Call, Row

Example = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def live(name: str, example: Callable[[], Example], **fields: Any) -> Row:
    """A row of the contenders that let weights change between calls."""

    def make(threads: int) -> dict[str, Call]:
        model, inputs = begin(example, threads)
        ours = torch.compile(model, backend="trivium")
        return called({OURS: ours, "eager": model, "inductor": torch.compile(model)}, inputs)

    return Row(name, make, **fields)


def frozen(name: str, example: Callable[[], Example], fast: bool = False, **fields: Any) -> Row:
    """A row of the contenders that compile weights as constants; `fast`, with ours under fast math."""

    def make(threads: int) -> dict[str, Call]:
        model, inputs = begin(example, threads)
        calls = {
            OURS: torch.compile(model, backend="trivium", options={"freeze": True, "fast_math": fast}),
            "inductor": torch.compile(model, options={"freezing": True}),
        }
        return called(calls, inputs) | {"onnxruntime": onnx_runtime(model, inputs, threads)}

    return Row(f"{name}, frozen" + (", fast math" if fast else ""), make, **fields)


def ahead(name: str, example: Callable[[], Example], **fields: Any) -> Row:
    """A row of small programs, compiled ahead of time: Trivium and ONNX Runtime are called with arrays."""

    def make(threads: int) -> dict[str, Call]:
        model, inputs = begin(example, threads)
        peers = called({"eager": model, "inductor": torch.compile(model)}, inputs)
        return with_arrays(model, inputs, threads) | peers

    return Row(name, make, **fields)


def deployed(name: str, example: Callable[[], Example], **fields: Any) -> Row:
    """A row of models as they are deployed, without PyTorch: compiled ahead of time, with weights as constants, and
    called with arrays."""

    def make(threads: int) -> dict[str, Call]:
        return with_arrays(*begin(example, threads), threads)

    return Row(f"{name}, ahead of time", make, **fields)


def with_arrays(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], threads: int) -> dict[str, Call]:
    """The calls of Trivium and ONNX Runtime that take and return NumPy's arrays."""
    run = trivium.compile(trivium.from_torch(model, inputs), threads=threads)
    arrays = [x.numpy() for x in inputs]
    return {OURS: lambda: run(*arrays), "onnxruntime": onnx_runtime(model, inputs, threads)}


def begin(example: Callable[[], Example], threads: int) -> Example:
    """Returns the module and its inputs, for inference, with the same random numbers in each row."""
    torch._dynamo.reset()
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, inputs = example()
    return model.eval(), inputs


def called(modules: dict[str, Any], inputs: tuple[torch.Tensor, ...]) -> dict[str, Call]:
    def call(module: Any) -> Call:
        def run() -> object:
            with torch.no_grad():
                return module(*inputs)

        run()
        return run

    return {name: call(module) for name, module in modules.items()}


def onnx_runtime(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], threads: int) -> Call:
    """ONNX Runtime on the model that PyTorch exports."""
    names = [f"x{index}" for index in range(len(inputs))]
    opened = session(exported(model, inputs, names), threads)
    feeds = {name: x.numpy() for name, x in zip(names, inputs, strict=True)}
    return lambda: opened.run(None, feeds)


def session(model: bytes, threads: int) -> Any:
    """ONNX Runtime on a model, ready to run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def exported(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], names: list[str]) -> bytes:
    """The model as PyTorch's exporter of traces writes it or, if that lacks an operator, the one on `torch.export`."""
    file = io.BytesIO()
    try:
        torch.onnx.export(model, inputs, file, dynamo=False, input_names=names, opset_version=18)
    except torch.onnx.errors.UnsupportedOperatorError:
        program = torch.onnx.export(model, inputs, dynamo=True, input_names=names, opset_version=18)
        assert program is not None
        return program.model_proto.SerializeToString()
    return file.getvalue()
