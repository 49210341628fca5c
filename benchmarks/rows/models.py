"""Inference of whole models of PyTorch, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.row import OURS, Call, Row
from benchmarks.rows.with_torch import Example, begin, deployed, frozen, live

NN = torch.nn


class Part(NN.Module):
    """A model that returns one of the results of another one, which it calls with keywords."""

    def __init__(self, model: NN.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, inputs, strict=True)), return_dict=False)[0]


def image() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)


def _resnet(**sizes: Any) -> Example:
    from transformers import ResNetConfig, ResNetForImageClassification

    return Part(ResNetForImageClassification(ResNetConfig(num_labels=1000, **sizes)), "pixel_values"), (image(),)


def resnet_50() -> Example:
    return _resnet()


def resnet_18() -> Example:
    return _resnet(depths=[2, 2, 2, 2], layer_type="basic", hidden_sizes=[64, 128, 256, 512], embedding_size=64)


def mobilenet_v2() -> Example:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    return Part(MobileNetV2ForImageClassification(MobileNetV2Config(num_labels=1000)), "pixel_values"), (image(),)


def vit_base() -> Example:
    from transformers import ViTConfig, ViTForImageClassification

    return Part(ViTForImageClassification(ViTConfig(num_labels=1000)), "pixel_values"), (image(),)


def bert_base() -> Example:
    from transformers import BertConfig, BertModel

    inputs = torch.randint(0, 30_000, (1, 128)), torch.ones(1, 128, dtype=torch.int64)
    return Part(BertModel(BertConfig()), "input_ids", "attention_mask"), inputs


def gpt2() -> Example:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    return Part(model, "input_ids"), (torch.randint(0, 50_000, (1, 128)),)


def experts(length: int) -> Callable[[], Example]:
    """Two layers of Qwen3's kind, of which each token uses 4 of 32 experts."""

    def example() -> Example:
        from transformers import Qwen3MoeConfig, Qwen3MoeModel

        sizes = {"hidden_size": 512, "moe_intermediate_size": 512, "num_hidden_layers": 2, "head_dim": 64}
        counts = {"num_attention_heads": 8, "num_key_value_heads": 2, "num_experts": 32, "num_experts_per_tok": 4}
        model = Qwen3MoeModel(Qwen3MoeConfig(vocab_size=1000, use_cache=False, **sizes, **counts))
        return Part(model, "input_ids"), (torch.randint(0, 1000, (1, length)),)

    return example


class Decoder(NN.Module):
    """One step of a decoder: the token after the first half of a static cache, which is the same in every call."""

    LENGTH = 256

    def __init__(self, model: Any) -> None:
        super().__init__()
        from transformers import StaticCache

        self.model = model.eval()
        self.cache = StaticCache(config=model.config, max_cache_len=self.LENGTH)
        with torch.no_grad():
            self.model(torch.randint(0, 30_000, (1, self.LENGTH // 2)), past_key_values=self.cache)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Decoder:
        """Converts and moves the cache, too, whose tensors are no buffers of a module."""
        for layer in self.cache.layers:
            layer.keys, layer.values = fn(layer.keys), fn(layer.values)  # type: ignore[union-attr]
            layer.cumulative_length = fn(layer.cumulative_length)  # type: ignore[union-attr]
            layer.dtype, layer.device = layer.keys.dtype, layer.keys.device  # type: ignore[union-attr]
        return super()._apply(fn, recurse)

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        for layer in self.cache.layers:
            layer.cumulative_length.fill_(self.LENGTH // 2)  # type: ignore[union-attr]
        place = torch.full((1, 1), self.LENGTH // 2, device=token.device)
        return self.model(token, past_key_values=self.cache, position_ids=place, return_dict=False)[0]


def decoder() -> Example:
    from transformers import GPT2Config, GPT2LMHeadModel

    return Decoder(GPT2LMHeadModel(GPT2Config())), (torch.randint(0, 50_000, (1, 1)),)


def growing_cache(threads: int) -> dict[str, Call]:
    """One step of GPT-2 after the other: the size of its cache is another one in each, until it has 640 tokens. So
    results are compared here, and not later by calls that contenders do not have in equal numbers."""
    from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

    model, (token,) = begin(lambda: (GPT2LMHeadModel(GPT2Config()), (torch.randint(0, 50_000, (1, 1)),)), threads)
    prompt = torch.randint(0, 50_000, (1, 128))

    def call(step: Callable[..., Any]) -> Callable[[], Any]:
        cache = DynamicCache()

        @torch.no_grad()
        def run() -> object:
            nonlocal cache
            if not 0 < cache.get_seq_length() < 640:
                cache = DynamicCache()
                model(prompt, past_key_values=cache)
            return step(token, past_key_values=cache, return_dict=False)[0]

        return run

    steps = {OURS: torch.compile(model, backend="trivium"), "eager": model, "inductor": torch.compile(model)}
    calls = {name: call(step) for name, step in steps.items()}
    for _ in range(32):  # The sizes become dynamic, and further ones run in PyTorch, before one program has many.
        ours, *others = (run() for run in calls.values())
        for other in others:
            torch.testing.assert_close(ours, other, rtol=1e-3, atol=1e-3)
    return calls


class Sequence(NN.Module):
    """A recurrent network whose result is the whole sequence."""

    def __init__(self, network: NN.RNNBase) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)[0]


def lstm() -> Example:
    return Sequence(NN.LSTM(512, 512, 2, batch_first=True)), (torch.randn(8, 64, 512),)


def gru() -> Example:
    return Sequence(NN.GRU(256, 256, 2, batch_first=True)), (torch.randn(8, 32, 256),)


MODELS: dict[str, tuple[Any, float | None]] = {
    "ResNet-50 b1": (resnet_50, 8.18e9),
    "MobileNetV2 b1": (mobilenet_v2, 0.60e9),
    "ViT-base b1": (vit_base, 32.8e9),  # its last layer for the one token that the classifier reads
    "BERT-base s128": (bert_base, 22.3e9),
    "GPT-2 s128, logits": (gpt2, 32.2e9),
    "LSTM 2x512 s64 b8": (lstm, 1.64e9),
}
DEPLOYED = "ResNet-50 b1", "MobileNetV2 b1"
ROWS: tuple[Row, ...] = (
    *(kind(name, example, flops=flops) for name, (example, flops) in MODELS.items() for kind in (live, frozen)),
    frozen("ResNet-18 b1", resnet_18, flops=3.63e9),
    frozen("ResNet-18 b1", resnet_18, fast=True),
    frozen("ResNet-50 b1", resnet_50, fast=True),
    live("GPT-2 step, static cache of 256", decoder, flops=0.25e9),
    live("GRU 2x256 s32 b8", gru, flops=0.40e9),
    live("32 experts s128", experts(128)),
    live("32 experts, one token", experts(1)),
    Row("GPT-2 steps, growing cache", growing_cache, tolerance=None),
    *(deployed(name, MODELS[name][0], flops=MODELS[name][1]) for name in DEPLOYED),
)
