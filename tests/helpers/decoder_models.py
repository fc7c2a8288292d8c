"""Small models of the architectures that our decoder knows, and their log-probabilities by transformers."""

from typing import Any

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

PROMPTS = [[5, 6, 7], [8], [5, 6, 7], [9, 10, 11, 12, 5], [8], [5, 6, 7]]
END = 1


ARCHITECTURES = {
    "llama": (LlamaForCausalLM, LlamaConfig),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config),
    "qwen3_moe": (Qwen3MoeForCausalLM, Qwen3MoeConfig),
}


def model(seed: int = 0, kind: str = "qwen3", **options: Any) -> Any:
    size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "head_dim": 16}
    config = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 13, **size, **options}
    torch.manual_seed(seed)
    made, shape = ARCHITECTURES[kind]
    built: Any = made(
        shape(max_position_embeddings=64, pad_token_id=0, eos_token_id=END, bos_token_id=2, **config)
    )
    if kind == "qwen3_moe":
        built.set_experts_implementation("eager")  # the default one knows no float64
    with torch.no_grad():  # norms away from 1, a distribution away from uniform
        for parameter in built.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return built.double().eval()


def log_probs(built: Any, prompt: list[int], completion: list[int], temperature: float) -> torch.Tensor:
    """By transformers, without padding: (completion,)."""
    logits = built(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None])[:, 0]
