"""DeepSpeed's ZeRO-3 on two processes: weights really spread, learnt as in one process, a killed run resumes.

In an environment of its own, as TRL imports DeepSpeed wherever it is there:

    pip install -e '.[test,zero3]' && pytest -n 0 tests/encore/stages/test_zero3.py

Where it is not installed, these tests are skipped.
"""

import json
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import stage_runs
import torch
from cpu_zero3 import zero3_on_cpus
from stage_runs import at_training_step, error_line
from test_dpo import ready as dpo_ready  # noqa: F401
from test_reward_model import ready as reward_model_ready  # noqa: F401
from test_several_processes import MODULES, both, grpo, require_same, weights, with_batch
from test_sft import ready as sft_ready  # noqa: F401
from test_sharded import require_same_measures, require_same_rollouts, require_spread
from test_sharded_lora import KEPT, require_same_kept

pytest.importorskip("deepspeed", reason="pip install -e '.[zero3]'")

ZERO3 = ["--shard", "zero3"]
KINDS = ("sft", "dpo", "reward_model")


def stage(kind: str, request: pytest.FixtureRequest, folder: Path, **args: Any) -> tuple[list[str], Path]:
    copytree(request.getfixturevalue(f"{kind}_ready"), folder)
    config, inputs = with_batch(MODULES[kind].CONFIG, **args), MODULES[kind].INPUTS
    kept = {"evaluate_every": KEPT} if kind == "sft" else {}
    return stage_runs.command(kind, {**config, **kept}, **inputs), folder


def killed_at(step: int) -> None:
    zero3_on_cpus()
    at_training_step(step)


def killed_as_it_saves() -> None:
    from encore.models import language_model

    zero3_on_cpus()
    language_model.save = lambda *args, **options: stage_runs.die()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_what_one_process_learns(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    arguments, one = stage(kind, request, tmp_path / "one")
    _, two = stage(kind, request, tmp_path / "two")
    assert stage_runs.run(kind, arguments, one) == 0, (one / "err.txt").read_text()
    assert both(kind, arguments + ZERO3, two, zero3_on_cpus) == [0, 0], (two / "err.txt").read_text()
    require_spread(two)
    start = None if kind == "reward_model" else one / "checkpoints/pretrain"
    require_same(one / "checkpoints" / kind, two / "checkpoints" / kind, start)
    if kind == "sft":
        require_same_kept(one / "checkpoints/sft", two / "checkpoints/sft")
    require_same_measures(kind, one, two)
    made_on = json.loads((two / f"results/{kind}/provenance.json").read_text())["hardware"]
    assert made_on["shard"] == "zero3"


@pytest.mark.slow
def test_rollouts_are_those_of_whole_weights(base: Path, tmp_path: Path):
    require_same_rollouts(base, tmp_path, ZERO3, zero3_on_cpus)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step"), [("sft", 10), ("grpo", 11)])
def test_killed_and_rerun_with_the_same_bits(
    kind: str, step: int, request: pytest.FixtureRequest, base: Path, tmp_path: Path
):
    if kind == "grpo":
        (_, arguments, whole), (*_, killed) = (grpo(base, tmp_path / name) for name in ("whole", "killed"))
    else:
        arguments, whole = stage(kind, request, tmp_path / "whole")
        _, killed = stage(kind, request, tmp_path / "killed")
    arguments = arguments + ZERO3
    assert both(kind, arguments, whole, zero3_on_cpus) == [0, 0], (whole / "err.txt").read_text()
    assert any(both(kind, arguments, killed, partial(killed_at, step)))
    assert both(kind, arguments, killed, zero3_on_cpus) == [0, 0], (killed / "err.txt").read_text()
    assert "resuming from step" in (killed / "out.txt").read_text()
    assert stage_runs.outputs(whole, kind) == stage_runs.outputs(killed, kind)


@pytest.mark.slow
def test_in_bf16_what_is_saved_is_not_rounded_and_outlives_a_kill(
    request: pytest.FixtureRequest, tmp_path: Path
):
    """The float32 that the optimizer has; killed after the last step, it is saved from the checkpoint."""
    arguments, whole = stage("sft", request, tmp_path / "whole", bf16=True)
    _, killed = stage("sft", request, tmp_path / "killed", bf16=True)
    arguments = arguments + ZERO3
    assert both("sft", arguments, whole, zero3_on_cpus) == [0, 0], (whole / "err.txt").read_text()
    saved = weights(whole / "checkpoints/sft")
    assert {weight.dtype for weight in saved.values()} == {torch.float32}
    assert any(not torch.equal(w, w.to(torch.bfloat16).float()) for w in saved.values())
    assert any(both("sft", arguments, killed, killed_as_it_saves))
    assert both("sft", arguments, killed, zero3_on_cpus) == [0, 0], (killed / "err.txt").read_text()
    assert "steps were done before" in (killed / "out.txt").read_text()
    again = weights(killed / "checkpoints/sft")
    assert all(torch.equal(weight, again[name]) for name, weight in saved.items())


def no_number_at_the_third_step() -> None:
    """A loss of which the value is finite, and the gradient is not."""
    from encore.learning.sft import SFT

    zero3_on_cpus()
    plain = SFT.compute_loss

    def loss(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = plain(self, *args, **kwargs)
        return found + (found - found).sqrt() if self.state.global_step == 2 else found

    SFT.compute_loss = loss


@pytest.mark.slow
def test_a_gradient_that_is_no_number_ends_it(request: pytest.FixtureRequest, tmp_path: Path):
    arguments, folder = stage("sft", request, tmp_path / "run", save_steps=1)
    statuses = both("sft", arguments + ZERO3, folder, no_number_at_the_third_step)
    assert statuses == [2, 2], (folder / "err.txt").read_text()
    assert "error: step 3: grad_norm is inf, training cannot go on" in (folder / "out.txt").read_text()
    assert "last good checkpoint: checkpoints/sft/checkpoint-2" in (folder / "out.txt").read_text()


@pytest.mark.slow
def test_what_would_not_be_spread_is_told_in_one_line(request: pytest.FixtureRequest, tmp_path: Path):
    arguments, folder = stage("sft", request, tmp_path / "run")
    assert stage_runs.run("sft", arguments + ZERO3, folder) == 2
    assert "resources.shard: zero3 spreads weights over several GPUs" in error_line(folder)
