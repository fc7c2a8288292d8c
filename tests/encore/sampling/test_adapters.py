"""The decoder samples from weights with the adapters that are trained above them."""

from typing import Any

import pytest
import torch
from peft import get_peft_model
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from encore.models import lora
from encore.recipe.kinds.stage import Lora
from encore.sampling.decoding import sample

END, PROMPTS = 1, [[3, 4], [5, 6, 7], [8]]
SIZE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "vocab_size": 13}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}


def log_probs(model: Any, prompt: list[int], completion: list[int]) -> torch.Tensor:
    """The log-probabilities of a completion, (tokens,), by transformers and peft."""
    logits = model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(completion)[:, None])[:, 0]


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(Qwen3ForCausalLM, Qwen3Config), (Qwen2ForCausalLM, Qwen2Config), (LlamaForCausalLM, LlamaConfig)],
)
@pytest.mark.parametrize("options", [{}, {"targets": ("q_proj", "down_proj")}])
def test_log_probabilities_are_those_with_the_adapters(kind, shape, options):
    torch.manual_seed(0)
    built = kind(shape(**SIZE, **HEADS, pad_token_id=0, eos_token_id=END, bos_token_id=2)).double()
    adapted = get_peft_model(built, lora.adapters(Lora(rank=3, alpha=6.0, **options), built, 0)).eval()
    with torch.no_grad():
        for weight in adapted.parameters():  # B begins as zeros
            weight += 0.3 * torch.randn_like(weight)
    ids, found = sample(lora.below(adapted), PROMPTS, 20, 1.0, [END])
    for prompt, row, logps in zip(PROMPTS, ids, found, strict=True):
        torch.testing.assert_close(logps[: len(row)], log_probs(adapted, prompt, row), rtol=0, atol=1e-5)
        with adapted.disable_adapter():
            assert (logps[: len(row)] - log_probs(adapted, prompt, row)).abs().max() > 0.01
