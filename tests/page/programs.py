"""Programs whose pages are tested, and what a written page holds."""

import base64
import json
import re
import zlib
from typing import Any

import trivium
from trivium.ir.core import Operation
from trivium.ir.func import Module
from trivium.ir.location import FileLocation, NameLocation
from trivium.ir.module_path import in_module

TEXT = """
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %bias = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 0x7FC00000]>
      : tensor<16xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x16xf32>
  %3 = stablehlo.tanh %2 : tensor<8x16xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %5 = stablehlo.exponential %4 : tensor<8x16xf32>
  %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  return %5, %6 : tensor<8x16xf32>, tensor<8xf32>
}
"""  # noqa: E501

LOOP = """
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
   }
   do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.sine %a : tensor<4xf32>
    stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}
"""

CALLS = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %a = stablehlo.multiply %one, %x : tensor<4xf32>
  %b = func.call @part(%a, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c = func.call @part(%b, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %dead = stablehlo.sine %c : tensor<4xf32>
  return %c : tensor<4xf32>
}
func.func private @part(%u: tensor<4xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %u, %v : tensor<4xf32>
  %1 = stablehlo.add %u, %v : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""


def located(file: str = "model.py") -> Module:
    """Two layers and a head, with source lines and module paths."""
    module = trivium.parse(TEXT)
    paths = {"dot_general": "encoder.layer", "tanh": "encoder.layer.act", "exponential": "head", "reduce": "head"}
    for number, op in enumerate(module.main.body.walk()):
        place(op, file, number + 1, paths.get(op.NAME.rpartition(".")[2], ""))
    return module


def place(op: Operation, file: str, line: int, path: str) -> None:
    op.location = in_module(NameLocation(f"framework.{op.NAME}", FileLocation(file, line)), path)


def data_of(html: str) -> dict[str, Any]:
    """Returns the data that a page holds."""
    (packed,) = re.findall(r'id="data">([^<]*)</script>', html)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def stages_of(html: str) -> list[str]:
    """Returns the names of the stages on a page."""
    return [stage["name"] for stage in data_of(html)["stages"]]
