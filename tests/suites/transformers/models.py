"""Architectures of Hugging Face's transformers with tiny random weights, compiled by Trivium, against PyTorch without a
compiler: inference, and one step of training."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from tests.suites.transformers.architectures import Architecture

TOLERANCE = 2e-4
"""Relative to the largest element of a tensor."""


def built(architecture: Architecture) -> tuple[nn.Module, dict[str, Any]]:
    """Returns a model with random weights and without dropout, and an input for it."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{architecture.name}Config")(**architecture.config)
    for name in vars(config):
        if "drop" in name and isinstance(getattr(config, name), float):
            setattr(config, name, 0.0)
    if hasattr(config, "apply_spec_augment"):
        config.apply_spec_augment = False
    model = getattr(transformers, f"{architecture.name}Model")(config)
    # Initial weights are so small that differences would not show.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                is_window = parameter.dim() > 3  # the weight of a convolution
                parameter.normal_(0, (parameter[0].numel() if is_window else parameter.shape[-1]) ** -0.5)
    return model, INPUTS[architecture.kind]()


def _words() -> Tensor:
    return torch.randint(3, 31, (2, 8))


def _series() -> dict[str, Tensor]:
    return {
        "past_values": torch.randn(2, 10),
        "past_time_features": torch.randn(2, 10, 1),
        "past_observed_mask": torch.ones(2, 10),
        "future_values": torch.randn(2, 4),
        "future_time_features": torch.randn(2, 4, 1),
    }


def _decisions() -> dict[str, Tensor]:
    return {
        "states": torch.randn(2, 6, 5),
        "actions": torch.randn(2, 6, 3),
        "rewards": torch.randn(2, 6, 1),
        "returns_to_go": torch.randn(2, 6, 1),
        "timesteps": torch.arange(6).expand(2, 6),
        "attention_mask": torch.ones(2, 6, dtype=torch.long),
    }


INPUTS: dict[str, Callable[[], dict[str, Any]]] = {
    "words": lambda: {"input_ids": _words()},
    "both": lambda: {"input_ids": _words(), "decoder_input_ids": _words()},
    "pictures": lambda: {"pixel_values": torch.randn(2, 3, 16, 16)},
    "large pictures": lambda: {"pixel_values": torch.randn(2, 3, 32, 32)},
    "pictures and words": lambda: {"input_ids": _words(), "pixel_values": torch.randn(2, 3, 16, 16)},
    "films": lambda: {"pixel_values": torch.randn(2, 4, 3, 16, 16)},
    "features": lambda: {"inputs": torch.randn(2, 8, 12)},
    "sound": lambda: {"input_values": torch.randn(2, 64)},
    "wave": lambda: {"input_values": torch.randn(2, 1, 64)},
    "sound and words": lambda: {"input_features": torch.randn(2, 8, 32), "decoder_input_ids": _words()},
    "vectors and words": lambda: {
        "encoder_outputs": (torch.randn(2, 8, 16),),
        "decoder_input_values": torch.randn(2, 8, 16),
    },
    "series": _series,
    "measures": lambda: {"past_values": torch.randn(2, 16, 2)},
    "decisions": _decisions,
}


def _first(outputs: Any) -> Tensor:
    return next(x for x in outputs.values() if isinstance(x, Tensor) and x.is_floating_point())


def difference(found: Tensor, expected: Tensor) -> float:
    """Returns the largest difference relative to the largest element; infinite if one side alone is not finite."""
    if found.shape != expected.shape or not torch.equal(found.isfinite(), expected.isfinite()):
        return float("inf")
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-3))


def inference(architecture: Architecture, **options: Any) -> float:
    """Returns by how much the output of the compiled model differs from that of the model."""
    model, inputs = built(architecture)
    model.eval()
    torch._dynamo.reset()
    with torch.no_grad():
        expected = _first(model(**inputs))
        return difference(_first(torch.compile(model, backend="trivium", **options)(**inputs)), expected)


def _loss(output: Tensor) -> Tensor:
    """Returns a mean that weighs each element by its place: of normalized rows, the mean of squares is a constant."""
    weights = torch.arange(output.numel()).remainder(7).reshape(output.shape) - 2.5
    return (output.square() * weights).mean()


def training(architecture: Architecture, **options: Any) -> float:
    """Returns by how much a gradient differs at most after one step, relative to the largest one."""
    model, inputs = built(architecture)
    model.train()
    torch._dynamo.reset()
    moved = []
    for compiled in (False, True):
        own = deepcopy(model)
        run = torch.compile(own, backend="trivium", **options) if compiled else own
        _loss(_first(run(**inputs))).backward()
        # A compiled graph gives zeros to parameters that have no influence, where eager gives nothing.
        moved.append([torch.zeros_like(x) if x.grad is None else x.grad for x in own.parameters()])
    expected, found = moved
    largest = max(float(x.abs().max()) for x in expected)
    if not all(torch.equal(x.isfinite(), y.isfinite()) for x, y in zip(found, expected, strict=True)):
        return float("inf")
    return max(float((x - y).abs().max()) for x, y in zip(found, expected, strict=True)) / largest
