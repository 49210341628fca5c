"""Training steps in PyTorch: forward, backward, and plain gradient descent."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.row import OURS, Call, Row

NN = torch.nn


def row(name: str, example: Callable[[], Any]) -> Row:
    """Returns a step for each contender, on a separate copy of the model."""

    def make(threads: int) -> dict[str, Call]:
        torch._dynamo.reset()
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        model, inputs, labels = example()
        backends: dict[str, Any] = {OURS: "trivium", "inductor": "inductor", "eager": None}
        return {name: step(copy.deepcopy(model), backend, inputs, labels) for name, backend in backends.items()}

    return Row(name, make, tolerance=None)


def step(model: NN.Module, backend: str | None, inputs: torch.Tensor, labels: torch.Tensor) -> Call:
    run: Any = torch.compile(model, backend=backend) if backend else model
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def call() -> torch.Tensor:
        optimizer.zero_grad()
        loss = NN.functional.cross_entropy(run(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    return call


def mlp() -> Any:
    layers = NN.Linear(784, 512), NN.ReLU(), NN.Linear(512, 512), NN.ReLU(), NN.Linear(512, 10)
    return NN.Sequential(*layers), torch.randn(128, 784), torch.randint(0, 10, (128,))


def bert_mini() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    from benchmarks.rows.models import Part

    config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    model = BertForSequenceClassification(config)
    return Part(model, "input_ids"), torch.randint(0, 30_000, (8, 128)), torch.randint(0, 2, (8,))


def resnet_18() -> Any:
    from transformers import ResNetConfig, ResNetForImageClassification

    from benchmarks.rows.models import Part

    config = ResNetConfig(
        depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", num_labels=10, embedding_size=64
    )
    model = Part(ResNetForImageClassification(config), "pixel_values")
    return model, torch.randn(4, 3, 224, 224), torch.randint(0, 10, (4,))


def mobilenet_v2() -> Any:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    from benchmarks.rows.models import Part

    model = Part(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=10)), "pixel_values")
    return model, torch.randn(4, 3, 224, 224), torch.randint(0, 10, (4,))


def efficientnet() -> Any:
    """With a pool whose windows are larger than the image."""
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    from benchmarks.rows.models import Part

    config = EfficientNetConfig(image_size=224, width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280)
    config.num_labels, config.dropout_rate, config.drop_connect_rate = 10, 0.0, 0.0
    model = Part(EfficientNetForImageClassification(config), "pixel_values")
    return model, torch.randn(1, 3, 224, 224), torch.randint(0, 10, (1,))


ROWS = (
    row("MLP step b128", mlp),
    row("BERT-mini step b8 s128", bert_mini),
    row("ResNet-18 step b4", resnet_18),
    row("MobileNetV2 step b4", mobilenet_v2),
    row("EfficientNet-B0 step b1", efficientnet),
)
