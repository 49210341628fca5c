"""Products and convolutions of narrow numbers: of bf16 through `torch.compile`, beside PyTorch and Inductor, and of
quantized ones from ONNX, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper

import trivium
from benchmarks.row import OURS, Call, Row
from benchmarks.rows.with_torch import live

NN = torch.nn


def bf16(name: str, module: Any, shape: tuple[int, ...], flops: int) -> Row:
    def example() -> Any:
        return module().to(torch.bfloat16), (torch.randn(shape, dtype=torch.bfloat16),)

    return live(f"{name}, bf16", example, flops=flops, tolerance=2e-2)


def quantized(name: str, op: str, shape: tuple[int, ...], weights: tuple[int, ...], flops: int, **options: Any) -> Row:
    """Returns the row of an operator. On processors without products of bytes, ONNX Runtime adds pairs of products in
    16 bits, and saturates. Sums with weights of 7 bits fit."""

    def make(threads: int) -> dict[str, Call]:
        rng = np.random.default_rng(0)
        model = _model(op, shape, rng.integers(-64, 64, weights, np.int8), options)
        x = rng.integers(0, 256, shape, np.uint8)
        run = trivium.compile(trivium.from_onnx(model), threads=threads)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
        peer = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
        return {OURS: lambda: run(x), "onnxruntime": lambda: peer.run(None, {"x": x})}

    return Row(f"{name}, i8", make, flops=flops, tolerance=1e-2)


def _model(op: str, shape: tuple[int, ...], weights: np.ndarray, options: dict[str, Any]) -> onnx.ModelProto:
    numbers = {
        "x_scale": np.float32(0.02), "x_zero": np.uint8(133), "w": weights, "w_scale": np.float32(0.01),
        "w_zero": np.int8(0), "y_scale": np.float32(0.5), "y_zero": np.uint8(100),
    }  # fmt: skip
    node = helper.make_node(op, ["x", *numbers], ["y"], **options)
    given = helper.make_tensor_value_info("x", TensorProto.UINT8, shape)
    result = helper.make_tensor_value_info("y", TensorProto.UINT8, [None] * len(shape))
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in numbers.items()]
    graph = helper.make_graph([node], "graph", [given], [result], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _products(rows: int, outputs: int, inputs: int) -> int:
    return 2 * rows * outputs * inputs


ROWS = (
    bf16("linear 128x3072x768", lambda: NN.Linear(768, 3072), (128, 768), _products(128, 3072, 768)),
    bf16("linear 512x512x512", lambda: NN.Linear(512, 512), (512, 512), _products(512, 512, 512)),
    bf16("linear 1x3072x768", lambda: NN.Linear(768, 3072), (1, 768), _products(1, 3072, 768)),
    bf16("3x3/1 64 to 64 at 56", lambda: NN.Conv2d(64, 64, 3, 1, 1), (1, 64, 56, 56), _products(56 * 56, 64, 64 * 9)),
    quantized("product 128x3072x768", "QLinearMatMul", (128, 768), (768, 3072), _products(128, 3072, 768)),
    quantized("product 512x512x512", "QLinearMatMul", (512, 512), (512, 512), _products(512, 512, 512)),
    quantized("3x3/1 64 to 64 at 56", "QLinearConv", (1, 64, 56, 56), (64, 64, 3, 3), _products(56 * 56, 64, 64 * 9),
              pads=[1, 1, 1, 1]),
)  # fmt: skip
