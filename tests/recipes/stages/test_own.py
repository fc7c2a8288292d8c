"""A stage with data, reward and verifier of one's own: it learns from them; where they fail, it says so."""

import json

import pytest
import stage_runs

pytestmark = pytest.mark.slow

TASTE = """
calls = []
def short(prompts, completions, question, answer, **columns):
    return [max(0.0, 1 - len(text) / 12) for text in completions]
def breaks(completions, **columns):
    calls.append(1)
    return [1.0 if len(calls) < 2 else float("inf") for _ in completions]
def right(question, answer, completion):
    return f"<answer>{answer}</answer>" in completion
"""


@pytest.fixture
def run(tmp_path, checkpoint):
    """Reward -> exit status of four steps of grpo, in tmp_path."""
    (tmp_path / "taste.py").write_text(TASTE)
    rows = [{"q": f"{a}+{b}=", "a": str(a + b)} for a in range(3) for b in range(3)]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {"file": "my.jsonl", "question": "q", "answer": "a", "verifier": "taste:right"}
    made = json.loads(checkpoint.read_text())
    told = {"kind": "pretrain", "config": {"template": stage_runs.TEMPLATE}, "inputs": {}, "upstream": {}}
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(made | told))

    def started(reward: str) -> int:
        args = stage_runs.GRPO["args"] | {"max_steps": 4}
        config = stage_runs.GRPO | {"task": task, "rewards": {"accuracy": 1.0, reward: 1.0}, "args": args}
        config = {key: value for key, value in config.items() if key != "problems"}
        return stage_runs.run("grpo", stage_runs.command("grpo", config, policy=str(policy)), tmp_path)

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
