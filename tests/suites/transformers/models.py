"""Architectures of Hugging Face's transformers with tiny random weights, compiled by Trivium, against PyTorch without a
compiler: inference, and one step of training."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor, nn

TOLERANCE = 2e-4
"""Relative to the largest element of a tensor."""

WORDS = {"vocab_size": 31, "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
SHARED = {"num_key_value_heads": 2, "use_cache": False, "head_dim": 4}
PICTURES = {"image_size": 16, "patch_size": 4, "num_channels": 3}
SIDES = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
SIDES |= {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "d_model": 16, "use_cache": False, "decoder_start_token_id": 1}
T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 1, "num_heads": 4, "vocab_size": 31, "use_cache": False}
SOUNDS = {"conv_dim": (8, 8), "conv_stride": (2, 2), "conv_kernel": (3, 3), "num_feat_extract_layers": 2}
SOUNDS |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "vocab_size": 31}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}


class Architecture(NamedTuple):
    """`config`: the numbers of a small one. `kind`: what it reads."""

    name: str
    config: dict[str, Any]
    kind: str = "words"


ARCHITECTURES = [
    Architecture("Bert", WORDS | SMALL),
    Architecture("Roberta", WORDS | SMALL),
    Architecture("DistilBert", WORDS | {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24}),
    Architecture("Albert", WORDS | SMALL | {"embedding_size": 8}),
    Architecture("Electra", WORDS | SMALL | {"embedding_size": 8}),
    Architecture("DebertaV2", WORDS | SMALL),
    Architecture("GPT2", WORDS | {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32, "use_cache": False}),
    Architecture("GPTNeoX", WORDS | SMALL | {"use_cache": False}),
    Architecture("OPT", WORDS | SMALL | {"ffn_dim": 24, "word_embed_proj_dim": 16, "use_cache": False}),
    Architecture("Llama", WORDS | SMALL | SHARED),
    Architecture("Mistral", WORDS | SMALL | SHARED | {"sliding_window": 4}),
    Architecture("Qwen2", WORDS | SMALL | SHARED),
    Architecture("Gemma", WORDS | SMALL | SHARED),
    Architecture("Phi", WORDS | SMALL | {"use_cache": False}),
    Architecture("Mixtral", WORDS | SMALL | SHARED | EXPERTS),
    Architecture("Bloom", {"vocab_size": 31, "hidden_size": 16, "n_layer": 2, "n_head": 4, "use_cache": False}),
    Architecture("T5", T5, "both"),
    Architecture("Bart", WORDS | SIDES, "both"),
    Architecture("Whisper", {**WORDS, **SIDES, "num_mel_bins": 8, "max_source_positions": 16}, "sound and words"),
    Architecture("ViT", SMALL | PICTURES, "pictures"),
    Architecture("DeiT", SMALL | PICTURES, "pictures"),
    Architecture("ConvNext", {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "patch_size": 4}, "pictures"),
    Architecture(
        "Swin", PICTURES | {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2}, "pictures"
    ),
    Architecture("Wav2Vec2", SMALL | SOUNDS, "sound"),
    Architecture(
        "Mamba", {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4, "use_cache": False}
    ),
]


def built(architecture: Architecture) -> tuple[nn.Module, dict[str, Tensor]]:
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
                parameter.normal_(0, parameter.shape[-1] ** -0.5)
    return model, INPUTS[architecture.kind]()


def _words() -> Tensor:
    return torch.randint(3, 31, (2, 8))


INPUTS: dict[str, Callable[[], dict[str, Tensor]]] = {
    "words": lambda: {"input_ids": _words()},
    "both": lambda: {"input_ids": _words(), "decoder_input_ids": _words()},
    "pictures": lambda: {"pixel_values": torch.randn(2, 3, 16, 16)},
    "sound": lambda: {"input_values": torch.randn(2, 64)},
    "sound and words": lambda: {"input_features": torch.randn(2, 8, 32), "decoder_input_ids": _words()},
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


def training(architecture: Architecture, **options: Any) -> float:
    """Returns by how much a gradient differs at most after one step, relative to the largest one."""
    model, inputs = built(architecture)
    model.train()
    torch._dynamo.reset()
    moved = []
    for compiled in (False, True):
        own = deepcopy(model)
        run = torch.compile(own, backend="trivium", **options) if compiled else own
        _first(run(**inputs)).square().mean().backward()
        # A compiled graph gives zeros to parameters that have no influence, where eager gives nothing.
        moved.append([torch.zeros_like(x) if x.grad is None else x.grad for x in own.parameters()])
    expected, found = moved
    largest = max(float(x.abs().max()) for x in expected)
    if not all(torch.equal(x.isfinite(), y.isfinite()) for x, y in zip(found, expected, strict=True)):
        return float("inf")
    return max(float((x - y).abs().max()) for x, y in zip(found, expected, strict=True)) / largest
