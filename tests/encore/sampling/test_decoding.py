"""Lean sampling: transformers' logits, the law of `softmax`, and ends where `generate` ends."""

import json
import shutil
from pathlib import Path

import pytest
import stage_runs
import torch
from decoder_models import END, PROMPTS, log_probs, model
from scipy.stats import chi2
from torch.nn import functional
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
)

from encore.errors import UserError
from encore.learning.resumable import Resumable
from encore.sampling import decoding
from encore.sampling.decoding import Decoder, sample

SPARSE = {"kind": "qwen3_moe", "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 24}

LLAMA_3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_key_value_heads": 4},
        {"tie_word_embeddings": True},
        SPARSE | {"norm_topk_prob": True},
        SPARSE | {"norm_topk_prob": False},
        {"kind": "llama", "head_dim": 8},
        {"kind": "llama", "rope_parameters": LLAMA_3, "tie_word_embeddings": True},
        {"kind": "qwen2", "head_dim": 8},
    ],
    ids=str,
)
@pytest.mark.parametrize("crowded", [0.0, 0.8, 1.0])
@pytest.mark.parametrize(
    ("start", "block"), [([], 4096), ([], 4), ([3, 11, 4, 4], 4096), ([3, 11, 4, 4], 4)], ids=str
)
def test_log_probabilities_are_transformers(options, crowded, start, block, monkeypatch):
    """Also of prompts that begin alike, and read in several blocks."""
    monkeypatch.setattr(decoding, "CROWDED", crowded)
    monkeypatch.setattr(decoding, "BLOCK", block)
    built = model(**options)
    torch.manual_seed(1)
    prompts = [start + prompt for prompt in PROMPTS * 4]
    ids, found = sample(built, prompts, 20, 0.7, [END])
    assert len({len(row) for row in ids}) > 3
    assert found.shape == (len(prompts), max(map(len, ids)))
    for prompt, row, logps in zip(prompts, ids, found, strict=True):
        assert END not in row[:-1]
        assert len(row) == 20 or row[-1] == END
        expected = log_probs(built, prompt, row, 0.7)
        # transformers' norms and angles are in float32
        torch.testing.assert_close(logps[: len(row)], expected, rtol=0, atol=1e-5)
        assert not logps[len(row) :].any()


def test_without_temperature_it_is_greedy_generate():
    built = model(seed=3).float()
    ids, _ = sample(built, PROMPTS, 12, 1e-6, [END])
    for prompt, row in zip(PROMPTS, ids, strict=True):
        whole = built.generate(torch.tensor([prompt]), max_new_tokens=12, do_sample=False)
        assert row == whole[0, len(prompt) :].tolist()


