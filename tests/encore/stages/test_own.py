"""A stage learns from data, rewards and objectives of one's own; where they fail, it says so."""

import json
import os
import signal
import sys
from functools import partial
from typing import Any

import pytest
import stage_runs

pytestmark = pytest.mark.slow

PRODUCTS = ("checkpoints/grpo/final/model.safetensors", "results/grpo/completions.jsonl")
LIMIT = 2.0  # seconds for a call, in place of a minute
TASTE = """
import time
from pathlib import Path
calls = []
def hangs(completions, **columns):
    calls.append(1)
    if Path("hang.txt").exists() and len(calls) > 2:
        eval(Path("hang.txt").read_text())
    return [len(text) / 12 for text in completions]
def short(prompts, completions, question, answer, **columns):
    return [max(0.0, 1 - len(text) / 12) for text in completions]
def breaks(completions, **columns):
    calls.append(1)
    return [1.0 if len(calls) < 2 else float("inf") for _ in completions]
def right(question, answer, completion):
    return f"<answer>{answer}</answer>" in completion
from encore.objectives.grpo import clipped, importance_ratio, of_step
def dapo(batch, args):
    calls.append(1)
    terms = clipped(importance_ratio(batch, "token"), batch, args)
    return of_step(terms * (float("nan") if Path("nan.txt").exists() and len(calls) > 4 else 1.0), batch)
"""


@pytest.fixture
def run(tmp_path, checkpoint):
    """Reward -> exit status of steps of grpo, four of a rollout, in tmp_path."""
    (tmp_path / "taste.py").write_text(TASTE)
    rows = [{"q": f"{a}+{b}=", "a": str(a + b)} for a in range(3) for b in range(3)]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {"file": "my.jsonl", "question": "q", "answer": "a", "verifier": "taste:right"}
    made = json.loads(checkpoint.read_text())
    told = {"kind": "pretrain", "config": {"template": stage_runs.TEMPLATE}, "inputs": {}, "upstream": {}}
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(made | told))

    def started(reward: str, steps: int = 4, trap: Any = None, change: Any = None, **keys: Any) -> int:
        args = stage_runs.GRPO["args"] | {"max_steps": steps} | (change or {})
        args = {key: value for key, value in args.items() if value is not None}
        config = stage_runs.GRPO | {"task": task, "rewards": {"accuracy": 1.0, reward: 1.0}, "args": args}
        config = {key: value for key, value in config.items() if key != "problems"} | keys
        return stage_runs.run("grpo", stage_runs.command("grpo", config, policy=str(policy)), tmp_path, trap)

    return started


def test_a_stage_learns_by_a_reward_and_a_verifier_of_ones_own(run, tmp_path):
    assert run("taste:short") == 0, (tmp_path / "err.txt").read_text()[-3000:]
    curve = (tmp_path / "results/grpo/curve.csv").read_text()
    assert "rewards/taste:short/mean" in curve
    kept = [
        json.loads(line) for line in (tmp_path / "results/grpo/completions.jsonl").read_text().splitlines()
    ]
    assert any("taste:short" in json.dumps(row) for row in kept)


def test_a_reward_that_breaks_its_contract_ends_the_stage_in_a_line(run, tmp_path):
    """In the first rollout: the check before training, its first call, it passes."""
    assert run("taste:breaks") == 2
    assert "error: taste:breaks: expected a finite number, got inf for " in stage_runs.error_line(tmp_path)


def limited(seconds: float) -> None:
    from encore import own_code

    os.dup2(sys.stderr.fileno(), 2)  # as in a process that was started with its log as stderr
    own_code.bounded.__defaults__ = (seconds,)


@pytest.mark.fault(
    "a reward or verifier of one's own hangs",
    "a rollout of grpo",
    "one line with its name and the limit of a call, also where nothing interrupts it; goes on from before",
)
@pytest.mark.parametrize(
    ("how", "status", "says"),
    [
        ("time.sleep(600)", 2, "not done after 2 seconds of one call; it must be faster"),
        (
            "sum(range(10**15))",
            -signal.SIGVTALRM,
            "not done after 2 seconds of one call, nor to be interrupted",
        ),
    ],
)
def test_a_reward_that_hangs_ends_the_stage_in_a_line(run, tmp_path, how, status, says):
    """In the second rollout; the same command goes on from the checkpoint before it."""
    hang, trap = tmp_path / "hang.txt", partial(limited, LIMIT)
    hang.write_text(how)
    assert run("taste:hangs", 8, trap) == status
    log = (tmp_path / "err.txt").read_text()
    assert "Traceback" not in log
    assert log.splitlines()[-1].startswith(f"error: taste:hangs: {says}")
    assert not (tmp_path / "results/grpo/metrics.json").exists()
    hang.unlink()
    assert run("taste:hangs", 8, trap) == 0, (tmp_path / "err.txt").read_text()
    assert "resuming from step 3" in (tmp_path / "out.txt").read_text()


def test_an_objective_of_ones_own_learns_what_ours_learns(run, tmp_path):
    """The same loss written anew gives the same weights and rewards, also after a failure in mid-run."""
    plain = {"beta": 0.0, "sync_ref_model": None, "ref_model_sync_steps": None}
    assert run("taste:short", 6, change={**plain, "loss_type": "dapo"}) == 0
    ours = [(tmp_path / name).read_bytes() for name in PRODUCTS]
    for place in ("checkpoints", "results"):
        (tmp_path / place).rename(tmp_path / f"{place}_ours")
    own = {"change": {**plain, "loss_type": None}, "objective": "taste:dapo"}
    (tmp_path / "nan.txt").touch()
    assert run("taste:short", 6, **own) == 2
    assert "error: taste:dapo: expected a finite loss, got nan" in stage_runs.error_line(tmp_path)
    (tmp_path / "nan.txt").unlink()
    assert run("taste:short", 6, **own) == 0, (tmp_path / "err.txt").read_text()[-3000:]
    assert [(tmp_path / name).read_bytes() for name in PRODUCTS] == ours
    assert "clip_ratio" not in (tmp_path / "results/grpo/curve.csv").read_text()
