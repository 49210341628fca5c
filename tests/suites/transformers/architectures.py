"""Architectures of Hugging Face's transformers, each with the numbers of a small one and the kind of its input."""

from __future__ import annotations

from typing import Any, NamedTuple


class Architecture(NamedTuple):
    """`config`: the numbers of a small one. `kind`: what it reads."""

    name: str
    config: dict[str, Any]
    kind: str = "words"


UNCACHED = {"use_cache": False}
WORDS = {"vocab_size": 31, "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
SHARED = UNCACHED | {"num_key_value_heads": 2, "head_dim": 4}
LAYERS = WORDS | SMALL
DECODER = LAYERS | SHARED
PICTURES = {"image_size": 16, "patch_size": 4, "num_channels": 3}
SIDES = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
SIDES |= {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "d_model": 16, "decoder_start_token_id": 1} | UNCACHED
T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 1, "num_heads": 4, "vocab_size": 31} | UNCACHED
SOUNDS = {"conv_dim": (8, 8), "conv_stride": (2, 2), "conv_kernel": (3, 3), "num_feat_extract_layers": 2}
SOUNDS |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "vocab_size": 31}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
STAGES = {"hidden_sizes": [8, 16], "depths": [1, 1]}
STATES = {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4} | UNCACHED
SERIES = {"prediction_length": 4, "context_length": 8, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
SERIES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
SERIES |= {"lags_sequence": [1, 2], "num_time_features": 1} | UNCACHED
PATCHES = {"num_input_channels": 2, "context_length": 16, "patch_length": 4, "patch_stride": 4, "d_model": 16}
PAIR = {"text_config": LAYERS | {"projection_dim": 8}, "vision_config": SMALL | PICTURES | {"projection_dim": 8}}
PAIR |= {"projection_dim": 8}

ENCODERS = [
    Architecture("Bert", LAYERS),
    Architecture("Roberta", LAYERS),
    Architecture("DistilBert", WORDS | {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24}),
    Architecture("Albert", LAYERS | {"embedding_size": 8}),
    Architecture("Electra", LAYERS | {"embedding_size": 8}),
    Architecture("Deberta", LAYERS | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    Architecture("DebertaV2", LAYERS),
    Architecture("BigBird", LAYERS | {"attention_type": "original_full"} | UNCACHED),
    Architecture("Longformer", LAYERS | {"attention_window": 4}),
    Architecture("XLNet", {"vocab_size": 31, "d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 24, "mem_len": 0}),
    Architecture("XLM", WORDS | {"emb_dim": 16, "n_layers": 2, "n_heads": 4}),
    Architecture("MPNet", LAYERS),
    Architecture("FNet", LAYERS),
    Architecture("Funnel", {"vocab_size": 31, "block_sizes": [1, 1], "num_decoder_layers": 1, "d_model": 16,
                            "n_head": 4, "d_head": 4, "d_inner": 24}),
    Architecture("Canine", LAYERS | {"num_hash_functions": 2, "num_hash_buckets": 8, "downsampling_rate": 2,
                                     "upsampling_kernel_size": 2, "local_transformer_stride": 4}),
    Architecture("ConvBert", LAYERS | {"embedding_size": 16, "head_ratio": 2, "conv_kernel_size": 3}),
    Architecture("SqueezeBert", LAYERS | {"embedding_size": 16}),
    Architecture("MobileBert", LAYERS | {"embedding_size": 8, "intra_bottleneck_size": 8, "true_hidden_size": 8}),
    Architecture("RoFormer", LAYERS | {"embedding_size": 16} | UNCACHED),
    Architecture("ModernBert", LAYERS | {"local_attention": 4, "cls_token_id": 1, "sep_token_id": 2}),
    Architecture("Esm", LAYERS | {"position_embedding_type": "rotary"}),
    Architecture("Perceiver", {"num_latents": 4, "d_latents": 16, "d_model": 12, "num_blocks": 1,
                               "num_self_attends_per_block": 1, "num_self_attention_heads": 2,
                               "num_cross_attention_heads": 2}, "features"),
]  # fmt: skip

DECODERS = [
    Architecture("GPT2", WORDS | {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32} | UNCACHED),
    Architecture("GPTNeoX", LAYERS | UNCACHED),
    Architecture("GPTJ", WORDS | {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32, "rotary_dim": 4}
                 | UNCACHED),
    Architecture("CodeGen", WORDS | {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32, "rotary_dim": 4}
                 | UNCACHED),
    Architecture("OPT", LAYERS | {"ffn_dim": 24, "word_embed_proj_dim": 16} | UNCACHED),
    Architecture("Bloom", {"vocab_size": 31, "hidden_size": 16, "n_layer": 2, "n_head": 4} | UNCACHED),
    Architecture("Falcon", LAYERS | {"alibi": True} | UNCACHED),
    Architecture("Llama", DECODER),
    Architecture("Mistral", DECODER | {"sliding_window": 4}),
    Architecture("Mixtral", DECODER | EXPERTS),
    Architecture("Qwen2", DECODER),
    Architecture("Qwen3", DECODER),
    Architecture("Qwen3Moe", DECODER | MOE),
    Architecture("Qwen3Next", DECODER | MOE | {"linear_key_head_dim": 4, "linear_value_head_dim": 4,
                 "linear_num_key_heads": 2, "linear_num_value_heads": 4, "shared_expert_intermediate_size": 8,
                 "layer_types": ["linear_attention", "full_attention"]}),
    Architecture("Gemma", DECODER),
    Architecture("Gemma2", DECODER | {"sliding_window": 4, "query_pre_attn_scalar": 4}),
    Architecture("Gemma3Text", DECODER | {"sliding_window": 4, "query_pre_attn_scalar": 4}),
    Architecture("RecurrentGemma", DECODER | {"lru_width": 16, "attention_window_size": 4,
                                              "block_types": ["recurrent", "attention"]}),
    Architecture("Phi", LAYERS | UNCACHED),
    Architecture("Phi3", DECODER),
    Architecture("Olmo", DECODER),
    Architecture("Olmo2", DECODER),
    Architecture("Olmoe", DECODER | {"num_experts": 4, "num_experts_per_tok": 2}),
    Architecture("Cohere", DECODER),
    Architecture("Cohere2", DECODER | {"sliding_window": 4}),
    Architecture("StableLm", DECODER),
    Architecture("Persimmon", LAYERS | UNCACHED),
    Architecture("Starcoder2", DECODER),
    Architecture("Granite", DECODER),
    Architecture("GptOss", DECODER | EXPERTS | {"sliding_window": 4}),
    Architecture("DeepseekV3", LAYERS | UNCACHED | {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2,
                 "topk_group": 1, "moe_intermediate_size": 8, "q_lora_rank": 8, "kv_lora_rank": 8,
                 "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 4, "first_k_dense_replace": 1}),
    Architecture("Mamba", STATES),
    Architecture("Mamba2", STATES | {"num_heads": 8, "head_dim": 4, "n_groups": 2, "chunk_size": 4}),
    Architecture("FalconMamba", STATES),
    Architecture("Rwkv", {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 2, "context_length": 32}
                 | UNCACHED),
    Architecture("Jamba", LAYERS | UNCACHED | {"num_key_value_heads": 2, "num_experts": 2, "attn_layer_period": 2,
                 "attn_layer_offset": 1, "mamba_d_state": 4, "mamba_d_conv": 2, "use_mamba_kernels": False,
                 "mamba_dt_rank": 4}),
    Architecture("Bamba", DECODER | {"mamba_n_heads": 8, "mamba_d_head": 4, "mamba_d_state": 4,
                 "mamba_n_groups": 1, "mamba_chunk_size": 4, "attn_layer_indices": [1]}),
]  # fmt: skip

BOTH = [
    Architecture("T5", T5, "both"),
    Architecture("UMT5", T5, "both"),
    Architecture("LongT5", T5 | {"local_radius": 3, "encoder_attention_type": "local"}, "both"),
    Architecture("SwitchTransformers", T5 | {"num_experts": 2, "expert_capacity": 8, "router_jitter_noise": 0.0,
                                             "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1}, "both"),
    Architecture("Bart", WORDS | SIDES, "both"),
    Architecture("MBart", WORDS | SIDES, "both"),
    Architecture("Pegasus", WORDS | SIDES, "both"),
    Architecture("Marian", WORDS | SIDES, "both"),
    Architecture("Blenderbot", WORDS | SIDES, "both"),
    Architecture("M2M100", WORDS | SIDES, "both"),
    Architecture("LED", WORDS | SIDES | {"attention_window": 4, "max_encoder_position_embeddings": 32,
                                         "max_decoder_position_embeddings": 32}, "both"),
    Architecture("ProphetNet", WORDS | {"hidden_size": 16, "num_encoder_layers": 1, "num_decoder_layers": 1,
                 "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "num_encoder_attention_heads": 2,
                 "num_decoder_attention_heads": 2} | UNCACHED, "both"),
]  # fmt: skip

VISION = [
    Architecture("ViT", SMALL | PICTURES, "pictures"),
    Architecture("DeiT", SMALL | PICTURES, "pictures"),
    Architecture("ConvNext", STAGES | {"num_stages": 2, "patch_size": 4}, "pictures"),
    Architecture("ConvNextV2", STAGES | {"num_stages": 2, "patch_size": 4}, "pictures"),
    Architecture("Swin", PICTURES | {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2},
                 "pictures"),
    Architecture("Swinv2", PICTURES | {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 2},
                 "pictures"),
    Architecture("Dinov2", SMALL | PICTURES, "pictures"),
    Architecture("Beit", SMALL | PICTURES | {"use_relative_position_bias": True}, "pictures"),
    Architecture("Segformer", {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [8, 16],
                 "patch_sizes": [3, 3], "strides": [2, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2]},
                 "pictures"),
    Architecture("Pvt", {"image_size": 16, "num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [8, 16],
                 "sequence_reduction_ratios": [2, 1], "patch_sizes": [4, 2], "strides": [4, 2],
                 "num_attention_heads": [1, 2], "mlp_ratios": [2, 2]}, "pictures"),
    Architecture("PoolFormer", {"num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [8, 16],
                 "patch_sizes": [3, 3], "strides": [2, 2], "padding": [1, 1]}, "pictures"),
    Architecture("MobileViT", {"image_size": 32, "hidden_sizes": [8, 12, 16],
                 "neck_hidden_sizes": [4, 8, 8, 8, 8, 8, 16],
                 "num_attention_heads": 2}, "large pictures"),
    Architecture("MobileNetV2", {"depth_multiplier": 0.25, "min_depth": 4, "output_stride": 8}, "large pictures"),
    Architecture("EfficientNet", {"width_coefficient": 0.25, "depth_coefficient": 0.1, "hidden_dim": 320},
                 "large pictures"),
    Architecture("ResNet", STAGES | {"embedding_size": 8}, "pictures"),
    Architecture("RegNet", STAGES | {"embedding_size": 8, "groups_width": 4}, "pictures"),
    Architecture("Bit", STAGES | {"embedding_size": 8, "num_groups": 4}, "pictures"),
    Architecture("FocalNet", PICTURES | {"embed_dim": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
                 "focal_levels": [1, 1], "focal_windows": [3, 3]}, "pictures"),
    Architecture("Levit", {"image_size": 32, "patch_size": 16, "hidden_sizes": [8, 12, 16],
                 "num_attention_heads": [2, 2, 2],
                 "depths": [1, 1, 1], "key_dim": [4, 4, 4]}, "large pictures"),
    Architecture("Yolos", SMALL | PICTURES | {"image_size": [16, 16], "num_detection_tokens": 4}, "pictures"),
    Architecture("Detr", SIDES | {"num_queries": 4, "use_timm_backbone": False, "use_pretrained_backbone": False,
                 "backbone": None, "backbone_config": {"model_type": "resnet", **STAGES, "embedding_size": 8}},
                 "large pictures"),
    Architecture("SamVision", SMALL | PICTURES | {"window_size": 2, "global_attn_indexes": [1], "output_channels": 8},
                 "pictures"),
    Architecture("Hiera", {"image_size": [16, 16], "patch_size": [3, 3], "patch_stride": [2, 2],
                 "patch_padding": [1, 1], "embed_dim": 8, "num_heads": [1, 2], "depths": [1, 1],
                 "masked_unit_size": [2, 2], "query_stride": [2, 2], "num_query_pool": 1}, "pictures"),
    Architecture("VideoMAE", SMALL | PICTURES | {"num_frames": 4, "tubelet_size": 2}, "films"),
    Architecture("CLIP", PAIR, "pictures and words"),
    Architecture("SiglipVision", SMALL | PICTURES, "pictures"),
    Architecture("Siglip", PAIR, "pictures and words"),
]  # fmt: skip

SOUND = [
    Architecture("Whisper", WORDS | SIDES | {"num_mel_bins": 8, "max_source_positions": 16}, "sound and words"),
    Architecture("Wav2Vec2", SMALL | SOUNDS, "sound"),
    Architecture("Hubert", SMALL | SOUNDS, "sound"),
    Architecture("SEW", SMALL | SOUNDS | {"squeeze_factor": 2}, "sound"),
    Architecture("WavLM", SMALL | SOUNDS, "sound"),
    Architecture("Wav2Vec2Conformer", SMALL | SOUNDS | {"conv_depthwise_kernel_size": 3}, "sound"),
    Architecture("SpeechT5", LAYERS | SIDES | SOUNDS | {"hidden_size": 16}, "vectors and words"),
    Architecture("Encodec", {"num_filters": 4, "num_residual_layers": 1, "upsampling_ratios": [2, 2],
                 "codebook_size": 8, "codebook_dim": 8, "hidden_size": 8, "num_lstm_layers": 1, "kernel_size": 3,
                 "last_kernel_size": 3, "target_bandwidths": [24.0]}, "wave"),
    Architecture("Vits", {"vocab_size": 31, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                 "ffn_dim": 24, "flow_size": 16, "spectrogram_bins": 9, "upsample_initial_channel": 16,
                 "upsample_rates": [2, 2], "upsample_kernel_sizes": [4, 4], "resblock_kernel_sizes": [3],
                 "resblock_dilation_sizes": [[1, 3]], "prior_encoder_num_flows": 1,
                 "prior_encoder_num_wavenet_layers": 1,
                 "posterior_encoder_num_wavenet_layers": 1, "use_stochastic_duration_prediction": False,
                 "duration_predictor_filter_channels": 8, "noise_scale": 0.0}),
]  # fmt: skip

OTHERS = [
    Architecture("TimeSeriesTransformer", SERIES, "series"),
    Architecture("Informer", SERIES, "series"),
    Architecture("PatchTST", PATCHES | {"num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 24}, "measures"),
    Architecture("PatchTSMixer", PATCHES | {"num_layers": 1}, "measures"),
    Architecture("DecisionTransformer", {"state_dim": 5, "act_dim": 3, "hidden_size": 16, "max_ep_len": 16,
                 "n_layer": 1, "n_head": 2, "n_positions": 64}, "decisions"),
]  # fmt: skip

ARCHITECTURES = [*ENCODERS, *DECODERS, *BOTH, *VISION, *SOUND, *OTHERS]
