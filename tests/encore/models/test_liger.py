"""Liger's kernels compute what the plain layers compute; on a CPU the plain layers do."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import stage_runs
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, Qwen2Config, Qwen2ForCausalLM
from transformers.models.qwen3 import modeling_qwen3

from encore.errors import UserError
from encore.models import language_model, reward_model
from encore.models.liger import fused

ROOT = Path(__file__).parents[3]
SMALL = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
NORMS = {"qwen2": ["input_layernorm", "norm", "post_attention_layernorm"]}
NORMS |= {"llama": NORMS["qwen2"], "qwen3": sorted([*NORMS["qwen2"], "q_norm", "k_norm"])}
installed = pytest.mark.skipif(not find_spec("liger_kernel"), reason="Liger is in the extra `liger`")


@pytest.mark.slow
@installed
def test_a_forward_and_a_backward_pass_are_those_of_the_plain_model():
    script = ROOT / "tests/helpers/interpreted_kernels.py"
    env = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script), *NORMS]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    of_kinds = json.loads(done.stdout)
    for kind, norms in NORMS.items():
        assert of_kinds[kind]["fused"] == sorted([*norms, "mlp"])
        assert of_kinds[kind]["rotary"] == "liger_rotary_pos_emb"
        differences = of_kinds[kind]["differences"].values()
        assert 0 < max(differences) < 1e-5


def test_a_cpu_computes_the_plain_layers():
    model = Qwen2ForCausalLM(Qwen2Config(**SMALL, num_attention_heads=2, num_key_value_heads=1))
    ids = torch.tensor([[1, 2, 3]])
    before = model(ids).logits
    assert fused(model) is model
    assert torch.equal(model(ids).logits, before)


@installed
def test_an_architecture_without_kernels_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    model = GPTNeoXForCausalLM(GPTNeoXConfig(**SMALL, num_attention_heads=2))
    with pytest.raises(
        UserError, match=r"^args\.use_liger_kernel: true, but Liger has no .* a gpt_neox model"
    ):
        fused(model)


@pytest.mark.slow
@installed
def test_policies_and_reward_models_are_loaded_with_them(base, monkeypatch):
    monkeypatch.chdir(base)
    source = language_model.locate(Path("results/pretrain/metrics.json"))
    tokenizer = language_model.load_tokenizer(source)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    for name in ("apply_rotary_pos_emb", "Qwen3RMSNorm", "Qwen3MLP"):  # Liger puts its own in their places
        monkeypatch.setattr(modeling_qwen3, name, getattr(modeling_qwen3, name))
    for liger in (False, True):
        policy = language_model.load(source, liger=liger)
        scorer = reward_model.from_policy(source, tokenizer, 0, liger=liger)
        forwards = [model.base_model.norm.forward.__qualname__ for model in (policy, scorer)]
        assert [name.startswith("Liger") for name in forwards] == [liger, liger]


@pytest.mark.slow
@installed
@pytest.mark.parametrize("kind", ["pretrain", "grpo"])
def test_a_stage_on_a_cpu_trains_the_same_weights(kind, base, tmp_path):
    config = stage_runs.PRETRAIN if kind == "pretrain" else stage_runs.GRPO
    inputs = {} if kind == "pretrain" else {"policy": "results/pretrain/metrics.json"}
    digests = []
    for asked in (True, False):
        folder = stage_runs.fresh(kind, base, tmp_path / str(asked))
        args = config["args"] | {"max_steps": 2, "use_liger_kernel": asked}
        assert stage_runs.run(kind, stage_runs.command(kind, config | {"args": args}, **inputs), folder) == 0
        digests.append(json.loads((folder / f"results/{kind}/metrics.json").read_text())["digest"])
    assert digests[0] == digests[1]
