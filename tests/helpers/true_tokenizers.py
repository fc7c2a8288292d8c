"""Tokenizers of the classes, settings and chat templates that published models have; small vocabularies."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    GPT2Config,
    GPT2Tokenizer,
    GPTNeoXConfig,
    GPTNeoXTokenizer,
    LlamaConfig,
    LlamaTokenizer,
    Qwen2Config,
    Qwen2Tokenizer,
    Qwen3MoeConfig,
)

from encore.runtime import files, sentinel

TEXTS = ["User: What is 3 + 4?\nAssistant: <think>It is 7.</think> [INST] system user assistant [/INST]\n"]
# of Llama-2-7b-chat-hf
LLAMA = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
# of Qwen2-7B-Instruct, and the same with SmolLM2's words
CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# of DeepSeek-R1-Distill, with ChatML's tokens for turns: it begins replies, and leaves out earlier thinking
THINKING = (
    "{% for message in messages %}{% set content = message['content'] %}"
    "{% if message['role'] == 'assistant' and '</think>' in content %}"
    "{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\\n' + content + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}"
)
KINDS = ("llama", "qwen2", "gpt-neox", "chatml")
SIZE = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
SIZE |= {"num_attention_heads": 2, "num_key_value_heads": 2}


def vocabulary(pre_tokenizer: Any, special: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Tokens and merges learnt from TEXTS."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(TEXTS * 9, trainer)
    model = json.loads(backend.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


@cache
def _bytes_of(*special: str) -> dict[str, Any]:
    vocab, merges = vocabulary(pre_tokenizers.ByteLevel(add_prefix_space=False), [*special])
    return {"vocab": vocab, "merges": merges}


def llama() -> Any:
    """Llama 2's: SentencePiece's spaces, a BOS before every text, no padding token."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{number:02X}>" for number in range(256))]
    vocab, merges = vocabulary(pre_tokenizers.Metaspace(), special)
    words = LlamaTokenizer(vocab=vocab, merges=merges, add_bos_token=True)
    words.chat_template = LLAMA
    return words


def qwen2(chat_template: str = CHATML) -> Any:
    """Qwen2-Instruct's: it pads with the end of documents, and ends turns with another token."""
    words = Qwen2Tokenizer(
        **_bytes_of("<|endoftext|>"),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=["<|im_start|>"],
    )
    words.add_tokens(["<tool_call>", "</tool_call>"])  # Qwen2.5's, no special ones
    words.chat_template = chat_template
    return words


def gpt_neox() -> Any:
    """Pythia's: one token for beginning, end and the unknown; no chat template."""
    return GPTNeoXTokenizer(**_bytes_of("<|endoftext|>", "<|padding|>"))


def chatml() -> Any:
    """SmolLM2-Instruct's, of GPT-2's class: its BOS, which begins turns, is put before nothing."""
    words = GPT2Tokenizer(
        **_bytes_of("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        unk_token="<|endoftext|>",
        pad_token="<|im_end|>",
    )
    words.chat_template = CHATML
    return words


def qwen2_base() -> Any:
    """Qwen2.5's base model: it has the chat template, but its end of sequence is that of documents."""
    words = qwen2()
    words.eos_token = "<|endoftext|>"
    return words


def qwen2_thinking() -> Any:
    """R1's students' template, in ChatML's words."""
    return qwen2(THINKING)


MADE = {"llama": llama, "qwen2": qwen2, "gpt-neox": gpt_neox, "chatml": chatml, "qwen2-base": qwen2_base}
MADE |= {"qwen2-thinking": qwen2_thinking, "qwen3-moe": qwen2, "smollm2": chatml}
CONFIGS = {"llama": LlamaConfig, "gpt-neox": GPTNeoXConfig, "chatml": GPT2Config, "qwen3-moe": Qwen3MoeConfig}
CONFIGS |= {"smollm2": LlamaConfig}


def checkpoint(kind: str, folder: Path, size: Mapping[str, int] = SIZE) -> Path:
    """The metrics.json of a tiny random model with its tokenizer."""
    words = MADE[kind]()
    config = CONFIGS.get(kind, Qwen2Config)
    special = {"eos_token_id": words.eos_token_id, "bos_token_id": words.bos_token_id}
    model = AutoModelForCausalLM.from_config(config(vocab_size=len(words), **size, **special))
    ends = words.eos_token_id
    if kind == "qwen2":  # as its generation_config.json has it
        ends = [words.eos_token_id, words.pad_token_id]
    model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=words.pad_token_id)
    model.save_pretrained(folder / "final")
    words.save_pretrained(folder / "final")
    record = {
        "model": str(folder / "final"),
        "digest": sentinel.digest(folder / "final"),
        "files": sentinel.sizes(folder / "final"),
        "config": {},
    }
    files.write_json(folder / "metrics.json", record)
    return folder / "metrics.json"
