"""What the manual takes for granted: files and objects of the reader's own, small, for the code blocks of its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper

import trivium

TEXT = """
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.tanh %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
"""

EXAMPLE = """
import torch


def example():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), torch.ones(2, 4)
"""


def write_files(folder: Path) -> None:
    """Writes models and programs in every format under the names that the pages use."""
    module = trivium.parse(TEXT)
    for name in ("model.mlir", "model.mlirbc", "a.mlirbc", "b.mlirbc"):
        module.save(folder / name)
    (folder / "model.py").write_text(EXAMPLE)
    onnx.save(_onnx(), folder / "model.onnx")
    torch.export.save(torch.export.export(torch.nn.Linear(4, 3), (torch.ones(2, 4),)), folder / "model.pt2")
    _save_tensorflow(folder / "saved_model")


def _onnx() -> onnx.ModelProto:
    images, result = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 3, 224, 224)) for name in ("images", "result")
    )
    graph = helper.make_graph([helper.make_node("Relu", ["images"], ["result"])], "model", [images], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _save_tensorflow(folder: Path) -> None:
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(tf.ones((4, 3)))

        @tf.function(input_signature=[tf.TensorSpec((2, 4), tf.float32)])
        def f(self, x: Any) -> Any:
            return x @ self.weight

    model = Model()
    tf.saved_model.save(model, str(folder), signatures={"serving_default": model.f})
