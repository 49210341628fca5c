"""Single matrix products and convolutions, of the shapes that occur in models, with shares of the processor's limit."""

from __future__ import annotations

import math
from typing import Any

import torch

from benchmarks.row import Row
from benchmarks.rows.with_torch import deployed, frozen, live

NN = torch.nn


def linear(rows: int, outputs: int, inputs: int, **fields: Any) -> tuple[Row, ...]:
    """A product of rows x inputs and inputs x outputs, with a bias."""

    def example() -> Any:
        return NN.Linear(inputs, outputs), (torch.randn(rows, inputs),)

    return each(f"linear {rows}x{outputs}x{inputs}", example, 2 * rows * outputs * inputs, **fields)


class Gradient(NN.Module):
    """The gradient of a linear layer's weights."""

    def forward(self, results: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        return results.T @ inputs


def gradient(rows: int, outputs: int, inputs: int) -> tuple[Row, ...]:
    """The gradient of the weights of a product of rows x inputs and inputs x outputs."""

    def example() -> Any:
        return Gradient(), (torch.randn(rows, outputs), torch.randn(rows, inputs))

    name, flops = f"gradient of weights {rows}x{outputs}x{inputs}", 2 * rows * outputs * inputs
    return live(name, example, flops=flops), deployed(name, example, flops=flops)


class Residual(NN.Module):
    """A linear layer, to whose results others are added."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.linear = NN.Linear(inputs, outputs)

    def forward(self, inputs: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        return NN.functional.relu(self.linear(inputs) + others)


def residual(rows: int, outputs: int, inputs: int) -> tuple[Row, ...]:
    """A product of rows x inputs and inputs x outputs, with a bias and a residual."""

    def example() -> Any:
        return Residual(outputs, inputs), (torch.randn(rows, inputs), torch.randn(rows, outputs))

    return each(f"linear and residual {rows}x{outputs}x{inputs}", example, 2 * rows * outputs * inputs)


def layers(count: int, rows: int, features: int) -> tuple[Row, ...]:
    """Linear layers one after the other, whose weights are larger than the caches together."""

    def example() -> Any:
        return NN.Sequential(*(NN.Linear(features, features) for _ in range(count))), (torch.randn(rows, features),)

    return each(f"{count} layers of {rows}x{features}x{features}", example, 2 * count * rows * features**2)


class Products(NN.Module):
    """Products with matrices that are not transposed, as those of GPT-2 are not."""

    def __init__(self, count: int, features: int) -> None:
        super().__init__()
        weights = (torch.randn(features, features) / features**0.5 for _ in range(count))
        self.weights = NN.ParameterList(map(NN.Parameter, weights))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for weight in self.weights:
            inputs = inputs @ weight
        return inputs


def products(count: int, rows: int, features: int) -> tuple[Row, ...]:
    """Products one after the other with matrices that are not transposed, which are larger than the caches together."""

    def example() -> Any:
        return Products(count, features), (torch.randn(rows, features),)

    return each(f"{count} products of {rows}x{features}x{features}", example, 2 * count * rows * features**2)


def convolution(channels: int, size: int, features: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    """A convolution of one square image."""

    def example() -> Any:
        module = NN.Conv2d(channels, features, kernel, stride, kernel // 2, groups=groups)
        return module, (torch.randn(1, channels, size, size),)

    outputs = math.ceil(size / stride) ** 2 * features
    in_groups = "" if groups == 1 else " depthwise" if groups == channels else f" in {groups} groups"
    name = f"{kernel}x{kernel}/{stride} {channels} to {features} at {size}{in_groups}"
    return each(name, example, 2 * outputs * channels // groups * kernel**2)


def each(name: str, example: Any, flops: int, **fields: Any) -> tuple[Row, ...]:
    """The rows of an example in all the ways to call it: a call of a short program through `torch.compile` spends a
    part of its time on PyTorch's guards."""
    compiled = live(name, example, flops=flops, **fields), frozen(name, example, flops=flops)
    return *compiled, deployed(name, example, flops=flops)


LINEAR = (
    (512, 512, 512),
    (1024, 1024, 1024),
    (128, 3072, 768),
    (128, 768, 768),
    (197, 768, 3072),
    (24, 768, 3072),
    (1, 3072, 768),
)
GRADIENT = ((1024, 1024, 256), (1024, 256, 1024), (4096, 256, 256), (3136, 256, 64))
RESIDUAL = ((3136, 256, 64), (1024, 1024, 256))
LAYERS = ((16, 1, 1024), (16, 8, 1024))
PRODUCTS = (*LAYERS, (8, 128, 512))
CONVOLUTION = (
    (3, 224, 64, 7, 2),
    (64, 56, 64, 3),
    (64, 56, 256, 1),
    (128, 56, 32, 3),
    (128, 28, 128, 3),
    (256, 28, 256, 3),
    (256, 14, 256, 3),
    (512, 7, 512, 3),
    (1024, 14, 2048, 1, 2),
    (144, 56, 144, 3, 1, 144),
    (256, 56, 256, 3, 2, 32),
    (16, 112, 16, 3),
)
KINDS = (
    *((linear, LINEAR), (gradient, GRADIENT), (residual, RESIDUAL), (layers, LAYERS), (products, PRODUCTS)),
    (convolution, CONVOLUTION),
)
ROWS = tuple(row for kind, shapes in KINDS for shape in shapes for row in kind(*shape))
