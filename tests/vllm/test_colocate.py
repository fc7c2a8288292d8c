"""GRPO with a real vLLM in the process of the stage, which sleeps while the policy learns."""

import re
import signal
from pathlib import Path

import pytest
import stage_runs
import vllm_contract as contract
from safetensors.torch import load_file
from true_tokenizers import checkpoint

from encore.runtime import sentinel

STAGE = """
import os, sys
import stage_runs
if "DIES_AT_STEP" in os.environ:
    stage_runs.at_training_step(int(os.environ["DIES_AT_STEP"]))
from encore.stages.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
COLOCATE = {"vllm_mode": "colocate", "vllm_enable_sleep_mode": True}


def test_it_draws_from_the_newest_weights_and_resumes_to_the_bit(policy, tmp_path):
    command = ["-c", STAGE, *contract.grpo(policy, COLOCATE)]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    other = contract.start(whole, command)
    contract.ended(cut, contract.start(cut, command, DIES_AT_STEP="6"), -signal.SIGKILL)
    contract.ended(whole, other)
    contract.ended(cut, contract.start(cut, command))

    assert "resuming from step 4 of 8" in (cut / "out.txt").read_text()
    assert stage_runs.outputs(whole, "grpo") == stage_runs.outputs(cut, "grpo")

    gaps = contract.values(whole, "sampling/sampling_logp_difference/max")
    assert len(gaps) == 4  # rollouts, of two steps each
    assert max(gaps) < 1e-4
    assert max(contract.values(whole, "sampler_gap")) < 1e-4
    at_start = contract.values(whole, "ratio/at_start")  # how far from 1: in float32 on a CPU, rounding
    assert len(at_start) == 4
    assert max(at_start) < 1e-5
    # asleep before the first one, and after each
    assert len(re.findall("vLLM sleeps, level 2", contract.said(whole))) == 5
    first, final = (
        load_file(place / "model.safetensors")
        for place in (Path(sentinel.read_sentinel(policy)["model"]), whole / "checkpoints/grpo/final")
    )
    assert any(not (final[name] == weight).all() for name, weight in first.items())


EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 32}


@pytest.mark.parametrize(("bf16", "gap"), [(False, 1e-5), (True, 0.005)])
@pytest.mark.parametrize(("kind", "more"), [("gpt-neox", {}), ("qwen3-moe", EXPERTS)])
def test_it_draws_from_the_newest_weights_of_kinds_with_other_names_in_memory(
    kind, more, bf16, gap, tmp_path
):
    policy = checkpoint(kind, tmp_path / "policy", contract.SIZE | more)
    stage = contract.grpo(policy, COLOCATE | {"bf16": bf16})
    contract.ended(tmp_path, contract.start(tmp_path, ["-c", STAGE, *stage]))
    gaps = contract.values(tmp_path, "sampling/sampling_logp_difference/mean")
    assert len(gaps) == 4
    assert max(gaps) < gap  # on average: in bf16 rounding may choose another expert for a token
    assert not re.search("the sampler.s log-probabilities differ", contract.said(tmp_path))