def test_draws_follow_the_distribution():
    """First and second tokens of 20,000 completions against their probabilities."""
    built = model(seed=2).float()
    torch.manual_seed(0)
    ids, _ = sample(built, [[5, 6, 7]] * 20_000, 2, 1.0, [END])
    with torch.no_grad():
        first = built(torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
        after = built(torch.tensor([[5, 6, 7, t] for t in range(13)])).logits[:, -1].softmax(-1)
    joint = first[:, None] * after
    joint[END] = 0.0
    counts = torch.zeros(13, 13)
    for row in ids:
        if len(row) == 2:
            counts[row[0], row[1]] += 1
        else:
            assert row == [END]
    frequent = joint * len(ids) > 5
    expected = torch.cat([joint[frequent], 1 - joint[frequent].sum(0, keepdim=True)]) * len(ids)
    found = torch.cat([counts[frequent], len(ids) - counts[frequent].sum(0, keepdim=True)])
    assert len(found) > 50
    assert chi2.sf(((found - expected) ** 2 / expected).sum(), len(found) - 1) > 1e-3


def test_a_token_without_probability_is_never_drawn():
    logits = torch.full((1000, 50_000), -torch.inf)
    logits[:, ::7] = torch.randn(logits[:, ::7].shape, generator=torch.Generator().manual_seed(0))
    token, logp = decoding.drawn_of(logits, 0.8)
    assert not (token % 7).any()
    expected = (logits / 0.8).log_softmax(-1).gather(1, token[:, None])[:, 0]
    torch.testing.assert_close(logp, expected, rtol=0, atol=1e-5)


def test_what_prompts_begin_with_is_read_once(monkeypatch):
    counted, step = [], Decoder.step

    def counting(self, ids, *args):
        counted.append(ids.numel())
        return step(self, ids, *args)

    monkeypatch.setattr(Decoder, "step", counting)
    sample(model(), [[5] * 20 + [6], [5] * 20 + [7, 8]], 1, 1.0, [END])
    assert counted == [20, 2 * 2]


def test_one_seed_one_rollout():
    drawn = []
    for _ in range(2):
        torch.manual_seed(4)
        drawn.append(sample(model(), PROMPTS, 20, 1.0, [END]))
    assert drawn[0][0] == drawn[1][0]
    assert torch.equal(drawn[0][1], drawn[1][1])


class PlainDecoder(Decoder):
    """The same step with queries and keys apart, which costs more time."""

    def step(self, ids, places, slot, cache, bias):
        (rows, count), queries = ids.shape, self.heads + self.kv_heads
        end = slot + count
        hidden = self.embedding[ids]
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            normed = self.normed(hidden, layer.norm)
            heads = functional.linear(normed, layer.qkv).view(rows, count, -1, self.head_dim)
            query = self.turned(heads[:, :, : self.heads], layer.qk_norm[0], places)
            key = self.turned(heads[:, :, self.heads : queries], layer.qk_norm[-1], places)
            keys[:, :, slot:end] = key.transpose(1, 2)
            values[:, :, slot:end] = heads[:, :, queries:].transpose(1, 2)
            seen = (part[:, :, :end] for part in (keys, values))
            attended = functional.scaled_dot_product_attention(
                query.transpose(1, 2), *seen, attn_mask=bias[..., :end], enable_gqa=True
            )
            hidden = hidden + functional.linear(attended.transpose(1, 2).flatten(2), layer.out)
            hidden = hidden + layer.mlp(self.normed(hidden, layer.mlp_norm))
        return hidden

    def turned(self, heads, weight, places):
        normed = self.normed(heads, weight)
        rolled = normed.roll(self.head_dim // 2, dims=-1)
        return normed * self.cos[places, None] + rolled * self.sin[places, None]


@pytest.mark.parametrize("options", [{}, {"num_key_value_heads": 4}, {"head_dim": 32}], ids=str)
def test_the_bits_are_those_of_a_plain_step_and_whole_copies(options, monkeypatch):
    built = model(**options).float()
    prompts = PROMPTS * 8

    def drawn():
        torch.manual_seed(5)
        return sample(built, prompts, 30, 1.0, [END])

    ids, logps = drawn()
    monkeypatch.setattr(decoding, "Decoder", PlainDecoder)
    monkeypatch.setattr(decoding, "of_rows", lambda cache, rows, used: [(k[rows], v[rows]) for k, v in cache])
    plain_ids, plain_logps = drawn()
    assert len({len(row) for row in ids}) > 5  # rows left the batch
    assert ids == plain_ids
    assert torch.equal(logps, plain_logps)


def test_no_column_is_read_before_it_is_written(monkeypatch):
    built = model()
    torch.manual_seed(6)
    expected = sample(built, PROMPTS * 4, 20, 1.0, [END])
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda self, shape: self.new_full(shape, torch.nan))
    torch.manual_seed(6)
    found = sample(built, PROMPTS * 4, 20, 1.0, [END])
    assert found[0] == expected[0]
    assert torch.equal(found[1], expected[1])


def test_another_architecture_is_refused():
    config = GPTNeoXConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    words = "knows models of llama, qwen2, qwen3, qwen3_moe alone, not gpt_neox; remove it"
    with pytest.raises(UserError, match=words):
        Decoder(GPTNeoXForCausalLM(config), 4)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"kind": "llama", "mlp_bias": True}, "mlp_bias"),
        ({"kind": "llama", "attention_bias": True}, "attention_bias"),
        ({"kind": "qwen2", "use_sliding_window": True, "max_window_layers": 1}, "use_sliding_window"),
        (
            {"kind": "llama", "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
            "rope_type dynamic",
        ),
    ],
)
def test_what_the_decoder_would_compute_otherwise_is_refused(options, part):
    with pytest.raises(UserError, match=f"lean knows no {options['kind']} with {part}; remove it"):
        sample(model(**options), PROMPTS, 4, 1.0, [END])


def in_mid_rollout() -> None:
    plain, seen = Resumable.training_step, []

    def step(self, *args, **kwargs):
        seen.append(1)
        if len(seen) == 8:
            stage_runs.die()
        return plain(self, *args, **kwargs)

    Resumable.training_step = step


@pytest.mark.slow
def test_a_lean_stage_starts_at_ratio_one_and_is_resumed_exactly(base: Path, tmp_path: Path):
    config = stage_runs.GRPO | {"sampler": "lean", "args": stage_runs.GRPO["args"] | {"max_steps": 10}}
    command = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
    for name in ("whole", "killed"):
        shutil.copytree(base, tmp_path / name)
    assert stage_runs.run("grpo", command, tmp_path / "whole") == 0
    assert stage_runs.run("grpo", command, tmp_path / "killed", in_mid_rollout) == -9
    assert stage_runs.run("grpo", command, tmp_path / "killed") == 0
    whole, killed = (stage_runs.outputs(tmp_path / name, "grpo") for name in ("whole", "killed"))
    assert whole == killed
    checks = {one["check"]: one for one in json.loads(whole["metrics.json"])["health"]}
    assert checks["ratio_at_start"]["ok"]
    assert checks["ratio_at_start"]["value"] < 1e-5


@pytest.mark.slow
def test_a_lean_stage_takes_a_width_that_is_a_multiple(base: Path, tmp_path: Path):
    args = stage_runs.GRPO["args"] | {"max_steps": 4, "pad_to_multiple_of": 8, "sync_ref_model": False}
    command = stage_runs.command(
        "grpo", stage_runs.GRPO | {"sampler": "lean", "args": args}, policy="results/pretrain/metrics.json"
    )
    shutil.copytree(base, tmp_path / "run")
    assert stage_runs.run("grpo", command, tmp_path / "run") == 0, (tmp_path / "run/err.txt").read_text()
    checks = json.loads((tmp_path / "run/results/grpo/metrics.json").read_text())["health"]
    assert next(one for one in checks if one["check"] == "ratio_at_start")["value"] < 1e-5
