"""vLLM gets the weights under the names and in the shapes that a checkpoint has."""

from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GPTNeoXConfig, LlamaConfig, Qwen3MoeConfig
from trl.generation.vllm_generation import VLLMGeneration

from encore.stages import sent_weights

SIZE = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 2}
SIZE |= {"num_attention_heads": 2, "num_key_value_heads": 2}
EXPERTS = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 5, "head_dim": 4}
CONFIGS = {
    "llama": LlamaConfig(**SIZE),
    "tied": LlamaConfig(**SIZE, tie_word_embeddings=True),
    "gpt-neox": GPTNeoXConfig(**SIZE),
    "experts": Qwen3MoeConfig(**SIZE, **EXPERTS),
}


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("kind", CONFIGS)
def test_the_weights_sent_are_those_of_the_saved_model(kind, loaded, tmp_path):
    model = AutoModelForCausalLM.from_config(CONFIGS[kind])
    model.save_pretrained(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    if loaded:
        model = AutoModelForCausalLM.from_pretrained(tmp_path)
    sender = SimpleNamespace(
        model=model,
        _dist=SimpleNamespace(is_fsdp=False, gather_params=lambda _: torch.no_grad()),
        _fix_param_name_to_vllm=lambda name: name,
    )
    with sent_weights.as_saved():
        sent = list(VLLMGeneration._iter_named_params(sender))
    assert sorted(name for name, _ in sent) == sorted(saved)
    assert all(torch.equal(weight, saved[name]) for name, weight in sent)
    assert sum(weight.numel() for _, weight in sent) == model.num_parameters()


def test_trl_sends_as_before_outside_of_the_block():
    plain = VLLMGeneration._iter_named_params
    with pytest.raises(KeyError), sent_weights.as_saved():
        raise KeyError
    assert VLLMGeneration._iter_named_params is plain
