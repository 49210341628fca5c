"""The models that the PyTorch tests share: small, with random weights from a seed, without dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Built = tuple[nn.Module, tuple[torch.Tensor, ...]]


class SequenceClassifier(nn.Module):
    """An embedding, a bidirectional LSTM of two layers, and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 12)
        self.lstm = nn.LSTM(12, 16, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        outputs, _ = self.lstm(self.embedding(tokens))
        return self.head(outputs[:, -1])


class Cnn(nn.Module):
    """Two convolutions, pooling, two dense layers, for 8x8 images of digits."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.convolutions(images))


def lstm() -> Built:
    return SequenceClassifier(), (torch.randint(0, 50, (2, 5)),)


def cnn() -> Built:
    return Cnn(), (torch.randn(4, 1, 8, 8),)


SIZES = {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 256}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def bert() -> Built:
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(vocab_size=100, **SIZES, **NO_DROPOUT)), (torch.randint(0, 100, (2, 12)),)


def gpt2() -> Built:
    from transformers import GPT2Config, GPT2Model

    sizes = {"n_layer": 2, "n_embd": 128, "n_head": 2, "vocab_size": 100, "n_positions": 32}
    tokens = {"bos_token_id": 0, "eos_token_id": 0}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(**sizes, **tokens, **dropout, use_cache=False)
    return GPT2Model(config), (torch.randint(0, 100, (2, 12)),)


def vit() -> Built:
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig(image_size=32, patch_size=8, **SIZES, **NO_DROPOUT)), (torch.randn(2, 3, 32, 32),)


def resnet() -> Built:
    from transformers import ResNetConfig, ResNetForImageClassification

    sizes = {"embedding_size": 16, "hidden_sizes": [16, 32, 64, 64], "depths": [1, 1, 1, 1]}
    model = ResNetForImageClassification(ResNetConfig(**sizes, layer_type="basic", num_labels=5))
    return _scaled(model), (torch.randn(2, 3, 64, 64),)


def mobilenet() -> Built:
    from transformers import MobileNetV2Config, MobileNetV2Model

    model = MobileNetV2Model(MobileNetV2Config(image_size=64, depth_multiplier=0.35))
    return _scaled(model), (torch.randn(1, 3, 64, 64),)


def _scaled(model: nn.Module) -> nn.Module:
    """Sets weights that preserve the scale of activations, and statistics that are not 0 and 1."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return model


MODELS: dict[str, Callable[[], Built]] = {
    model.__name__: model for model in (bert, gpt2, vit, resnet, mobilenet, lstm, cnn)
}


def build(name: str) -> Built:
    """Returns a model, in evaluation mode, and its inputs; the same at each call."""
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    return model.eval(), inputs


def outputs_of(result: Any) -> list[torch.Tensor]:
    """Returns the tensors of a model's result."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]


def difference(ours: Any, theirs: torch.Tensor) -> float:
    """Returns the largest difference, relative to the scale of the expected values."""
    ours = torch.as_tensor(ours)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    scale = theirs.abs().max().item() or 1.0
    return (ours - theirs).abs().max().item() / scale
