"""Log-probabilities with the prompt of a group read once are those with a row for each completion."""

import contextlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import stage_runs
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import (
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from trl.trainer.utils import add_fused_lm_head

from encore.errors import UserError
from encore.learning import shared_prompts
from encore.learning.minibatch import Tokens
from encore.learning.policy import without_padding

ACCELERATOR = SimpleNamespace(num_processes=1, autocast=contextlib.nullcontext)
KINDS = {
    "llama": (LlamaForCausalLM, LlamaConfig),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config),
    "gpt-neox": (GPTNeoXForCausalLM, GPTNeoXConfig),
}
PROMPT, TIME = 6, 9  # the widest


def model(kind: str, attention: str = "sdpa") -> Any:
    made, config = KINDS[kind]
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    heads = {} if kind == "gpt-neox" else {"num_key_value_heads": 1}
    options = {"vocab_size": 13, "max_position_embeddings": 64, "attn_implementation": attention}
    built = made(config(**options, **size, **heads))
    add_fused_lm_head(built.double(), temperature=0.7, outputs=("log_probs", "entropy"))
    return built


MODELS = {(kind, "sdpa"): model(kind) for kind in KINDS} | {("llama", "eager"): model("llama", "eager")}
# of each completion: which of four prompts it has, and how long it is; 0 is one masked out as truncated
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, TIME)), min_size=1, max_size=20)


def tokens(shape: list[tuple[int, int]], generator: torch.Generator) -> Tokens:
    """Return completions of four prompts, of 1, 2, 4 and 6 tokens; two of these begin alike."""
    prompts = torch.randint(1, 13, (4, PROMPT), generator=generator)
    prompts[3, 2:4] = prompts[2, 2:4]
    place, lengths = torch.arange(PROMPT), [1, 2, 4, 6]
    of_row = torch.tensor([number for number, _ in shape])
    prompt_mask = torch.stack([place >= PROMPT - lengths[number] for number, _ in shape]).long()
    completion_mask = torch.stack([torch.arange(TIME) < length for _, length in shape]).long()
    completion_mask[0, 0] = 1  # a rollout has at least one completion token
    completions = torch.randint(1, 13, (len(shape), TIME), generator=generator)
    return Tokens(prompts[of_row], prompt_mask, completions, completion_mask)


@settings(max_examples=25)
@example([(0, 1)] + [(0, 0)] * 9, 0, 3)  # completions without a token, of a prompt of one token
@example([(number % 4, 5) for number in range(20)], 1, None)
@given(ROWS, st.integers(0, 2**31), st.one_of(st.none(), st.integers(1, 20)))
@pytest.mark.parametrize("kind", MODELS, ids="-".join)
def test_values_and_gradients(
    kind: tuple[str, str], shape: list[tuple[int, int]], seed: int, rows: int | None
):
    generator = torch.Generator().manual_seed(seed)
    batch, built = tokens(shape, generator), MODELS[kind]
    weight = torch.rand(len(shape), TIME, generator=generator, dtype=torch.float64)
    results = []
    for run in (without_padding, shared_prompts.logps):
        built.zero_grad()
        logps, entropies, *_ = run(built, batch, rows, True, ACCELERATOR)
        ((logps + 0.1 * entropies) * weight).sum().backward()  # an entropy bonus learns too
        gradient = torch.cat([p.grad.flatten() for p in built.parameters() if p.grad is not None])
        results.append((logps, entropies, gradient))
    for plain, shared in zip(*results, strict=True):
        # TRL's kernel computes in float32
        close = 5e-6 * max(1.0, plain.abs().max().item())
        torch.testing.assert_close(shared, plain, rtol=0, atol=close)


def test_a_completion_sees_no_other_completion():
    """Another completion beside it changes no number."""
    generator = torch.Generator().manual_seed(3)
    batch, built = tokens([(3, 5), (3, 7), (2, 4)], generator), MODELS["llama", "sdpa"]
    before, _ = shared_prompts.logps(built, batch, None, False, ACCELERATOR)
    batch.completion_ids[1] = batch.completion_ids[1] % 12 + 1
    after, _ = shared_prompts.logps(built, batch, None, False, ACCELERATOR)
    torch.testing.assert_close(after[[0, 2]], before[[0, 2]], rtol=0, atol=1e-9)
    assert not torch.equal(after[1], before[1])


def test_a_prompt_is_read_once():
    batch = tokens([(3, 5)] * 8 + [(2, 5)] * 8, torch.Generator().manual_seed(4))
    groups = shared_prompts.grouped(batch)
    assert groups.widths.tolist() == [5 + 8 * 6, 3 + 8 * 6]  # the prompt less its last token, 8 completions


def test_attention_without_a_mask_of_pairs_is_refused():
    built = model("llama")
    built.config._attn_implementation = "flash_attention_2"
    batch = tokens([(3, 5)], torch.Generator().manual_seed(5))
    with pytest.raises(UserError, match="share_prompts: expected attention by sdpa or eager, not flash"):
        shared_prompts.logps(built, batch, None, False, ACCELERATOR)


@pytest.mark.slow
def test_a_stage_that_shares_prompts_starts_at_ratio_one_and_learns_as_without(base: Path, tmp_path: Path):
    curves = []
    for shares in (False, True):
        place = tmp_path / str(shares)
        shutil.copytree(base, place)
        config = stage_runs.GRPO | {
            "args": stage_runs.GRPO["args"] | {"max_steps": 4},
            "share_prompts": shares,
        }
        command = stage_runs.command("grpo", config, policy="results/pretrain/metrics.json")
        assert stage_runs.run("grpo", command, place) == 0, (place / "err.txt").read_text()
        checks = json.loads((place / "results/grpo/metrics.json").read_text())["health"]
        assert next(check for check in checks if check["check"] == "ratio_at_start")["value"] < 1e-5
        curve = pd.read_csv(place / "results/grpo/curve.csv").set_index(["step", "metric"])
        curves.append(curve.value)
    plain, shared = curves
    assert {"grad_norm", "entropy", "reward"} <= {*plain.index.get_level_values("metric")}
    positions = [curve.xs("positions_per_token", level="metric") for curve in curves]
    assert (positions[1] < positions[0]).all()  # a prompt is read once
    plain, shared = (curve.drop("positions_per_token", level="metric") for curve in curves)
    assert shared.index.equals(plain.index)
    assert shared.to_numpy() == pytest.approx(plain.to_numpy(), abs=1e-4, rel=1e-3)
