"""Models of PyTorch for a GPU: one image or sequence at a time, where the host's time counts, and batches, where the
GPU's own does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.launches import without_dropout
from benchmarks.rows.models import Decoder, Part, bert_base, resnet_50


@dataclass(frozen=True)
class Workload:
    """A model, and what is done with it."""

    example: Callable[[], Any]
    """Makes the model and its inputs."""
    trains: bool = False
    """Whether a run computes the gradients of all parameters."""
    dtype: torch.dtype = torch.float32
    """Of parameters and inputs in inference; in training, the type to which PyTorch's autocast converts."""


def bert_of_batches() -> Any:
    from transformers import BertConfig, BertModel

    return Part(BertModel(BertConfig()), "input_ids"), (torch.randint(0, 30_000, (32, 512)),)


def vit_of_batches() -> Any:
    from transformers import ViTConfig, ViTModel

    return Part(ViTModel(ViTConfig()), "pixel_values"), (torch.randn(32, 3, 224, 224),)


def resnet_of_batches() -> Any:
    return resnet_50()[0], (torch.randn(64, 3, 224, 224),)


def resnet_with_features_last() -> Any:
    model, (images,) = resnet_of_batches()
    return model.to(memory_format=torch.channels_last), (images.to(memory_format=torch.channels_last),)


def gpt2_without_dropout(*shape: int) -> Any:
    """Returns GPT-2 for training, whose gradients do not depend on random numbers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    return Part(model, "input_ids"), (torch.randint(0, 50_000, shape),)


def llama_decoder() -> Any:
    """Returns a step of a decoder of 1.2 G parameters, all of which it reads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32, num_key_value_heads=8
    )
    return Decoder(LlamaForCausalLM(config)), (torch.randint(0, 30_000, (1, 1)),)


BF16 = torch.bfloat16

WORKLOADS = {
    "BERT-base": Workload(bert_base),
    "ResNet-50": Workload(resnet_50),
    "BERT-base, training step": Workload(without_dropout, trains=True),
    "ResNet-50, training step": Workload(resnet_50, trains=True),
    "GPT-2, training step": Workload(lambda: gpt2_without_dropout(1, 128), trains=True),
    "Llama, decoding, bf16": Workload(llama_decoder, dtype=BF16),
    "BERT-base, 32 x 512, bf16": Workload(bert_of_batches, dtype=BF16),
    "ViT-base, 32 images, bf16": Workload(vit_of_batches, dtype=BF16),
    "ResNet-50, 64 images": Workload(resnet_of_batches),
    "ResNet-50, 64 images, bf16": Workload(resnet_with_features_last, dtype=BF16),
    "ResNet-50, training step, 64 images, bf16": Workload(resnet_with_features_last, trains=True, dtype=BF16),
    "GPT-2, training step, 8 x 1024": Workload(lambda: gpt2_without_dropout(8, 1024), trains=True),
    "GPT-2, training step, 8 x 1024, bf16": Workload(lambda: gpt2_without_dropout(8, 1024), trains=True, dtype=BF16),
}
