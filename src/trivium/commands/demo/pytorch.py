"""The CNN in PyTorch, trained through `torch.compile(model, backend="trivium")`."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

import trivium
from trivium.commands.demo.contestant import Advance, Contestant, Predict
from trivium.commands.demo.data import EPOCHS, LEARNING_RATE, Digits, batches
from trivium.ir.func import Module


def make_model() -> nn.Module:
    """Builds two convolutions with pooling, and two dense layers."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def train(digits: Digits, advance: Advance) -> nn.Module:
    """Trains the model, and returns it; forward and backward run through Trivium, Adam is PyTorch's."""
    torch.manual_seed(0)
    model = make_model()
    compiled = torch.compile(model, backend="trivium", fullgraph=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for epoch in range(EPOCHS):
        for images, labels in batches(digits, epoch):
            optimizer.zero_grad()
            logits = compiled(torch.from_numpy(images).unsqueeze(1))
            nn.functional.cross_entropy(logits, torch.from_numpy(labels)).backward()
            optimizer.step()
            advance()
    return model.eval()


def contest(digits: Digits, advance: Advance) -> tuple[Contestant, nn.Module]:
    """Trains the model; returns it ready for comparison, and the model itself for the export to ONNX."""
    model = train(digits, advance)
    images = torch.from_numpy(digits.test_images).unsqueeze(1)
    module = trivium.from_torch(model, (images,))
    entry = Contestant("PyTorch", module, _predict(model, images), compiler="Inductor")
    try:
        compiled = torch.compile(model, backend="inductor", fullgraph=True)
        predict = _predict(compiled, images)
        predict()
        entry.compiled = predict
    except Exception as error:  # Inductor needs a C++ compiler and more; the demo continues without it
        entry.notes.append(f"Inductor cannot run here: {str(error).splitlines()[0]}")
    return entry, model


def through_onnx(model: nn.Module, digits: Digits, path: Path) -> Module:
    """Exports the model to ONNX, and imports it from there."""
    images = torch.from_numpy(digits.test_images).unsqueeze(1)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns about every missing package
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        torch.onnx.export(model, (images,), str(path), dynamo=True, external_data=False, verbose=False)
    return trivium.from_onnx(path)


def _predict(model: nn.Module, images: torch.Tensor) -> Predict:
    def predict() -> np.ndarray:
        with torch.no_grad():
            return model(images).numpy()

    return predict
