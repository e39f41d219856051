"""Builds the micro checkpoint's tokenizer and untrained model: a real Qwen3-VL, 1.5 M parameters.

Fan-in initialisation instead of the library's: with normal(0, 0.02) at this width, copying is never learnt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import torch
from micro_world.lexicon import all_words
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration

# How Qwen2 and Qwen3 cut text before byte-pair merging.
PRE_TOKENIZER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
PLAIN_ADDED = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
MERGED_VOCABULARY = 1600
CONTEXT_TOKENS = 2048
PREPROCESSOR = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "do_convert_rgb": True,
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "resample": 3,
    "rescale_factor": 1 / 255,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.5, 0.5],
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "size": {"shortest_edge": 16384, "longest_edge": 16384},
}


def build_tokenizer(texts: list[str]) -> Tokenizer:
    """Byte-level BPE in which every word of the world and of `texts` is one token with its leading space."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKENIZER), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=MERGED_VOCABULARY,
        min_frequency=1,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    words = sorted({f" {word}" for word in all_words()})
    tokenizer.train_from_iterator([*sorted(set(texts)), *words], trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in PLAIN_ADDED])
    _check_single_tokens(tokenizer, [*words, *_words_with_space(texts)])
    return tokenizer


def build_config(tokenizer: Tokenizer) -> Qwen3VLConfig:
    token = tokenizer.token_to_id
    return Qwen3VLConfig(
        text_config={
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 128,
            "intermediate_size": 384,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "max_position_embeddings": CONTEXT_TOKENS,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "mrope_section": [6, 5, 5],
                "mrope_interleaved": True,
            },
            "bos_token_id": None,
            "eos_token_id": token("<|im_end|>"),
            "pad_token_id": token("<|endoftext|>"),
            "tie_word_embeddings": True,
        },
        vision_config={
            "depth": 3,
            "hidden_size": 64,
            "intermediate_size": 192,
            "num_heads": 2,
            "patch_size": 16,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": 128,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
        },
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
        tie_word_embeddings=True,
    )


def build_model(config: Qwen3VLConfig, seed: int) -> Qwen3VLForConditionalGeneration:
    """Matrices normal(0, 1/sqrt(fan_in)), those that write to the residual stream divided by sqrt(2 * layers)."""
    model = Qwen3VLForConditionalGeneration(config)
    generator = torch.Generator().manual_seed(seed)
    text_layers, vision_layers = config.text_config.num_hidden_layers, config.vision_config.depth
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() < 2:
                weight.fill_(1.0 if "norm" in name and name.endswith("weight") else 0.0)
            elif "embed_tokens" in name or "pos_embed" in name:
                weight.normal_(0, 0.08, generator=generator)
            else:
                scale = 1 / math.sqrt(weight[0].numel())
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    scale /= math.sqrt(2 * text_layers)
                if name.endswith(("attn.proj.weight", "mlp.linear_fc2.weight")):
                    scale /= math.sqrt(2 * vision_layers)
                weight.normal_(0, scale, generator=generator)
    return model


def save_folder(
    folder: Path,
    tokenizer: Tokenizer,
    model: Qwen3VLForConditionalGeneration,
    dtype: torch.dtype,
    max_new_tokens: int = 64,
) -> None:
    """A complete Hugging Face folder; weights are converted to `dtype` on a copy. `max_new_tokens` is what one turn may need."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = Qwen3VLForConditionalGeneration(model.config)
    copy.load_state_dict(model.state_dict())
    copy.tie_weights()
    copy = copy.to(dtype)
    copy.config.dtype = dtype
    copy.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "preprocessor_config.json", PREPROCESSOR)
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(tokenizer))
    _write_json(folder / "generation_config.json", _generation_config(tokenizer, max_new_tokens))


def _words_with_space(texts: list[str]) -> Iterator[str]:
    for text in texts:
        for part in text.replace("\n", " ").split(" ")[1:]:
            word = part.rstrip(",.?:")
            if word.isalpha():
                yield f" {word}"


def _check_single_tokens(tokenizer: Tokenizer, words: list[str]) -> None:
    split = sorted({word for word in words if len(tokenizer.encode(word, add_special_tokens=False).ids) != 1})
    if split:
        raise ValueError(f"expected every word to be one token, these are split: {split}; raise MERGED_VOCABULARY")


def _tokenizer_config(tokenizer: Tokenizer) -> dict[str, object]:
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": CONTEXT_TOKENS,
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(tokenizer.token_to_id(token)): {
                "content": token, "special": token in SPECIAL,
                "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
            }
            for token in (*SPECIAL, *PLAIN_ADDED)
        },
    }  # fmt: skip


def _generation_config(tokenizer: Tokenizer, max_new_tokens: int) -> dict[str, object]:
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    return {"do_sample": False, "eos_token_id": ends, "pad_token_id": ends[1], "max_new_tokens": max_new_tokens}


def _write_json(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
