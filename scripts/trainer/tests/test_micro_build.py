"""The micro tokenizer and checkpoint folder."""

import json

import torch
from micro_world.lexicon import all_words
from ssr_trainer.micro import texts
from ssr_trainer.micro.build import build_tokenizer
from tokenizers import Tokenizer
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration


def test_committed_tokenizer_is_what_the_builder_builds() -> None:
    built = json.loads(build_tokenizer(texts.tokenizer_texts()).to_str())
    assert built == json.loads((texts.MODEL / "tokenizer.json").read_text())


def test_every_word_of_the_world_is_one_token(untrained) -> None:
    for word in all_words():
        assert len(untrained.encoder.ids(f" {word}")) == 1, word


def test_transformers_reads_the_tokenizer_as_it_is() -> None:
    own, theirs = Tokenizer.from_file(str(texts.MODEL / "tokenizer.json")), AutoTokenizer.from_pretrained(texts.MODEL)
    for text in texts.tokenizer_texts(3):
        assert theirs.encode(text, add_special_tokens=False) == own.encode(text, add_special_tokens=False).ids


def test_committed_weights_are_bf16_and_small() -> None:
    model = Qwen3VLForConditionalGeneration.from_pretrained(texts.MODEL, dtype="auto")
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    assert (texts.MODEL / "model.safetensors").stat().st_size < 8_000_000


def test_saved_folder_loads_to_the_same_weights(untrained) -> None:
    loaded = Qwen3VLForConditionalGeneration.from_pretrained(untrained.folder, dtype=torch.float32)
    for name, weight in untrained.model.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name]), name
